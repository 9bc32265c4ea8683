/** How often the bodies of requests are looked at. */
export const paceCheckMs = 5_000
/** What a client may fall behind the lowest speed; bytes that came faster make up for it. */
const graceMs = 20_000

/**
 * Whether the body of a request comes fast enough: a client that sends a byte now and then holds a
 * connection here and one at the backend for as long as it likes. Time in which the gateway does not
 * read does not count, and so a slow backend does no harm. Looked at every few seconds; nothing is
 * timed for each request.
 */
export class BodyPace {
  #creditMs = graceMs
  #bytes = 0
  #lookedAt = 0
  #hasRested = false

  /** A body begins. */
  start(now: number): void {
    this.#creditMs = graceMs
    this.#bytes = 0
    this.#lookedAt = now
    this.#hasRested = false
  }

  /** Since the last look there was a time in which nothing was read. */
  rest(): void {
    this.#hasRested = true
  }

  /** `bytes`: received so far. `isRead`: more would be taken now. False if that is too slow. */
  keepsUp(bytes: number, isRead: boolean, bytesPerSecond: number, now: number): boolean {
    const wasRead = isRead && !this.#hasRested
    const gainedMs = ((bytes - this.#bytes) * 1_000) / bytesPerSecond
    const passedMs = wasRead ? now - this.#lookedAt : 0
    this.#creditMs = Math.min(graceMs, this.#creditMs + gainedMs - passedMs)
    this.#bytes = bytes
    this.#lookedAt = now
    this.#hasRested = !isRead
    return this.#creditMs >= 0
  }
}
