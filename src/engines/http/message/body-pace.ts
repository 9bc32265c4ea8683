/** How often the pace of request bodies is checked. */
export const paceCheckMs = 5_000
/** How late a body may be, compared with one that arrives at the minimum speed. */
const graceMs = 20_000

/**
 * Checks whether a request body arrives fast enough: a client that sends a byte now and then would
 * occupy a connection here and one at the backend for any time. Time in which the gateway does not
 * read does not count, so that slow backends do no harm. Streams are checked every few seconds; no
 * request has its own timer.
 */
export class BodyPace {
  #creditMs = graceMs
  #bytes = 0
  #checkedAt = 0
  #wasPaused = false

  /** Starts the check of a body. */
  start(now: number): void {
    this.#creditMs = graceMs
    this.#bytes = 0
    this.#checkedAt = now
    this.#wasPaused = false
  }

  /** Called when reading pauses; the time until the next check then does not count. */
  pause(): void {
    this.#wasPaused = true
  }

  /** Returns false if the body is too slow. `bytes`: received so far. `isRead`: more would be read now. */
  keepsUp(bytes: number, isRead: boolean, bytesPerSecond: number, now: number): boolean {
    const wasRead = isRead && !this.#wasPaused
    const gainedMs = ((bytes - this.#bytes) * 1_000) / bytesPerSecond
    const passedMs = wasRead ? now - this.#checkedAt : 0
    this.#creditMs = Math.min(graceMs, this.#creditMs + gainedMs - passedMs)
    this.#bytes = bytes
    this.#checkedAt = now
    this.#wasPaused = !isRead
    return this.#creditMs >= 0
  }
}
