import { parseDurationMs } from '../../base/duration.ts'
import type { Compiled } from '../define.ts'
import type { TimeoutsConfig } from './config.ts'
import type { TimeoutsSpec } from './schema.ts'

/** `traffic.timeouts`; the schema has checked the duration, so the problem is for other callers. */
export function compile({ request }: TimeoutsSpec): Compiled<TimeoutsConfig> {
  if (request === undefined) return { config: {}, problems: [] }
  const requestMs = parseDurationMs(request)
  if (requestMs === undefined) {
    return { problems: [{ path: 'request', message: `${request} is not a duration` }] }
  }
  return { config: { requestMs }, problems: [] }
}
