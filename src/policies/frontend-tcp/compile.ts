import { parseDurationMs } from '../../base/duration.ts'
import type { Compiled } from '../define.ts'
import type { FrontendTcpConfig } from './config.ts'
import type { FrontendTcpSpec } from './schema.ts'

const defaultRetries = 9
const defaultMs = 180_000

/** `frontend.tcp`; the schema has checked the durations. */
export function compile({ keepalive = {} }: FrontendTcpSpec): Compiled<FrontendTcpConfig> {
  const milliseconds = (text: string | undefined) =>
    (text === undefined ? undefined : parseDurationMs(text)) ?? defaultMs
  const { retries = defaultRetries, time, interval } = keepalive
  const config = {
    keepalive: { retries, timeMs: milliseconds(time), intervalMs: milliseconds(interval) },
  }
  return { config, problems: [] }
}
