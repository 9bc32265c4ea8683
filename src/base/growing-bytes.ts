/** Maximum size of a buffer that `clear` keeps for reuse. */
const maxKeptBytes = 64 * 1024
const none = Buffer.alloc(0)

/** Joins bytes that arrive in pieces. A full buffer doubles, so that adding takes linear time in total. */
export class GrowingBytes {
  #bytes: Buffer = none
  #length = 0

  get length(): number {
    return this.#length
  }

  /** All added bytes; valid until the next call of `add` or `clear`. */
  get content(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  /** Appends a copy of bytes [start, end). */
  add(bytes: Uint8Array, start: number, end: number): void {
    const length = this.#length + end - start
    if (length > this.#bytes.length) this.#grow(length)
    if (end - start === bytes.length) this.#bytes.set(bytes, this.#length)
    else this.#bytes.set(bytes.subarray(start, end), this.#length)
    this.#length = length
  }

  addByte(byte: number): void {
    if (this.#length === this.#bytes.length) this.#grow(this.#length + 1)
    this.#bytes[this.#length++] = byte
  }

  clear(): void {
    this.#length = 0
    if (this.#bytes.length > maxKeptBytes) this.#bytes = none
  }

  #grow(length: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#bytes.length, 256))
    larger.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = larger
  }
}
