/**
 * The bytes of a bytes literal. The parser takes a character outside ASCII for one byte; CEL wants its
 * UTF-8, while `\xff` and `\377` are the byte itself.
 */
export function bytesOfLiteral(literal: string, parsed: Uint8Array): Uint8Array {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: this is what ASCII is
  if (/^[\x00-\x7f]*$/.test(literal)) return parsed
  const quotes = /^[bB]("""|'''|"|')/.exec(literal)?.[1] ?? '"'
  const text = literal.slice(1 + quotes.length, -quotes.length)
  const parts = text.match(/\\[xX]..|\\[0-7]{3}|\\.|[^\\]+/gs) ?? []
  return Buffer.concat(parts.map(bytesOfPart))
}

const escapes: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  t: 9,
  n: 10,
  v: 11,
  f: 12,
  r: 13,
}

function bytesOfPart(part: string): Buffer {
  if (!part.startsWith('\\')) return Buffer.from(part)
  if (/^\\[xX]/.test(part)) return Buffer.from([Number.parseInt(part.slice(2), 16)])
  if (/^\\[0-7]{3}$/.test(part)) return Buffer.from([Number.parseInt(part.slice(1), 8)])
  const escaped = part.slice(1)
  const code = escapes[escaped]
  return code === undefined ? Buffer.from(escaped) : Buffer.from([code])
}
