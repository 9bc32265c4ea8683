/** Rate-limit buckets in memory that all workers share. */
import { hash } from 'node:crypto'
import {
  type RateBuckets as CoreBuckets,
  createRateLimiter,
  type RateLimiter,
  rateClock,
} from '../../engines/core/index.ts'
import type { RateBucket, RateLimitSpec } from '../../ground/exchange/rate-limits.ts'

/** Maximum number of buckets. Each limit has one bucket. */
export const rateTableKeys = 16_384

export class RateBuckets {
  readonly #limiter: RateLimiter
  readonly #clock: () => number

  /**
   * Without shared memory, this thread has its own buckets. `clock` returns milliseconds, and must be the same
   * for all threads that share the memory.
   */
  constructor(memory: WebAssembly.Memory | undefined, clock = rateClock) {
    this.#clock = clock
    this.#limiter = createRateLimiter(
      memory === undefined ? { keys: rateTableKeys } : { shared: memory },
    )
  }

  /** Identifies the locks of this thread, so that they can be released if the thread dies. */
  get owner(): number {
    return this.#limiter.owner
  }

  /** Returns the bucket of a name, which is the same in all threads and configurations. */
  bucket(name: string, spec: RateLimitSpec): RateBucket {
    // The table is keyed by a number and 16 bytes. Both come from a digest, so that names do not collide.
    const digest = Buffer.from(hash('sha256', name, 'buffer'))
    return new NamedBucket(
      this.#limiter.limit(digest.readInt32LE(16), spec),
      digest.subarray(0, 16),
      this.#clock,
    )
  }
}

class NamedBucket implements RateBucket {
  readonly #buckets: CoreBuckets
  readonly #key: Uint8Array
  readonly #clock: () => number

  constructor(buckets: CoreBuckets, key: Uint8Array, clock: () => number) {
    this.#buckets = buckets
    this.#key = key
    this.#clock = clock
  }

  get capacity(): number {
    return this.#buckets.capacity
  }

  take(amount: number): boolean {
    return this.#buckets.take(amount, this.#clock(), this.#key)
  }

  hasSome(): boolean {
    return this.#buckets.peek(1, this.#clock(), this.#key)
  }

  charge(amount: number): void {
    this.#buckets.charge(amount, this.#clock(), this.#key)
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
