/**
 * The syntax of JSON (RFC 8259) in bytes. A function that reads something from an offset returns the offset
 * after it. If it is not there, the result is the complement (`~`) of the offset of the problem, which is negative.
 */
export const quote = 0x22
export const backslash = 0x5c
export const comma = 0x2c
export const colon = 0x3a
export const openBrace = 0x7b
export const closeBrace = 0x7d
export const openBracket = 0x5b
export const closeBracket = 0x5d
export const letterN = 0x6e
export const firstPrintable = 0x20
const minus = 0x2d
const plus = 0x2b
const point = 0x2e
const zero = 0x30
const letterE = 0x65
const letterU = 0x75

/** Returns whether the bytes from `start` on begin with `wanted`. */
export function hasBytes(bytes: Buffer, start: number, wanted: Uint8Array): boolean {
  for (let at = 0; at < wanted.length; at++) if (bytes[start + at] !== wanted[at]) return false
  return true
}

export const isSpace = (unit: number | undefined): boolean =>
  unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09

/** Returns the offset of the first byte that is not white space. */
export function afterSpace(bytes: Buffer, from: number): number {
  let at = from
  while (isSpace(bytes[at])) at++
  return at
}

/** Reads a string, a number, true, false or null. */
export function afterScalar(bytes: Buffer, from: number): number {
  const first = bytes[from]
  if (first === quote) return afterString(bytes, from)
  if (first === minus || isDigit(first)) return afterNumber(bytes, from)
  for (const literal of literals) {
    if (hasBytes(bytes, from, literal)) return from + literal.length
  }
  return ~from
}

const literals = ['true', 'false', 'null'].map((text) => Buffer.from(text))

/** Reads a string whose first quote is at `from`. */
export function afterString(bytes: Buffer, from: number): number {
  const { length } = bytes
  let at = from + 1
  while (at < length) {
    const byte = bytes[at] ?? 0
    if (byte === quote) return at + 1
    if (byte < firstPrintable) return ~at
    if (byte !== backslash) at++
    else {
      const end = afterEscape(bytes, at)
      if (end < 0) return ~at
      at = end
    }
  }
  return ~at
}

function afterEscape(bytes: Buffer, from: number): number {
  const kind = bytes[from + 1]
  if (kind !== letterU) return isShortEscape(kind) ? from + 2 : ~from
  const end = from + 6
  for (let at = from + 2; at < end; at++) if (!isHexDigit(bytes[at])) return ~from
  return end
}

/** Returns whether the byte follows a backslash in a short escape: `"`, `\`, `/`, b, f, n, r or t. */
function isShortEscape(byte: number | undefined): boolean {
  switch (byte) {
    case quote:
    case backslash:
    case 0x2f:
    case 0x62:
    case 0x66:
    case letterN:
    case 0x72:
    case 0x74:
      return true
    default:
      return false
  }
}

export const isDigit = (byte = 0): boolean => byte >= zero && byte <= 0x39

function isHexDigit(byte = 0): boolean {
  const lower = byte | 0x20
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66)
}

function afterNumber(bytes: Buffer, from: number): number {
  let at = bytes[from] === minus ? from + 1 : from
  at = bytes[at] === zero ? at + 1 : afterDigits(bytes, at)
  if (at >= 0 && bytes[at] === point) at = afterDigits(bytes, at + 1)
  if (at >= 0 && ((bytes[at] ?? 0) | 0x20) === letterE) {
    const sign = bytes[at + 1]
    at = afterDigits(bytes, sign === plus || sign === minus ? at + 2 : at + 1)
  }
  return at < 0 ? ~from : at
}

function afterDigits(bytes: Buffer, from: number): number {
  let at = from
  while (isDigit(bytes[at])) at++
  return at > from ? at : ~from
}
