/** Waiting times that double from try to try, each spread at random so that clients do not march. */
export class Backoff {
  readonly #firstMs: number
  readonly #mostMs: number
  readonly #random: () => number
  #nextMs: number

  /** `random` gives numbers from 0 to 1. */
  constructor(firstMs: number, mostMs: number, random: () => number = Math.random) {
    this.#firstMs = firstMs
    this.#mostMs = mostMs
    this.#random = random
    this.#nextMs = firstMs
  }

  /** Milliseconds to wait before the next try: between half of the step and the whole. */
  next(atLeastMs = 0): number {
    const step = this.#nextMs
    this.#nextMs = Math.min(step * 2, this.#mostMs)
    return Math.max(step * (0.5 + this.#random() / 2), atLeastMs)
  }

  reset(): void {
    this.#nextMs = this.#firstMs
  }
}
