/** Rate limits of a simulation. Each proxy in the records has its own buckets, whose clock is the record time. */

import { RateBuckets } from '../../gateway/proxy/rate-buckets.ts'
import type { RateBucket, RateLimitSpec } from '../../ground/exchange/rate-limits.ts'
import type { SimulatedRequest } from './types.ts'

export class SimulatedLimits {
  readonly #buckets = new RateBuckets(undefined, () => this.#now)
  #now = 0
  /** The proxy that received the request. */
  proxy = ''

  begin({ timeMs = Date.now(), recorded }: SimulatedRequest): void {
    this.proxy = recorded?.proxy ?? ''
    // Records of several proxies are not exactly in order, and the clock of a bucket must not go back.
    if (timeMs > this.#now) this.#now = timeMs
  }

  bucket(name: string, spec: RateLimitSpec): RateBucket {
    return new BucketOfProxy(this, (proxy) => this.#buckets.bucket(`${proxy} ${name}`, spec))
  }
}

class BucketOfProxy implements RateBucket {
  readonly #limits: SimulatedLimits
  readonly #open: (proxy: string) => RateBucket
  readonly #byProxy = new Map<string, RateBucket>()

  constructor(limits: SimulatedLimits, open: (proxy: string) => RateBucket) {
    this.#limits = limits
    this.#open = open
  }

  get #current(): RateBucket {
    const { proxy } = this.#limits
    let bucket = this.#byProxy.get(proxy)
    if (bucket === undefined) {
      bucket = this.#open(proxy)
      this.#byProxy.set(proxy, bucket)
    }
    return bucket
  }

  get capacity(): number {
    return this.#current.capacity
  }

  take(amount: number, value?: string): boolean {
    return this.#current.take(amount, value)
  }

  hasSome(value?: string): boolean {
    return this.#current.hasSome(value)
  }

  charge(amount: number, value?: string): void {
    this.#current.charge(amount, value)
  }

  get isTableFull(): boolean {
    return this.#current.isTableFull
  }

  get waitMs(): number {
    return this.#current.waitMs
  }

  get remaining(): number {
    return this.#current.remaining
  }

  get resetMs(): number {
    return this.#current.resetMs
  }
}
