import { idleTimeoutMs } from '../limits/engine-limits.ts'

/** How much earlier than the server a connection is closed: a request may be on its way when the server closes. */
const marginMs = 1_000

const timeout = /(?:^|[,;\s])timeout\s*=\s*"?(\d{1,9})(?!\d)/i

/**
 * Returns how many milliseconds a connection may stay idle, by the Keep-Alive field of the server, which states
 * seconds; 0 if it must not be reused. Short timeouts are halved.
 */
export function idleLimit(keepAlive: string | undefined): number {
  const stated = keepAlive === undefined ? undefined : timeout.exec(keepAlive)?.[1]
  if (stated === undefined) return idleTimeoutMs
  const ms = Number(stated) * 1_000
  return Math.min(ms - Math.min(marginMs, ms / 2), idleTimeoutMs)
}
