/**
 * ASCII work on spans: folding, comparing, hashing, and finding the first byte outside a class.
 * Vector loads may read up to 15 bytes past a span; every block of this module has that slack.
 */

// --- classes -------------------------------------------------------------------------------------
//
// A class of ASCII bytes is 16 columns (the low nibble) of 8 bits (the high nibble, 0 to 7): byte c
// belongs when bit (c >> 4) of column (c & 15) is set. Bytes from 0x80 have no bit, so never belong.
// One `swizzle` by each nibble and one `and` classify 16 bytes.

/** Bit of each high nibble. */
const ROWS: usize = memory.data<u8>([1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0], 16)

/** First address in [p, end) whose byte is outside the class `columns`; `end` if there is none. */
// @ts-ignore: decorator
@inline
function skipClass(from: usize, end: usize, table: usize): usize {
  const columns = v128.load(table)
  const rows = v128.load(ROWS)
  let p = from
  while (p < end) {
    const bytes = v128.load(p)
    const low = i8x16.swizzle(columns, v128.and(bytes, i8x16.splat(15)))
    const high = i8x16.swizzle(rows, i8x16.shr_u(bytes, 4))
    const outside = i8x16.bitmask(i8x16.eq(v128.and(low, high), i8x16.splat(0)))
    if (outside != 0) {
      const found = p + <usize>ctz<i32>(outside)
      return found < end ? found : end
    }
    p += 16
  }
  return end
}

const TOKEN: usize = memory.data<u8>([
  0xe8, 0xfc, 0xf8, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc,
  0xf8, 0xf8, 0xf4, 0x54, 0xd0, 0x54, 0xf4, 0x70,
], 16)

/** Skips token bytes (RFC 9110 5.6.2). */
// @ts-ignore: decorator
@inline
export function skipToken(p: usize, end: usize): usize {
  return skipClass(p, end, TOKEN)
}

const TARGET: usize = memory.data<u8>([
  0xf8, 0xfc, 0xfc, 0xf8, 0xfc, 0xfc, 0xfc, 0xfc,
  0xfc, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc, 0x7c,
], 16)

/** Skips visible ASCII without `#`: what a request target may hold. */
export function skipTarget(p: usize, end: usize): usize {
  return skipClass(p, end, TARGET)
}

const PATH: usize = memory.data<u8>([
  0xf8, 0xfc, 0xfc, 0xf8, 0xfc, 0xfc, 0xfc, 0xfc,
  0xfc, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc, 0x74,
], 16)

/** Skips visible ASCII without `#` and `?`: the path of a request target. */
export function skipPath(p: usize, end: usize): usize {
  return skipClass(p, end, PATH)
}

const REG_NAME: usize = memory.data<u8>([
  0xa8, 0xfc, 0xf8, 0xf8, 0xfc, 0xf8, 0xfc, 0xfc,
  0xfc, 0xfc, 0xf4, 0x5c, 0x54, 0x5c, 0xd4, 0x70,
], 16)

/** Skips the bytes of a registered name (RFC 3986 3.2.2) but `%`, which begins an escape. */
export function skipRegName(p: usize, end: usize): usize {
  return skipClass(p, end, REG_NAME)
}

/** Skips what a field value may hold: everything but control characters other than tab. */
// @ts-ignore: decorator
@inline
export function skipValue(from: usize, end: usize): usize {
  let p = from
  while (p < end) {
    const bytes = v128.load(p)
    const low = i8x16.lt_u(bytes, i8x16.splat(0x20))
    const stop = v128.or(
      v128.andnot(low, i8x16.eq(bytes, i8x16.splat(9))),
      i8x16.eq(bytes, i8x16.splat(0x7f)),
    )
    const found = i8x16.bitmask(stop)
    if (found != 0) {
      p += <usize>ctz<i32>(found)
      return p < end ? p : end
    }
    p += 16
  }
  return end
}

/** Skips spaces and tabs. */
// @ts-ignore: decorator
@inline
export function skipBlank(from: usize, end: usize): usize {
  let p = from
  while (p < end && isBlank(load<u8>(p))) p++
  return p
}

/** Steps back over spaces and tabs before `end`, not beyond `start`. */
// @ts-ignore: decorator
@inline
export function trimBlank(start: usize, end: usize): usize {
  let p = end
  while (p > start && isBlank(load<u8>(p - 1))) p--
  return p
}

// @ts-ignore: decorator
@inline
export function isBlank(byte: u8): bool {
  return byte == 0x20 || byte == 0x09
}

// @ts-ignore: decorator
@inline
export function isDigit(byte: u8): bool {
  return byte - 0x30 <= 9
}

/** The value of a hexadecimal digit, -1 for any other byte. */
// @ts-ignore: decorator
@inline
export function hexValue(byte: u8): i32 {
  if (isDigit(byte)) return <i32>byte - 0x30
  const letter = <i32>(byte | 0x20) - 0x61
  return letter >= 0 && letter < 6 ? letter + 10 : -1
}

// --- folding, comparing, hashing -------------------------------------------------------------------

/** Eight bytes with A-Z turned into a-z. */
// @ts-ignore: decorator
@inline
export function fold8(bytes: u64): u64 {
  const low = bytes & 0x7f7f7f7f7f7f7f7f
  const fromA = low + 0x3f3f3f3f3f3f3f3f
  const beyondZ = low + 0x2525252525252525
  return bytes | ((fromA & ~beyondZ & ~bytes & 0x8080808080808080) >> 2)
}

/** One byte with A-Z turned into a-z. */
// @ts-ignore: decorator
@inline
export function fold(byte: u8): u8 {
  return byte - 0x41 <= 25 ? byte | 0x20 : byte
}

/** The low `length` (1 to 7) bytes of a word. */
// @ts-ignore: decorator
@inline
function lowBytes(word: u64, length: usize): u64 {
  return word & (<u64>-1 >> (64 - (<u64>length << 3)))
}

/** Are two spans of one length the same bytes? */
// @ts-ignore: decorator
@inline
export function isEqual(a: usize, b: usize, length: usize): bool {
  let left = length
  let p = a
  let q = b
  while (left >= 8) {
    if (load<u64>(p) != load<u64>(q)) return false
    p += 8
    q += 8
    left -= 8
  }
  return left == 0 || lowBytes(load<u64>(p) ^ load<u64>(q), left) == 0
}

/** The same with ASCII case ignored in `a`; `b` is lower case already. */
// @ts-ignore: decorator
@inline
export function isEqualFolded(a: usize, b: usize, length: usize): bool {
  let left = length
  let p = a
  let q = b
  while (left >= 8) {
    if (fold8(load<u64>(p)) != load<u64>(q)) return false
    p += 8
    q += 8
    left -= 8
  }
  return left == 0 || lowBytes(fold8(load<u64>(p)) ^ load<u64>(q), left) == 0
}

/** Writes `length` bytes of `from` to `to` in lower case; may write up to 7 bytes more. */
export function copyFolded(to: usize, from: usize, length: usize): void {
  for (let i: usize = 0; i < length; i += 8) store<u64>(to + i, fold8(load<u64>(from + i)))
}

/** Turns a span into lower case in place. */
export function foldInPlace(start: usize, length: usize): void {
  for (let i: usize = 0; i < length; i++) store<u8>(start + i, fold(load<u8>(start + i)))
}

/**
 * A 32-bit hash of the bytes and a seed. Never proof of equality: compare the bytes too. The seed
 * comes last, so that the bytes can be hashed while the seed is still being looked up.
 */
// @ts-ignore: decorator
@inline
export function hashBytes(p: usize, length: usize, seed: u64): u32 {
  const factor: u64 = 0x9e3779b97f4a7c15
  let hash: u64 = <u64>length
  let left = length
  let at = p
  while (left >= 8) {
    hash = rotl((hash ^ load<u64>(at)) * factor, 27)
    at += 8
    left -= 8
  }
  if (left != 0) hash = rotl((hash ^ lowBytes(load<u64>(at), left)) * factor, 27)
  hash = (hash ^ seed) * factor
  return <u32>(hash >> 32)
}

/** Less than, equal or greater than zero, by unsigned bytes, then by length. */
export function compareBytes(a: usize, aLength: usize, b: usize, bLength: usize): i32 {
  const common = min(aLength, bLength)
  for (let i: usize = 0; i < common; i++) {
    const difference = <i32>load<u8>(a + i) - <i32>load<u8>(b + i)
    if (difference != 0) return difference
  }
  return <i32>aLength - <i32>bLength
}
