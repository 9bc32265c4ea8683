/** Delay before the first attempt. Every further one doubles it. */
const firstMs = 1_000
/** Maximum delay, unless the server states more. */
const maxMs = 30_000
/** Minimum delay, if the server states one. */
const minStatedMs = 10

/** Repeats something with growing delays. */
export class RetryTimer {
  /** Delay that the server has stated. */
  #statedMs = 0
  #ms = firstMs
  #timer: NodeJS.Timeout | undefined

  schedule(attempt: () => void): void {
    this.#timer = setTimeout(attempt, this.#ms).unref()
    this.#ms = Math.max(Math.min(this.#ms * 2, maxMs), this.#statedMs)
  }

  /** Sets the delay that the server has stated, if any. */
  state(retryMs: number | undefined): void {
    if (retryMs === undefined) return
    this.#statedMs = Math.max(retryMs, minStatedMs)
    this.reset()
  }

  /** Called after a success. */
  reset(): void {
    this.#ms = this.#statedMs === 0 ? firstMs : this.#statedMs
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
