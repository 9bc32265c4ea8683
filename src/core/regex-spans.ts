/** A match, end exclusive. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** Bytes of the UTF-8 of the character at `index`; a lone surrogate is written as U+FFFD. */
function bytesAt(text: string, index: number): { units: number; bytes: number } {
  const point = text.codePointAt(index) ?? 0
  if (point < 0x80) return { units: 1, bytes: 1 }
  if (point < 0x800) return { units: 1, bytes: 2 }
  return point < 0x10000 ? { units: 1, bytes: 3 } : { units: 2, bytes: 4 }
}

/** Byte spans of a string's UTF-8, in rising order, as spans of the string's indices. */
export function toStringSpans(text: string, spans: readonly Span[]): Span[] {
  let index = 0
  let offset = 0
  const indexOf = (byte: number) => {
    while (offset < byte) {
      const { units, bytes } = bytesAt(text, index)
      index += units
      offset += bytes
    }
    return index
  }
  return spans.map(({ start, end }) => ({ start: indexOf(start), end: indexOf(end) }))
}
