/** Buckets of rate limits, in memory that all workers of the proxy share. */
import { hash } from 'node:crypto'
import {
  type RateBuckets as CoreBuckets,
  createRateLimiter,
  type RateLimiter,
  rateClock,
} from '../core/index.ts'
import type { RateBucket, RateLimitSpec } from '../exchange/rate-limits.ts'

/** Room for so many limits; each has one bucket. */
export const rateTableKeys = 16_384

export class RateBuckets {
  readonly #limiter: RateLimiter

  /** Without memory the buckets are this thread's own. */
  constructor(memory: WebAssembly.Memory | undefined) {
    this.#limiter = createRateLimiter(
      memory === undefined ? { keys: rateTableKeys } : { shared: memory },
    )
  }

  /** By which the locks of this thread can be freed when it has died. */
  get owner(): number {
    return this.#limiter.owner
  }

  /** The bucket of a name: one over all threads, configurations and time. */
  bucket(name: string, spec: RateLimitSpec): RateBucket {
    // The table goes by a number and a key; with half of a digest for the key no two names meet.
    const digest = Buffer.from(hash('sha256', name, 'buffer'))
    return new NamedBucket(
      this.#limiter.limit(digest.readInt32LE(16), spec),
      digest.subarray(0, 16),
    )
  }
}

class NamedBucket implements RateBucket {
  readonly #buckets: CoreBuckets
  readonly #key: Uint8Array

  constructor(buckets: CoreBuckets, key: Uint8Array) {
    this.#buckets = buckets
    this.#key = key
  }

  get capacity(): number {
    return this.#buckets.capacity
  }

  take(amount: number): boolean {
    return this.#buckets.take(amount, rateClock(), this.#key)
  }

  hasSome(): boolean {
    return this.#buckets.peek(1, rateClock(), this.#key)
  }

  charge(amount: number): void {
    this.#buckets.charge(amount, rateClock(), this.#key)
  }

  get waitMs(): number {
    return this.#buckets.wait
  }

  get remaining(): number {
    return this.#buckets.remaining
  }

  get resetMs(): number {
    return this.#buckets.reset
  }
}
