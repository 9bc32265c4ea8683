/** The part of Node's `Buffer` that the core uses, for hosts that do not have it. Bundles inject it. */
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Shorter texts are written faster by a loop than by an encoder, which needs a view. */
const shortText = 128

class Bytes extends Uint8Array {
  /** Writes a text to an offset. Returns the number of bytes. Lone surrogates become U+FFFD. */
  write(text: string, offset: number, encoding: 'utf8' | 'latin1' = 'utf8'): number {
    if (encoding === 'utf8') {
      if (text.length <= shortText && this.#writeAscii(text, offset)) return text.length
      const rest = new Uint8Array(this.buffer, this.byteOffset + offset, this.length - offset)
      return encoder.encodeInto(text, rest).written
    }
    for (let at = 0; at < text.length; at++) this[offset + at] = text.charCodeAt(at)
    return text.length
  }

  override toString(encoding: 'utf8' | 'latin1' = 'utf8', start = 0, end = this.length): string {
    const part = end - start === this.length ? this : this.subarray(start, end)
    if (encoding === 'utf8') return decoder.decode(part)
    return Array.from(part, (byte) => String.fromCharCode(byte)).join('')
  }

  /** Copies bytes [start, end) to an offset of the target. Returns their number. */
  copy(target: Uint8Array, offset = 0, start = 0, end = this.length): number {
    target.set(this.subarray(start, end), offset)
    return end - start
  }

  writeInt32LE(value: number, offset: number): number {
    this.#view().setInt32(offset, value, true)
    return offset + 4
  }

  writeDoubleLE(value: number, offset: number): number {
    this.#view().setFloat64(offset, value, true)
    return offset + 8
  }

  /** Returns false if the text is not ASCII. */
  #writeAscii(text: string, offset: number): boolean {
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at)
      if (unit > 0x7f) return false
      this[offset + at] = unit
    }
    return true
  }

  #view(): DataView {
    return new DataView(this.buffer, this.byteOffset, this.length)
  }
}

export const Buffer = {
  /** A text in UTF-8, a copy of bytes, or a view of memory. */
  from(content: string | Uint8Array | ArrayBuffer): Bytes {
    if (typeof content !== 'string') return new Bytes(content as ArrayBuffer)
    const { buffer, byteOffset, length } = encoder.encode(content)
    return new Bytes(buffer, byteOffset, length)
  },
  alloc: (size: number): Bytes => new Bytes(size),
  byteLength: (text: string): number => encoder.encode(text).length,
}

/** The same bytes as an ordinary array. The core returns copies, which are not in shared memory. */
export const plain = ({ buffer, byteOffset, length }: Uint8Array): Uint8Array<ArrayBuffer> =>
  new Uint8Array(buffer as ArrayBuffer, byteOffset, length)
