import { PieceQueue } from '../../../engines/http/bytes/piece-queue.ts'

/**
 * Keeps the part of a body that was sent to a processor and has not come back. If the processor fails and
 * has not changed what it returned, the kept bytes follow unprocessed.
 */
export class BodyLedger {
  readonly #limit: number
  readonly #unreturned = new PieceQueue()
  #isLost = false

  /** `limit`: bytes to keep until the processor returns them. If more are outstanding, none are kept. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Records that a piece was sent to the processor. */
  sent(bytes: Uint8Array): void {
    if (this.#isLost) return
    if (this.#unreturned.size + bytes.length > this.#limit) this.#lose()
    else this.#unreturned.push(bytes, 0, bytes.length)
  }

  /** Records that the processor returned a piece, whose size may differ from those that were sent. */
  returned(bytes: Uint8Array): void {
    let at = 0
    while (!this.#isLost && at < bytes.length) {
      const piece = this.#unreturned.shiftUpTo(bytes.length - at)
      if (piece === undefined || !piece.equals(bytes.subarray(at, at + piece.length))) this.#lose()
      else at += piece.length
    }
  }

  #lose(): void {
    this.#isLost = true
    this.#unreturned.clear()
  }

  /** Takes the bytes that have not come back; undefined if the body was changed or the limit exceeded. */
  takeRest(): readonly Uint8Array[] | undefined {
    return this.#isLost ? undefined : this.#unreturned.take()
  }
}
