/** Rate-limit buckets in memory that all workers share. */
import { hash } from 'node:crypto'
import {
  type RateBuckets as CoreBuckets,
  createRateLimiter,
  type RateLimiter,
  rateClock,
} from '../../engines/core/index.ts'
import type { RateBucket, RateLimitSpec } from '../../ground/exchange/rate-limits.ts'

/**
 * The memory of all workers. Limits that count for each value of a key have their own, so that many values leave
 * room for the other limits.
 */
export interface RateMemory {
  readonly limits: WebAssembly.Memory
  readonly values: WebAssembly.Memory
}

/** Maximum number of buckets. A limit without a key has one bucket. The system allocates only the pages that are used. */
export const rateTableKeys = { limits: 16_384, values: 131_072 } as const

export class RateBuckets {
  readonly #memory: RateMemory | undefined
  /** Made with the first limit, because their tables take megabytes. */
  readonly #limiters = new Map<keyof RateMemory, RateLimiter>()
  readonly #clock: () => number

  /**
   * Without shared memory, this thread has its own buckets. `clock` returns milliseconds, and must be the same
   * for all threads that share the memory.
   */
  constructor(memory: RateMemory | undefined, clock = rateClock) {
    this.#memory = memory
    this.#clock = clock
  }

  #limiter(name: keyof RateMemory): RateLimiter {
    let limiter = this.#limiters.get(name)
    if (limiter === undefined) {
      const shared = this.#memory?.[name]
      limiter = createRateLimiter(shared === undefined ? { keys: rateTableKeys[name] } : { shared })
      this.#limiters.set(name, limiter)
    }
    return limiter
  }

  /** Ids under which this thread holds locks, which are released if the thread dies. */
  get owners(): readonly number[] {
    return (['limits', 'values'] as const).map((name) => this.#limiter(name).owner)
  }

  /** Returns the bucket of a name, which is the same in all threads and configurations. */
  bucket(name: string, { isKeyed, ...spec }: RateLimitSpec): RateBucket {
    // The table is keyed by a number and some bytes. Both come from a digest, so that names do not collide.
    const digest = Buffer.from(hash('sha256', name, 'buffer'))
    const limiter = this.#limiter(isKeyed === true ? 'values' : 'limits')
    const buckets = limiter.limit(digest.readInt32LE(16), spec)
    return isKeyed === true
      ? new KeyedBucket(buckets, digest.toString('base64', 0, 9), this.#clock)
      : new NamedBucket(buckets, digest.subarray(0, 16), this.#clock)
  }
}

/** Base of buckets. The getters describe the result of the last call. */
abstract class Bucket {
  protected readonly buckets: CoreBuckets
  protected readonly clock: () => number

  constructor(buckets: CoreBuckets, clock: () => number) {
    this.buckets = buckets
    this.clock = clock
  }

  get capacity(): number {
    return this.buckets.capacity
  }

  get waitMs(): number {
    return this.buckets.wait
  }

  get remaining(): number {
    return this.buckets.remaining
  }

  get resetMs(): number {
    return this.buckets.reset
  }

  get isTableFull(): boolean {
    return this.buckets.isTableFull
  }
}

class NamedBucket extends Bucket implements RateBucket {
  readonly #key: Uint8Array

  constructor(buckets: CoreBuckets, key: Uint8Array, clock: () => number) {
    super(buckets, clock)
    this.#key = key
  }

  take(amount: number): boolean {
    return this.buckets.take(amount, this.clock(), this.#key)
  }

  hasSome(): boolean {
    return this.buckets.peek(1, this.clock(), this.#key)
  }

  charge(amount: number): void {
    this.buckets.charge(amount, this.clock(), this.#key)
  }
}

/** A charge that is too small to affect a limit. It makes the bucket of a value. */
const minimalCharge = 1e-6

/** A bucket for each value of a key. */
class KeyedBucket extends Bucket implements RateBucket {
  readonly #prefix: string

  constructor(buckets: CoreBuckets, prefix: string, clock: () => number) {
    super(buckets, clock)
    this.#prefix = prefix
  }

  take(amount: number, value = ''): boolean {
    return this.buckets.take(amount, this.clock(), this.#prefix + value)
  }

  hasSome(value = ''): boolean {
    const key = this.#prefix + value
    if (!this.buckets.peek(1, this.clock(), key)) return false
    // A value without a bucket counts as unused. It must get one now, since a later charge could not be refused.
    this.buckets.charge(minimalCharge, this.clock(), key)
    return !this.buckets.isTableFull
  }

  charge(amount: number, value = ''): void {
    this.buckets.charge(amount, this.clock(), this.#prefix + value)
  }
}
