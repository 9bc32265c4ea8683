import { parseDurationMs } from '../../../base/duration.ts'
import type { Compiled } from '../../define.ts'
import type { BackendTcpConfig } from './config.ts'
import type { BackendTcpSpec } from './schema.ts'

const defaultRetries = 9
const defaultMs = 180_000

/** `backend.tcp`; the schema has checked the durations. */
export function compile({ keepalive, connectTimeout }: BackendTcpSpec): Compiled<BackendTcpConfig> {
  const connectTimeoutMs = milliseconds(connectTimeout)
  const config: BackendTcpConfig = {
    ...(keepalive && {
      keepalive: {
        retries: keepalive.retries ?? defaultRetries,
        timeMs: milliseconds(keepalive.time) ?? defaultMs,
        intervalMs: milliseconds(keepalive.interval) ?? defaultMs,
      },
    }),
    ...(connectTimeoutMs !== undefined && { connectTimeoutMs }),
  }
  return { config, problems: [] }
}

function milliseconds(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseDurationMs(text)
}
