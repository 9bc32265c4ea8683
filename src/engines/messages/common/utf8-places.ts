/** Positions in a text that arrives in pieces: vendors count bytes of UTF-8, and clients count characters. */

/** Maximum number of characters to read for one position. */
const sliceLength = 256

interface Slice {
  readonly text: string
  /** Start of the slice in the text. */
  readonly byte: number
  readonly character: number
}

export class Utf8Places {
  /** Pieces that no position was asked for yet. */
  #unread: string[] = []
  readonly #slices: Slice[] = []
  #bytes = 0
  #characters = 0

  add(piece: string): void {
    this.#unread.push(piece)
  }

  /** Length of the text in characters. */
  get length(): number {
    this.#read()
    return this.#characters
  }

  /** Returns the number of characters that begin before a byte of the text. */
  characterAt(byte: number): number {
    this.#read()
    if (byte <= 0) return 0
    if (byte >= this.#bytes) return this.#characters
    const slice = this.#sliceAt(byte)
    return slice.character + charactersIn(slice.text, byte - slice.byte)
  }

  /** Cuts the pieces into slices, outside of surrogate pairs. */
  #read(): void {
    for (const piece of this.#unread) {
      for (let start = 0; start < piece.length; ) {
        let end = Math.min(piece.length, start + sliceLength)
        if (end < piece.length && isHighSurrogate(piece.charCodeAt(end - 1))) end++
        this.#addSlice(piece.slice(start, end))
        start = end
      }
    }
    this.#unread = []
  }

  #addSlice(text: string): void {
    this.#slices.push({ text, byte: this.#bytes, character: this.#characters })
    this.#bytes += Buffer.byteLength(text)
    this.#characters += text.length
  }

  /** Returns the last slice that begins at or before a byte. */
  #sliceAt(byte: number): Slice {
    let low = 0
    let high = this.#slices.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#slices[middle] as Slice).byte <= byte) low = middle
      else high = middle - 1
    }
    return this.#slices[low] as Slice
  }
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00

/** Returns the number of bytes before each of some positions in a text. */
export function bytesBefore(text: string, positions: readonly number[]): Map<number, number> {
  const found = new Map<number, number>()
  let bytes = 0
  let last = 0
  for (const position of [...positions].sort((a, b) => a - b)) {
    const isInPair = isHighSurrogate(text.charCodeAt(position - 1))
    const end = Math.max(last, isInPair ? position - 1 : position)
    bytes += Buffer.byteLength(text.slice(last, end))
    last = end
    found.set(position, bytes)
  }
  return found
}

/** Returns the number of characters that begin before a byte of a short text. */
const charactersIn = (text: string, byte: number): number =>
  Buffer.from(text).toString('utf8', 0, byte).length
