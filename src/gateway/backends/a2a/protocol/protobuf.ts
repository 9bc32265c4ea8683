/** Reads the few fields of gRPC messages that the gateway needs, without decoding the rest. */

/** Numbers of the fields that lead to a field of type string. */
export type FieldPath = readonly number[]

/** Thrown if the bytes are not a valid protocol buffer. */
export class MalformedMessage extends Error {
  override readonly name = 'MalformedMessage'
}

/** Reads one message field by field. */
class FieldReader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** Returns the next field; `value` is set if it has a length. Undefined at the end. */
  next(): { readonly number: number; readonly value: Uint8Array | undefined } | undefined {
    if (this.#at === this.#bytes.length) return undefined
    const tag = this.#varint()
    const value = this.#value(tag % 8)
    return { number: Math.floor(tag / 8), value }
  }

  #value(type: number): Uint8Array | undefined {
    switch (type) {
      case 0:
        this.#varint()
        return undefined
      case 1:
        return this.#skip(8)
      case 2:
        return this.#take(this.#varint())
      case 5:
        return this.#skip(4)
      default:
        throw new MalformedMessage()
    }
  }

  #skip(length: number): undefined {
    this.#take(length)
  }

  #take(length: number): Uint8Array {
    const start = this.#at
    this.#at += length
    if (this.#at > this.#bytes.length) throw new MalformedMessage()
    return this.#bytes.subarray(start, this.#at)
  }

  #varint(): number {
    let value = 0
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#bytes[this.#at++]
      if (byte === undefined) break
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
    throw new MalformedMessage()
  }
}

/**
 * Returns all values of a field. A message that occurs several times is merged by its reader, so each occurrence
 * is looked at. @throws MalformedMessage
 */
export function stringsAt(bytes: Uint8Array, [wanted, ...rest]: FieldPath): readonly string[] {
  const found: string[] = []
  const reader = new FieldReader(bytes)
  for (let field = reader.next(); field !== undefined; field = reader.next()) {
    const { number, value } = field
    if (number !== wanted || value === undefined) continue
    if (rest.length > 0) found.push(...stringsAt(value, rest))
    else found.push(Buffer.from(value).toString())
  }
  return found
}
