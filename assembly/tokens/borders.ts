/**
 * Borders between two characters that no token crosses: no token contains bytes of both. Nothing merges
 * across such a border, so the parts on both sides are encoded separately. Most words of scripts without
 * spaces, and most emoji, are such parts.
 *
 *     joins    a bit for each hash of two characters that a token contains whole
 *     seams    a bit for each last byte of a character and the two first bytes of the next one that
 *              a token contains without all bytes of the two
 *
 * Borders next to ASCII are not checked, because tokens cross most of them.
 */
import { joins, seams } from './tables'

export const JOIN_BITS: u32 = 19
export const SEAM_BITS: u32 = 18

/** Masks of the low 0 to 15 bytes of 16. */
export const BYTE_MASKS: usize = memory.data<u64>([
  0, 0, 0xff, 0, 0xffff, 0, 0xffffff, 0, 0xffffffff, 0, 0xffffffffff, 0, 0xffffffffffff, 0,
  0xffffffffffffff, 0, 0xffffffffffffffff, 0, 0xffffffffffffffff, 0xff, 0xffffffffffffffff, 0xffff,
  0xffffffffffffffff, 0xffffff, 0xffffffffffffffff, 0xffffffff, 0xffffffffffffffff, 0xffffffffff,
  0xffffffffffffffff, 0xffffffffffff, 0xffffffffffffffff, 0xffffffffffffff,
])

/** The bytes of the character at `p`, the first one lowest. The text is valid UTF-8. */
// @ts-ignore: decorator
@inline
export function characterAt(p: usize): u32 {
  const bytes = load<u32>(p)
  const lead = bytes & 255
  if (lead < 0x80) return lead
  return bytes & (lead < 0xe0 ? 0xffff : lead < 0xf0 ? 0xffffff : 0xffffffff)
}

/** Length of a character that `characterAt` returned; 1 of NUL. */
// @ts-ignore: decorator
@inline
export function characterLength(character: u32): usize {
  return <usize>(39 - clz(character | 1)) >> 3
}

// @ts-ignore: decorator
@inline
function joinBit(left: u32, right: u32): u32 {
  const hash = ((<u64>left << 32) | <u64>right) * 0x9e3779b97f4a7c15
  return <u32>((hash ^ (hash << 29)) >> (64 - JOIN_BITS))
}

/** `last` is the last byte of a character. */
// @ts-ignore: decorator
@inline
function seamBit(last: u32, first: u32, second: u32): u32 {
  return ((last & 63) << 12) | ((first & 63) << 6) | (second & 63)
}

// @ts-ignore: decorator
@inline
function hasBit(table: usize, bit: u32): bool {
  return ((<u32>load<u8>(table + (bit >> 3)) >> (bit & 7)) & 1) != 0
}

function setBit(table: usize, bit: u32): void {
  const at = table + (bit >> 3)
  store<u8>(at, load<u8>(at) | <u8>(<u32>1 << (bit & 7)))
}

/** Returns true if no token contains bytes of both characters, the left one first; false next to ASCII. */
// @ts-ignore: decorator
@inline
export function isSeparate(left: u32, right: u32): bool {
  if (left < 0x80 || right < 0x80) return false
  if (hasBit(joins, joinBit(left, right))) return false
  const last = left >> (24 - (clz(left) & 24))
  return !hasBit(seams, seamBit(last, right, right >> 8))
}

/** Length of the character with this lead byte. */
function lengthOf(lead: u32): usize {
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
}

/** Marks the border at `border` of the token [start, end). */
function markBorder(joinTable: usize, seamTable: usize, start: usize, border: usize, end: usize): void {
  let left = border - 1
  while (left > start && (load<u8>(left) & 0xc0) == 0x80) left--
  const lead = <u32>load<u8>(left)
  const isWhole = lead >= 0xc2 && border - left == lengthOf(lead)
  const first = <u32>load<u8>(border)
  if (isWhole && border + lengthOf(first) <= end) {
    setBit(joinTable, joinBit(characterAt(left), characterAt(border)))
    return
  }
  const last = <u32>load<u8>(border - 1)
  if (border + 1 < end) {
    setBit(seamTable, seamBit(last, first, load<u8>(border, 1)))
    return
  }
  for (let second: u32 = 0; second < 64; second++) setBit(seamTable, seamBit(last, first, second))
}

/** Marks the borders inside a token of at least two bytes. The 3 bytes after it must be readable. */
export function markBorders(joinTable: usize, seamTable: usize, start: usize, length: usize): void {
  const end = start + length
  for (let p = start + 1; p < end; p++) {
    if (load<u8>(p) >= 0xc2 && load<u8>(p - 1) >= 0x80) markBorder(joinTable, seamTable, start, p, end)
  }
}
