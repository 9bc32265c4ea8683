/**
 * Rate limits by requests or tokens. A bucket holds `rate + burst` units, starts full, and refills
 * evenly by `rate` units per `unit` of time.
 *
 *     const memory = createRateMemory({ keys: 10_000 })          // once; hand it to every worker
 *     const limiter = createRateLimiter({ shared: memory })      // in each; omit `shared` for one thread
 *     const limit = limiter.limit(7, { rate: 100, unit: 'Minutes', burst: 20 })
 *     if (!limit.take(1, now, clientAddress)) refuse(limit.wait) // ms; and limit.remaining, limit.reset
 *     limit.charge(usedTokens, now)                              // after the fact: may become negative
 *
 * The host chooses the ids. An id and a key identify a bucket, so a bucket survives every change of
 * configuration that keeps the id. Times are milliseconds of one clock for all threads (rateClock).
 */
import { RateLimiter } from './rate-buckets.ts'
import { LocalRateHost, type RateTableOptions } from './rate-host.ts'
import { SharedRateHost } from './rate-shared.ts'

export { RateBuckets, type RateLimit, RateLimiter, type RateUnit } from './rate-buckets.ts'
export type { RateTableOptions } from './rate-host.ts'
export { createRateMemory } from './rate-shared.ts'

/** The inherited table options apply only without `shared`, whose table createRateMemory has made. */
export interface RateLimiterOptions extends RateTableOptions {
  /** Memory from createRateMemory: limits are exact over all threads that share it. */
  readonly shared?: WebAssembly.Memory
}

/**
 * Measures the offset from this thread's clock to the machine's clock. The thread may be suspended
 * between the two readings, so the pair of readings that took the least time is used.
 */
function measureOffset(): number {
  let difference = 0
  let least = Number.POSITIVE_INFINITY
  for (let reading = 0; reading < 16; reading++) {
    const before = performance.now()
    const machine = Number(process.hrtime.bigint()) / 1e6
    const took = performance.now() - before
    if (took >= least) continue
    least = took
    difference = machine - before - took / 2
  }
  return difference
}

/** Measured at the first use, because pages have no clock of the machine. */
let offset: number | undefined

/** Milliseconds of the machine's monotonic clock, which is the same in all threads and processes. */
export function rateClock(): number {
  offset ??= measureOffset()
  return offset + performance.now()
}

/** Creates a limiter. With `shared`, all threads share its buckets; otherwise it has its own. */
export function createRateLimiter(options: RateLimiterOptions = {}): RateLimiter {
  const { shared } = options
  return new RateLimiter(() =>
    shared === undefined ? new LocalRateHost(options) : new SharedRateHost(shared),
  )
}
