import { Fifo } from '../../base/fifo.ts'

/**
 * What of a body is with a processor. As long as what came back is what was sent, the body can go
 * on without its processor: the rest is here.
 */
export class BodyLedger {
  readonly #limit: number
  readonly #pieces = new Fifo<Uint8Array>()
  #bytes = 0
  /** Of the first piece, what has come back already. */
  #returned = 0
  #isLost = false

  /** `limit`: most bytes that are kept; a body of which more is away at once is lost with its processor. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** A piece leaves. */
  sent(bytes: Uint8Array): void {
    if (this.#isLost || bytes.length === 0) return
    this.#bytes += bytes.length
    if (this.#bytes > this.#limit) this.#lose()
    else this.#pieces.push(bytes)
  }

  /** A piece comes back, perhaps cut otherwise than it left. */
  returned(bytes: Uint8Array): void {
    let at = 0
    while (!this.#isLost && at < bytes.length) {
      const { first } = this.#pieces
      if (first === undefined) {
        this.#lose()
        return
      }
      const length = Math.min(first.length - this.#returned, bytes.length - at)
      const away = first.subarray(this.#returned, this.#returned + length)
      if (Buffer.compare(away, bytes.subarray(at, at + length)) !== 0) {
        this.#lose()
        return
      }
      at += length
      this.#bytes -= length
      this.#returned += length
      if (this.#returned < first.length) continue
      this.#pieces.take()
      this.#returned = 0
    }
  }

  #lose(): void {
    this.#isLost = true
    this.#pieces.clear()
  }

  /** What has not come back; undefined where the body was changed, or too much of it is away. */
  rest(): readonly Uint8Array[] | undefined {
    if (this.#isLost) return undefined
    const [first, ...others] = this.#pieces.toArray()
    return first === undefined ? [] : [first.subarray(this.#returned), ...others]
  }
}
