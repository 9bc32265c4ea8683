/** Work that must not hold up an end. */
import { setTimeout as after } from 'node:timers/promises'

/** Is the work done in time? It goes on by itself where it is not. */
export async function within(limitMs: number, work: () => Promise<void>): Promise<boolean> {
  const limit = new AbortController()
  const late = after(limitMs, false, { signal: limit.signal }).catch(() => false)
  try {
    return await Promise.race([work().then(() => true), late])
  } finally {
    limit.abort()
  }
}
