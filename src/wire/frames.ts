/**
 * Length-delimited fields of protobuf, written straight to where they stay: the general writer makes
 * a byte array for every text and every number, which is much where a configuration is large.
 */

/** Bytes of a number as a varint; whole, from 0 to 2^53 - 1. */
function varintLength(value: number): number {
  let length = 1
  for (let left = value; left >= 0x80; left = Math.floor(left / 0x80)) length++
  return length
}

/** Bytes of a field with a tag of one byte (fields 1 to 15) and `length` bytes of content. */
export function fieldLength(length: number): number {
  return 1 + varintLength(length) + length
}

const delimited = 2
const varint = 0

/** Writes fields one after the other. The caller has counted the bytes. */
export class FieldWriter {
  readonly #into: Uint8Array
  #at = 0

  constructor(into: Uint8Array) {
    this.#into = into
  }

  /** Bytes that have been written. */
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

/** Bytes of a text field. */
export const textLength = (value: string): number => fieldLength(Buffer.byteLength(value))

/** Bytes of a number field. */
export const numberLength = (value: number): number => 1 + varintLength(value)
