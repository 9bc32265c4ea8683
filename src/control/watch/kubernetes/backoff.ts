/** Delays that double with each attempt, with jitter so that clients do not retry together. */
export class Backoff {
  readonly #firstMs: number
  readonly #maxMs: number
  #nextMs: number

  constructor(firstMs: number, maxMs: number) {
    this.#firstMs = firstMs
    this.#maxMs = maxMs
    this.#nextMs = firstMs
  }

  /** Milliseconds to wait before the next try: 50 to 100 percent of the current step. */
  next(atLeastMs = 0): number {
    const step = this.#nextMs
    this.#nextMs = Math.min(step * 2, this.#maxMs)
    return Math.max(step * (0.5 + Math.random() / 2), atLeastMs)
  }

  reset(): void {
    this.#nextMs = this.#firstMs
  }
}
