/**
 * Bytes of log lines that wait to be written. Short texts are copied by loops, because a native call for each
 * costs more, and joining them first would leave garbage.
 */

/** Maximum number of UTF-8 bytes for one UTF-16 code unit. */
const maxBytesPerUnit = 3
/** Batches up to this size are copied, so that their buffer can be used again. */
const copiedBytes = 16 * 1_024
/** Digits of the largest integer that is written by a loop. */
const maxDigits = 10
const largestInteger = 2 ** 31 - 1

const quotationMark = 0x22
const backslash = 0x5c
const zero = 0x30

export class LineBytes {
  readonly #size: number
  #bytes: Buffer
  /** The last buffer that `take` returned without a copy; it may still be read. */
  #pinned: Buffer | undefined
  /** A released buffer. */
  #spare: Buffer | undefined
  /** Number of bytes that are written. */
  length = 0

  constructor(size: number) {
    this.#size = size
    this.#bytes = Buffer.allocUnsafeSlow(size)
  }

  /** Writes any text. */
  text(text: string): void {
    this.#makeRoom(text.length * maxBytesPerUnit)
    this.length += this.#bytes.write(text, this.length)
  }

  /** Writes a text of ASCII characters. */
  ascii(text: string): void {
    this.#makeRoom(text.length)
    const bytes = this.#bytes
    let at = this.length
    for (let from = 0; from < text.length; from++) bytes[at++] = text.charCodeAt(from)
    this.length = at
  }

  /**
   * Writes a text of visible ASCII characters, without `"` and `\` if it `isQuoted`. Returns false, and writes
   * nothing, if the text has other characters.
   */
  visible(text: string, isQuoted: boolean): boolean {
    this.#makeRoom(text.length)
    const bytes = this.#bytes
    let at = this.length
    for (let from = 0; from < text.length; from++) {
      const code = text.charCodeAt(from)
      if (code <= 0x20 || code >= 0x7f) return false
      if (isQuoted && (code === quotationMark || code === backslash)) return false
      bytes[at++] = code
    }
    this.length = at
    return true
  }

  number(value: number): void {
    if (value < 0 || value > largestInteger || !Number.isInteger(value)) {
      this.ascii(String(value))
      return
    }
    let digits = 1
    for (let limit = 10; value >= limit; limit *= 10) digits++
    this.digits(value, digits)
  }

  /** Writes an integer from 0 with a number of digits. */
  digits(value: number, digits: number): void {
    this.#makeRoom(maxDigits)
    const bytes = this.#bytes
    let rest = value
    for (let at = this.length + digits - 1; at >= this.length; at--) {
      const above = Math.floor(rest / 10)
      bytes[at] = zero + rest - above * 10
      rest = above
    }
    this.length += digits
  }

  /** Removes and returns the first bytes. They stay valid until `release`, even if more are written. */
  take(length: number): Buffer {
    const taken = this.#bytes.subarray(0, length)
    const rest = this.#bytes.subarray(length, this.length)
    const isCopied = length <= copiedBytes && this.#bytes.length === this.#size
    const batch = isCopied ? Buffer.from(taken) : taken
    if (!isCopied) this.#changeBuffer(rest.length)
    this.#bytes.set(rest)
    this.length = rest.length
    return batch
  }

  /** Called when all taken bytes have been read. Reuse of the buffer saves a memory mapping for each batch. */
  release(): void {
    if (this.#pinned?.length === this.#size) this.#spare = this.#pinned
    this.#pinned = undefined
  }

  #changeBuffer(needed: number): void {
    const spare = needed <= this.#size ? this.#spare : undefined
    this.#pinned = this.#bytes
    this.#spare = undefined
    this.#bytes = spare ?? Buffer.allocUnsafeSlow(Math.max(this.#size, needed))
  }

  #makeRoom(length: number): void {
    const needed = this.length + length
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(2 * needed)
    this.#bytes.copy(larger, 0, 0, this.length)
    this.#bytes = larger
  }
}
