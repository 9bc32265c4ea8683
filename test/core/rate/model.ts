/** What a bucket must do, in exact integers of nanoseconds: the reference of the tests. */
export class ModelBucket {
  readonly #interval: bigint
  readonly #tolerance: bigint
  #fullAt = 0n

  /** `rate` units in `unit` ms, `capacity` units when full. */
  constructor(rate: number, unit: number, capacity: number) {
    const nanoseconds = BigInt(unit) * 1_000_000n
    this.#interval = (nanoseconds + BigInt(rate) - 1n) / BigInt(rate)
    this.#tolerance = BigInt(capacity) * this.#interval
  }

  take(amount: number, now: bigint): boolean {
    const next = this.#from(now) + BigInt(amount) * this.#interval
    if (next - now > this.#tolerance) return false
    if (amount > 0) this.#fullAt = next
    return true
  }

  peek(amount: number, now: bigint): boolean {
    return this.#from(now) + BigInt(amount) * this.#interval - now <= this.#tolerance
  }

  charge(amount: number, now: bigint): void {
    const next = this.#from(now) + BigInt(amount) * this.#interval
    if (amount > 0) this.#fullAt = next
    else if (this.#fullAt > now) this.#fullAt = next > now ? next : now
  }

  remaining(now: bigint): number {
    const left = this.#tolerance - (this.#from(now) - now)
    const units = left / this.#interval
    return Number(left < 0n && units * this.#interval !== left ? units - 1n : units)
  }

  #from(now: bigint): bigint {
    return this.#fullAt > now ? this.#fullAt : now
  }
}
