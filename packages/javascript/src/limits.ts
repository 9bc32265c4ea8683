import {
  RateLimiter as CoreLimiter,
  type RateBuckets,
} from '../../../src/engines/core/rate-buckets.ts'
import { LocalRateHost } from '../../../src/engines/core/rate-host.ts'

/** In milliseconds. The core cannot count a refill of one unit that takes longer. */
const maxPeriod = 36 * 365 * 86_400_000

/** The largest table of the core has room for twice as many buckets. */
const mostKeys = 1 << 20

/** What a limiter decided. Times are in milliseconds. */
export interface RateLimit {
  readonly allowed: boolean
  /** When the request can be repeated; infinite if the bucket can never hold the amount. */
  readonly wait: number
  /** Units that are left. */
  readonly remaining: number
  /** When the bucket is full again. */
  readonly reset: number
}

export interface RateLimiterOptions {
  /** Units that return in a period. */
  readonly rate: number
  /** The period in milliseconds; 1000 if omitted. */
  readonly per?: number
  /** Units that a full bucket has in addition to `rate`; 0 if omitted. */
  readonly burst?: number
  /** Approximate maximum number of buckets, at most 1,048,576. Default: 10,000. */
  readonly keys?: number
  /** Returns milliseconds of a clock that never goes back; `performance.now` if omitted. */
  readonly clock?: () => number
}

/** Buckets of `rate + burst` units, one for each key, which refill evenly. A full table allows nothing new. */
export class RateLimiter {
  readonly #options: RateLimiterOptions
  readonly #clock: () => number
  #buckets: RateBuckets | undefined

  constructor(options: RateLimiterOptions) {
    const { rate, per = 1000, burst = 0, keys = 10_000 } = options
    const areFinite = [rate, per, burst, keys, rate + burst].every(Number.isFinite)
    if (!(rate > 0 && per > 0 && burst >= 0 && keys > 0 && areFinite)) {
      throw new RangeError(
        'rate, per and keys must be positive, burst must not be negative, and all must be finite',
      )
    }
    const period = per / rate
    if (!(period > 0 && period <= maxPeriod)) {
      throw new RangeError(
        'per / rate, the time in which one unit returns, must be at most 36 years',
      )
    }
    this.#options = options
    this.#clock = options.clock ?? (() => performance.now())
  }

  /** Takes units if the bucket has them. */
  take(key = '', amount = 1): RateLimit {
    const buckets = this.#ready()
    return resultOf(buckets, buckets.take(amount, this.#clock(), key))
  }

  /** What `take` would answer. */
  peek(key = '', amount = 1): RateLimit {
    const buckets = this.#ready()
    return resultOf(buckets, buckets.peek(amount, this.#clock(), key))
  }

  /** Takes units after the fact; the balance may become negative. A negative amount gives units back. */
  charge(amount: number, key = ''): RateLimit {
    const buckets = this.#ready()
    buckets.charge(amount, this.#clock(), key)
    return resultOf(buckets, true)
  }

  /** The table is created when it is first used: workerd has no random numbers while a worker starts. */
  #ready(): RateBuckets {
    if (this.#buckets === undefined) {
      const { rate, per = 1000, burst = 0, keys = 10_000 } = this.#options
      const size = Math.min(Math.max(1, keys), mostKeys)
      const limiter = new CoreLimiter(() => new LocalRateHost({ keys: size, keyBytes: 256 }))
      this.#buckets = limiter.limit(1, { rate, unit: per, burst })
    }
    return this.#buckets
  }
}

const resultOf = ({ wait, remaining, reset }: RateBuckets, allowed: boolean): RateLimit => ({
  allowed,
  wait,
  remaining,
  reset,
})
