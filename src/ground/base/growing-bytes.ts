import { latin1Text, writeLatin1 } from './latin1.ts'

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

  /** All added bytes as Latin-1 text. */
  get latin1(): string {
    return latin1Text(this.#bytes, 0, this.#length)
  }

  /** Appends a copy of bytes [start, end). */
  add(bytes: Uint8Array, start: number, end: number): void {
    const length = this.#length + end - start
    if (length > this.#bytes.length) this.#grow(length)
    if (end - start === bytes.length) this.#bytes.set(bytes, this.#length)
    else this.#bytes.set(bytes.subarray(start, end), this.#length)
    this.#length = length
  }

  /** Appends a text with one byte per character. */
  addLatin1(text: string): void {
    const length = this.#length + text.length
    if (length > this.#bytes.length) this.#grow(length)
    writeLatin1(this.#bytes, text, this.#length)
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
