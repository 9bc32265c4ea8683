import { parseDurationMs } from '../../base/duration.ts'
import type { Compiled } from '../define.ts'
import type { RetryConfig } from './config.ts'
import type { RetrySpec } from './schema.ts'

/** `traffic.retry`; the schema has checked the duration. One retry where the number is not given. */
export function compile({ codes = [], attempts = 1, backoff }: RetrySpec): Compiled<RetryConfig> {
  const backoffMs = backoff === undefined ? undefined : parseDurationMs(backoff)
  return { config: { codes, attempts, backoffMs: backoffMs ?? 0 }, problems: [] }
}
