/** The memory of the rate limits of all workers, and the locks that dead workers leave in it. */
import {
  createRateLimiter,
  createRateMemory,
  type RateLimiter,
} from '../../../engines/core/rate.ts'
import { type RateMemory, rateTableKeys } from '../rate-buckets.ts'

export const createSharedRates = (): RateMemory => ({
  limits: createRateMemory({ keys: rateTableKeys.limits }),
  values: createRateMemory({ keys: rateTableKeys.values }),
})

export class RateLocks {
  readonly #limiters: readonly RateLimiter[]

  constructor({ limits, values }: RateMemory) {
    this.#limiters = [limits, values].map((shared) => createRateLimiter({ shared }))
  }

  /** Releases the locks of a dead worker. `owners` are those of its RateBuckets. */
  release(owners: readonly number[]): void {
    for (const [at, owner] of owners.entries()) this.#limiters[at]?.release(owner)
  }
}
