import { setTimeout as after } from 'node:timers/promises'

/** Resolves to true when the work is done, or to false on timeout; the work is not cancelled. */
export async function within(limitMs: number, work: () => Promise<void>): Promise<boolean> {
  const limit = new AbortController()
  const late = after(limitMs, false, { signal: limit.signal }).catch(() => false)
  try {
    return await Promise.race([work().then(() => true), late])
  } finally {
    limit.abort()
  }
}
