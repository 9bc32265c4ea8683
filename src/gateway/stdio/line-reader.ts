/** Splits output into lines of bounded length. */
const newline = 0x0a

export class LineReader {
  readonly #maxBytes: number
  readonly #onLine: (line: Buffer) => void
  readonly #onTooLong: (start: Buffer) => void
  #parts: Buffer[] = []
  #length = 0
  /** Whether the rest of a line is skipped that was too long. */
  #isSkipping = false

  constructor(
    maxBytes: number,
    onLine: (line: Buffer) => void,
    onTooLong: (start: Buffer) => void,
  ) {
    this.#maxBytes = maxBytes
    this.#onLine = onLine
    this.#onTooLong = onTooLong
  }

  add(chunk: Buffer): void {
    let from = 0
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      this.#keep(chunk.subarray(from, at))
      this.#finish()
      from = at + 1
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from))
  }

  /** Passes on a last line without a newline. */
  end(): void {
    if (this.#length > 0) this.#finish()
  }

  #keep(part: Buffer): void {
    if (this.#isSkipping) return
    this.#parts.push(part)
    this.#length += part.length
    if (this.#length <= this.#maxBytes) return
    const start = this.#take().subarray(0, this.#maxBytes)
    this.#isSkipping = true
    this.#onTooLong(start)
  }

  #finish(): void {
    if (!this.#isSkipping) this.#onLine(this.#take())
    this.#isSkipping = false
  }

  #take(): Buffer {
    const [first] = this.#parts
    const line =
      first !== undefined && this.#parts.length === 1 ? first : Buffer.concat(this.#parts)
    this.#parts = []
    this.#length = 0
    return line
  }
}
