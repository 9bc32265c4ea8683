// Secrets without a known form: tokens that look random. docs/regex.md describes the rule for users.
//
// A token is a run of ASCII letters, digits and `+/_-`, with the `=` of Base64 at its end. Its *changes* are the places at
// which two adjacent characters are of different kinds: upper-case letter, lower-case letter or digit. Random text has many
// changes; words and names in code have few. Entropy is Shannon's, of the characters of the token, in bits.
//
// The text before a token determines how random it must be. A stream keeps LOOKBACK written bytes for this.
import { isAlphanumeric, isDigit, isLetter } from './ascii'
import { isSecretWord } from './secret-words'

/** Maximum number of characters of a token; longer ones are files, not secrets. */
export const TOKEN_LIMIT: i32 = 128
/** Bytes before a token in which words are read. */
const CONTEXT: i32 = 48
/** Written bytes that a stream keeps: the start of a run that is too long, and the context of a token. */
export const LOOKBACK: i32 = 192

/** Minimum lengths after a word such as `key`, and without one. */
const NAMED_LENGTH: i32 = 16
const UNNAMED_LENGTH: i32 = 24
/** Minimum entropies, in 1/65536 bit: 3 and 4 bits. */
const NAMED_ENTROPY: u32 = 3 << 16
const UNNAMED_ENTROPY: u32 = 4 << 16

const counts = memory.data(128)
let upper: i32 = 0
let lower: i32 = 0
let changes: i32 = 0
/** The changes between a letter and a digit. */
let mixed: i32 = 0
let isHex: bool = false

// @ts-ignore: decorator
@inline
export function isTokenByte(byte: u32): bool {
  return isAlphanumeric(byte) || byte == 45 || byte == 95 || byte == 43 || byte == 47
}

/** Returns the start of the run of token bytes before `end`; at most one byte more than a token may have. */
export function runStart(text: usize, end: i32): i32 {
  const low = max(0, end - TOKEN_LIMIT - 1)
  let start = end
  while (start > low && isTokenByte(load<u8>(text + start - 1))) start--
  return start
}

/** Returns the end of the run of token bytes from `start` on. */
export function runEnd(text: usize, start: i32, length: i32): i32 {
  let end = start
  while (end < length && isTokenByte(load<u8>(text + end))) end++
  return end
}

/** Returns the start of the run at the end of the text that may still become a token; `length` if there is none. */
export function openRun(text: usize, length: i32): i32 {
  let end = length
  while (end > 0 && end > length - 2 && load<u8>(text + end - 1) == 61) end--
  const start = runStart(text, end)
  return end - start > TOKEN_LIMIT || start == end ? length : start
}

/** Returns the end of the token in `start`..`end`, with its padding, if it is a secret; 0 if not. */
export function secretEnd(text: usize, start: i32, end: i32, length: i32): i32 {
  const size = end - start
  if (size < NAMED_LENGTH || size > TOKEN_LIMIT) return 0
  measure(text, start, end)
  if (mixed == 0 || changes * 4 < size) return 0
  let padded = end
  while (padded < length && padded < end + 2 && load<u8>(text + padded) == 61) padded++
  if (!isNamed(text, start, end) && !isRandom(text, start, end, padded, length)) return 0
  return (padded - start) & 3 ? end : padded
}

/** Counts the kinds of characters. */
function measure(text: usize, start: i32, end: i32): void {
  memory.fill(counts, 0, 128)
  upper = 0
  lower = 0
  changes = 0
  mixed = 0
  isHex = true
  let before = 0
  for (let i = start; i < end; i++) {
    const byte = <u32>load<u8>(text + i)
    store<u8>(counts + byte, load<u8>(counts + byte) + 1)
    const kind = isDigit(byte) ? 1 : isLetter(byte) ? (byte < 97 ? 2 : 3) : 0
    upper += <i32>(kind == 2)
    lower += <i32>(kind == 3)
    const isChange = kind != before && kind != 0 && before != 0
    changes += <i32>isChange
    mixed += <i32>(isChange && (kind == 1 || before == 1))
    isHex = isHex && (kind == 1 || byte == 45 || (byte | 32) - 97 < 6)
    before = kind
  }
}

/** Returns the binary logarithm in 1/65536. */
function logarithm(value: u32): u32 {
  const whole: u32 = 31 - clz(value)
  let rest = <u64>value << <u64>(31 - whole)
  let result = whole
  for (let i = 0; i < 16; i++) {
    rest = (rest * rest) >> 31
    const bit = <u32>(rest >> 32)
    result = (result << 1) | bit
    rest >>= <u64>bit
  }
  return result
}

function hasEntropy(size: u32, least: u32): bool {
  let sum: u32 = 0
  for (let byte = 0; byte < 128; byte++) {
    const count = <u32>load<u8>(counts + byte)
    if (count > 1) sum += count * logarithm(count)
  }
  return logarithm(size) * size >= sum + least * size
}

/** Returns whether a token is a secret after a word such as `key`. Hashes and UUIDs also need `=` or `:` between the two. */
function isNamed(text: usize, start: i32, end: i32): bool {
  if (load<u8>(text + start) == 47 || !hasEntropy(end - start, NAMED_ENTROPY)) return false
  const low = max(0, start - CONTEXT)
  let isAssigned = false
  let at = start - 1
  for (; at >= low; at--) {
    const byte = <u32>load<u8>(text + at)
    if (isLetter(byte)) {
      const last = at
      while (at > low && isLetter(load<u8>(text + at - 1))) at--
      // A word that begins before the limit is ignored.
      if ((at > low || low == 0) && isSecretWord(text, at, last + 1)) return isAssigned || !isHex
      continue
    }
    if (byte == 58 || byte == 61) isAssigned = true
    else if (isStop(byte) || (byte == 10 && at > 0 && load<u8>(text + at - 1) != 58)) return false
  }
  return false
}

/** Returns whether a byte is one of `,` `;` `&` `{` `}` `(` `)` `<` `|`. A word before it does not refer to the token. */
function isStop(byte: u32): bool {
  return byte == 44 || byte == 59 || byte == 38 || byte == 123 || byte == 125 || byte == 40 || byte == 41 || byte == 60 || byte == 124
}

/** Returns whether a token is a whole line of a longer text, such as a certificate. */
function isLine(text: usize, start: i32, end: i32, length: i32): bool {
  const begins = start == 0 || load<u8>(text + start - 1) == 10
  const ends = end == length || load<u8>(text + end) == 10 || load<u8>(text + end) == 13
  return begins && ends && (start > 0 || end < length)
}

/** Returns whether a token is a secret without a word: random, and no part of a path, checksum, public key or file. */
function isRandom(text: usize, start: i32, end: i32, padded: i32, length: i32): bool {
  const size = end - start
  if (size < UNNAMED_LENGTH || isHex || upper == 0 || lower == 0 || changes * 8 < size * 3) return false
  const before: u32 = start > 0 ? load<u8>(text + start - 1) : 0
  const first = load<u32>(text + start)
  // A part of a path or host name, or `AAAA`, with which public keys of SSH begin.
  if (before == 46 || (first & 255) == 47 || first == 0x41414141 || isLine(text, start, padded, length)) return false
  // `sha256-` of lock files, `h1:` of Go, `base64,` of data URLs.
  const isChecksum = (first & 0xffffff) == 0x616873 && isDigit(first >> 24)
  if (isChecksum || (start > 2 && before == 58 && load<u16>(text + start - 3) == 0x3168)) return false
  if (start > 3 && load<u32>(text + start - 4) == 0x2c343665) return false
  return hasEntropy(size, UNNAMED_ENTROPY)
}
