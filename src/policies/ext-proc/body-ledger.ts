import { PieceQueue } from '../../base/piece-queue.ts'

/**
 * What of a body is with a processor. As long as what came back is what was sent, the body can go
 * on without its processor: the rest is here.
 */
export class BodyLedger {
  readonly #limit: number
  readonly #away = new PieceQueue()
  #isLost = false

  /** `limit`: most bytes that are kept; a body of which more is away at once is lost with its processor. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** A piece leaves. */
  sent(bytes: Uint8Array): void {
    if (this.#isLost) return
    if (this.#away.size + bytes.length > this.#limit) this.#lose()
    else this.#away.push(bytes, 0, bytes.length)
  }

  /** A piece comes back, perhaps cut otherwise than it left. */
  returned(bytes: Uint8Array): void {
    let at = 0
    while (!this.#isLost && at < bytes.length) {
      const away = this.#away.shiftUpTo(bytes.length - at)
      if (away === undefined || !away.equals(bytes.subarray(at, at + away.length))) this.#lose()
      else at += away.length
    }
  }

  #lose(): void {
    this.#isLost = true
    this.#away.clear()
  }

  /** What has not come back, which is kept here no longer; undefined if the body was changed, or too much of it is away. */
  takeRest(): readonly Uint8Array[] | undefined {
    return this.#isLost ? undefined : this.#away.take()
  }
}
