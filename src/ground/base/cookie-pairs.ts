/** A part of a Cookie field (RFC 6265 section 5.4), without the spaces around it. */
interface CookiePair {
  /** The part as it was sent. */
  readonly text: string
  readonly name: string
  /** Without quotes around it; undefined if the part has no `=`. */
  readonly value: string | undefined
}

/** Reads the pairs of Cookie fields in order. HTTP/2 may send one field for each cookie (RFC 9113 8.2.3). */
export function* cookiePairs(lines: Iterable<string>): Generator<CookiePair, undefined> {
  for (const line of lines) {
    for (const part of line.split(';')) {
      const text = part.trim()
      const equals = text.indexOf('=')
      if (equals >= 0) {
        const value = text.slice(equals + 1).trim()
        const unquoted = value.replace(/^"(.*)"$/, '$1')
        yield { text, name: text.slice(0, equals).trimEnd(), value: unquoted }
      } else if (text !== '') yield { text, name: text, value: undefined }
    }
  }
}
