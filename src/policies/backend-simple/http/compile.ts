import { parseDurationMs } from '../../../base/duration.ts'
import type { Compiled } from '../../define.ts'
import type { BackendHttpConfig } from './config.ts'
import type { BackendHttpSpec } from './schema.ts'

/** `backend.http`; the schema has checked the duration. */
export function compile({ version, requestTimeout }: BackendHttpSpec): Compiled<BackendHttpConfig> {
  const requestTimeoutMs =
    requestTimeout === undefined ? undefined : parseDurationMs(requestTimeout)
  const config: BackendHttpConfig = {
    ...(version !== undefined && { version }),
    ...(requestTimeoutMs !== undefined && { requestTimeoutMs }),
  }
  if (version !== 'HTTP2') return { config, problems: [] }
  const message = 'HTTP2 is not supported yet; requests to the backend are answered 500'
  return { config, problems: [{ path: 'version', message }] }
}
