// JSON strings to UTF-8 and back. Half of a surrogate pair is kept, as three bytes (ED A0...BF xx), only at
// the start and at the end of a string, because the other half may stand in the next delta; `joinText` joins
// the halves. Any other half becomes U+FFFD.
import { append, appendAscii, appendByte, Bytes, reserve } from './bytes'

// @ts-ignore: decorator
@inline
function hexValue(byte: u32): u32 {
  return byte < 58 ? byte - 48 : (byte | 32) - 87
}

function hexAt(from: usize): u32 {
  return (
    (hexValue(load<u8>(from)) << 12) | (hexValue(load<u8>(from, 1)) << 8) |
    (hexValue(load<u8>(from, 2)) << 4) | hexValue(load<u8>(from, 3))
  )
}

function appendPoint(out: Bytes, point: u32): void {
  if (!reserve(out, 4)) return
  const at = out.data + out.used
  if (point < 0x80) {
    store<u8>(at, point)
    out.used += 1
  } else if (point < 0x800) {
    store<u8>(at, 0xc0 | (point >> 6))
    store<u8>(at, 0x80 | (point & 63), 1)
    out.used += 2
  } else if (point < 0x10000) {
    store<u8>(at, 0xe0 | (point >> 12))
    store<u8>(at, 0x80 | ((point >> 6) & 63), 1)
    store<u8>(at, 0x80 | (point & 63), 2)
    out.used += 3
  } else {
    store<u8>(at, 0xf0 | (point >> 18))
    store<u8>(at, 0x80 | ((point >> 12) & 63), 1)
    store<u8>(at, 0x80 | ((point >> 6) & 63), 2)
    store<u8>(at, 0x80 | (point & 63), 3)
    out.used += 4
  }
}

function unescaped(byte: u32): u32 {
  if (byte == 110) return 10
  if (byte == 116) return 9
  if (byte == 114) return 13
  if (byte == 98) return 8
  return byte == 102 ? 12 : byte
}

/** Appends the text of a checked JSON string without its quotes, [from, end). */
export function appendUnescaped(out: Bytes, from: usize, end: usize): void {
  if (!reserve(out, <i32>(end - from))) return
  let at = from
  while (at < end) {
    let plain = at
    while (plain < end && load<u8>(plain) != 92) plain++
    append(out, at, <i32>(plain - at))
    at = plain
    if (at >= end) return
    const kind = <u32>load<u8>(at, 1)
    if (kind == 117) at = appendUnicode(out, at, from, end)
    else {
      appendByte(out, unescaped(kind))
      at += 2
    }
  }
}

/** Appends the character of the \u escape at `at`; the address behind it. */
function appendUnicode(out: Bytes, at: usize, start: usize, end: usize): usize {
  const unit = hexAt(at + 2)
  const next = at + 6
  if (unit - 0xd800 >= 0x800) {
    appendPoint(out, unit)
    return next
  }
  const isHigh = unit < 0xdc00
  if (isHigh && next + 6 <= end && load<u8>(next) == 92 && load<u8>(next, 1) == 117) {
    const low = hexAt(next + 2)
    if (low - 0xdc00 < 0x400) {
      appendPoint(out, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
      return next + 6
    }
  }
  const isKept = isHigh ? next == end : at == start
  appendPoint(out, isKept ? unit : 0xfffd)
  return next
}

/** 0xd800 to 0xdfff if half of a pair is at `at`, otherwise 0. */
function halfAt(at: usize): u32 {
  if (load<u8>(at) != 0xed || load<u8>(at, 1) < 0xa0) return 0
  return 0xd000 | (<u32>(load<u8>(at, 1) & 63) << 6) | (load<u8>(at, 2) & 63)
}

/**
 * Appends a text to the text before, whose last half pair is `half` (0 for none). Returns the half with which
 * the text ends, which is not appended.
 */
export function joinText(out: Bytes, half: u32, from: usize, length: i32): u32 {
  if (length == 0) return half
  let at = from
  const end = from + length
  const begins = length >= 3 ? halfAt(at) : 0
  if (half != 0 && begins >= 0xdc00) {
    appendPoint(out, 0x10000 + ((half - 0xd800) << 10) + (begins - 0xdc00))
    at += 3
  } else {
    if (half != 0) appendPoint(out, 0xfffd)
    if (begins >= 0xdc00) {
      appendPoint(out, 0xfffd)
      at += 3
    }
  }
  let ends: u32 = end - at >= 3 ? halfAt(end - 3) : 0
  if (ends >= 0xdc00) ends = 0
  append(out, at, <i32>(end - at) - (ends != 0 ? 3 : 0))
  return ends
}

/** Appends U+FFFD for a half whose other half did not come. */
export function endText(out: Bytes, half: u32): void {
  if (half != 0) appendPoint(out, 0xfffd)
}

// @ts-ignore: decorator
@inline
function needsEscape(v: v128): i32 {
  const marks = v128.or(i8x16.eq(v, i8x16.splat(34)), i8x16.eq(v, i8x16.splat(92)))
  return i8x16.bitmask(v128.or(marks, i8x16.lt_u(v, i8x16.splat(32))))
}

/** Appends a text as a JSON string, with its quotes. Reads up to 16 bytes behind the text. */
export function appendString(out: Bytes, from: usize, length: i32): void {
  if (!reserve(out, length + 2)) return
  appendByte(out, 34)
  const end = from + length
  let at = from
  let plain = from
  while (at < end) {
    const found = needsEscape(v128.load(at))
    if (found == 0) {
      at += 16
      continue
    }
    at += ctz(found)
    if (at >= end) break
    append(out, plain, <i32>(at - plain))
    appendEscape(out, load<u8>(at))
    at++
    plain = at
  }
  append(out, plain, <i32>(end - plain))
  appendByte(out, 34)
}

function appendEscape(out: Bytes, byte: u32): void {
  if (byte == 34) appendAscii(out, '\\"')
  else if (byte == 92) appendAscii(out, '\\\\')
  else if (byte == 10) appendAscii(out, '\\n')
  else if (byte == 13) appendAscii(out, '\\r')
  else if (byte == 9) appendAscii(out, '\\t')
  else {
    appendAscii(out, byte < 16 ? '\\u000' : '\\u001')
    appendByte(out, (byte & 15) < 10 ? 48 + (byte & 15) : 87 + (byte & 15))
  }
}
