// The pattern's text: a cursor over validated UTF-8.
import { REGEX_BAD_UTF8 } from '../abi'
import { fail } from './codes'

let text: usize = 0
let end: i32 = 0
/** Byte offset of the next character. */
export let position: i32 = 0

export function readerStart(pattern: usize, length: i32): void {
  text = pattern
  end = length
  position = 0
}

export function seek(offset: i32): void {
  position = offset
}

// @ts-ignore: decorator
@inline
export function atEnd(): bool {
  return position >= end
}

/** Returns the byte `ahead` places after the cursor, or 0 at the end (NUL has no meaning in the syntax). */
export function peek(ahead: i32 = 0): u32 {
  return position + ahead < end ? <u32>load<u8>(text + position + ahead) : 0
}

/** Skips `byte` if it is the next one. */
export function accept(byte: u32): bool {
  if (atEnd() || peek() != byte) return false
  position++
  return true
}

/** Reads the next code point; the text was checked by `isUtf8`. */
export function nextCodePoint(): u32 {
  const first = <u32>load<u8>(text + position++)
  if (first < 0x80) return first
  const count = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3
  let point = first & (0x3f >> count)
  for (let i = 0; i < count; i++) point = (point << 6) | (<u32>load<u8>(text + position++) & 0x3f)
  return point
}

/** Returns the length of the well-formed sequence at `at`; 0 if it is malformed (RFC 3629, section 4). */
export function sequenceLength(at: usize, left: i32): i32 {
  const first = <u32>load<u8>(at)
  if (first < 0x80) return 1
  if (first < 0xc2 || first > 0xf4) return 0
  const count = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4
  if (left < count) return 0
  const second = <u32>load<u8>(at, 1)
  const low: u32 = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80
  const high: u32 = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf
  if (second < low || second > high) return 0
  for (let i = 2; i < count; i++) if ((load<u8>(at + i) & 0xc0) != 0x80) return 0
  return count
}

/** Checks the pattern once, before it is parsed. */
export function checkUtf8(pattern: usize, length: i32): bool {
  let i = 0
  while (i < length) {
    const size = sequenceLength(pattern + i, length - i)
    if (size == 0) {
      fail(REGEX_BAD_UTF8, i)
      return false
    }
    i += size
  }
  return true
}

/** Value of a hexadecimal digit, or -1. */
export function hexValue(byte: u32): i32 {
  if (byte - 48 < 10) return <i32>byte - 48
  const lower = byte | 32
  return lower - 97 < 6 ? <i32>lower - 87 : -1
}

/** Returns true if the text at `offset` equals `expected` (a static NUL-terminated string). */
export function sameName(offset: i32, length: i32, expected: usize, expectedLength: i32): bool {
  return length == expectedLength && memory.compare(text + offset, expected, length) == 0
}

/** Address of the byte at `offset`. */
export function textAt(offset: i32): usize {
  return text + offset
}
