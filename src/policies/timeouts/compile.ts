import { parseDurationMs } from '../../base/duration.ts'
import type { Compiled } from '../define.ts'
import type { TimeoutsConfig } from './config.ts'

/** `traffic.timeouts`. */
export interface TimeoutsSpec {
  readonly request?: string
}

export function compile({ request }: TimeoutsSpec): Compiled<TimeoutsConfig> {
  if (request === undefined) return { config: {}, problems: [] }
  const requestMs = parseDurationMs(request)
  if (requestMs === undefined) {
    return { problems: [{ path: 'request', message: `${request} is not a duration` }] }
  }
  return { config: { requestMs }, problems: [] }
}
