/**
 * Writes length-delimited protobuf fields directly into their buffer. The general writer allocates a
 * byte array for every text and number, which is expensive for a large configuration.
 */

/** Number of bytes of an integer from 0 to 2^53 - 1 as a varint. */
function varintLength(value: number): number {
  let length = 1
  for (let left = value; left >= 0x80; left = Math.floor(left / 0x80)) length++
  return length
}

/** Number of bytes of a field with a tag of one byte (fields 1 to 15) and `length` bytes of content. */
export function fieldLength(length: number): number {
  return 1 + varintLength(length) + length
}

const delimited = 2
const varint = 0

/** Writes fields one after the other into a buffer, whose size the caller has computed. */
export class FieldWriter {
  readonly #into: Uint8Array
  #at = 0

  constructor(into: Uint8Array) {
    this.#into = into
  }

  /** Number of bytes written. */
  get length(): number {
    return this.#at
  }

  rewind(): void {
    this.#at = 0
  }

  #varint(value: number): void {
    let left = value
    for (; left >= 0x80; left = Math.floor(left / 0x80)) {
      this.#into[this.#at++] = (left % 0x80) | 0x80
    }
    this.#into[this.#at++] = left
  }

  number(field: number, value: number): void {
    this.#into[this.#at++] = (field << 3) | varint
    this.#varint(value)
  }

  bytes(field: number, value: Uint8Array): void {
    this.#into[this.#at++] = (field << 3) | delimited
    this.#varint(value.length)
    this.#into.set(value, this.#at)
    this.#at += value.length
  }

  text(field: number, value: string): void {
    const length = Buffer.byteLength(value)
    this.#into[this.#at++] = (field << 3) | delimited
    this.#varint(length)
    const { buffer, byteOffset } = this.#into
    Buffer.from(buffer, byteOffset + this.#at, length).write(value)
    this.#at += length
  }
}

/** Number of bytes of a text field. */
export const textLength = (value: string): number => fieldLength(Buffer.byteLength(value))

/** Number of bytes of a number field. */
export const numberLength = (value: number): number => 1 + varintLength(value)
