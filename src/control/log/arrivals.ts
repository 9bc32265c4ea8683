/** Wakes everyone who waits for an arrival, such as new events or a reconnect, or for the end of the log. */
export class Arrivals {
  #waiting = new Set<() => void>()

  /** Resolves at the next announcement or when the signal is aborted, whichever is first. */
  next(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake)
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      this.#waiting.add(wake)
      signal?.addEventListener('abort', wake, { once: true })
    })
  }

  announce(): void {
    for (const wake of [...this.#waiting]) wake()
  }
}
