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
  return { config, problems: [] }
}
