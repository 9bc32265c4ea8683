/** Bytes that come in pieces and are wanted in one. Growing doubles the room, so that adding is linear. */

/** Room beyond this is given back by `clear`. */
const keptRoom = 64 * 1024
const none = Buffer.alloc(0)

export class GrowingBytes {
  #bytes: Buffer = none
  #length = 0

  get length(): number {
    return this.#length
  }

  /** What was added, until the next call of `add` or `clear`. */
  get content(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  /** Copies bytes [start, end). */
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
    if (this.#bytes.length > keptRoom) this.#bytes = none
  }

  #grow(length: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#bytes.length, 256))
    larger.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = larger
  }
}
