/**
 * Decodes UTF-8 as for `tiktoken`: invalid bytes are read as U+FFFD, one for each maximal part of a character
 * (as by the WHATWG decoder). A surrogate that is encoded in three bytes is therefore three U+FFFD.
 */

/** First byte that a lead byte allows after it, and the last, packed low | high << 8. */
// @ts-ignore: decorator
@inline
function secondRange(lead: u32): u32 {
  if (lead == 0xe0) return 0xbfa0
  if (lead == 0xed) return 0x9f80
  if (lead == 0xf0) return 0xbf90
  if (lead == 0xf4) return 0x8f80
  return 0xbf80
}

/**
 * Returns the length of the character at `p`, whose lead byte is not ASCII: 2 to 4. If the character is
 * invalid or incomplete, returns minus the length of the part that one U+FFFD replaces.
 */
function measure(p: usize, end: usize): i32 {
  const lead = <u32>load<u8>(p)
  if (lead < 0xc2 || lead > 0xf4) return -1
  const length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  let range = secondRange(lead)
  for (let i = 1; i < length; i++) {
    if (p + <usize>i >= end) return -i
    const byte = <u32>load<u8>(p + <usize>i)
    if (byte < (range & 255) || byte > range >> 8) return -i
    range = 0xbf80
  }
  return length
}

/** Returns the address of the first byte that is not valid UTF-8; `end` if all are. */
export function findInvalid(start: usize, end: usize): usize {
  let p = start
  while (p < end) {
    if (p + 16 <= end) {
      const high = i8x16.bitmask(v128.load(p))
      p += high == 0 ? 16 : <usize>ctz(high)
      if (high == 0) continue
    } else if (load<u8>(p) < 0x80) {
      p++
      continue
    }
    do {
      const length = measure(p, end)
      if (length < 0) return p
      p += <usize>length
    } while (p < end && load<u8>(p) >= 0x80)
  }
  return end
}

/** Writes the text to `to` (three times its length) with U+FFFD for invalid UTF-8; returns the new end. */
export function copyLossy(to: usize, start: usize, end: usize): usize {
  let p = start
  let out = to
  while (p < end) {
    const length = load<u8>(p) < 0x80 ? 1 : measure(p, end)
    if (length > 0) {
      for (let i = 0; i < length; i++) store<u8>(out++, load<u8>(p++))
      continue
    }
    store<u8>(out, 0xef)
    store<u8>(out, 0xbf, 1)
    store<u8>(out, 0xbd, 2)
    out += 3
    p += <usize>-length
  }
  return out
}

// --- the bytes after a text ----------------------------------------------------------------------------
//
// While a text is split, the sixteen bytes after it are zero. These bytes may belong to other data, such as
// the header of a block. They are therefore restored at the end, and around every allocation.

/** The original bytes after the text. */
const tail: usize = memory.data(16, 16)
let tailAt: usize = 0

/** Writes zeros after the text that ends at `end`. */
export function coverTail(end: usize): void {
  tailAt = end
  v128.store(tail, v128.load(end))
  v128.store(end, i8x16.splat(0))
}

/** Restores the bytes that `coverTail` replaced. Returns the end of the text. */
export function uncoverTail(): usize {
  v128.store(tailAt, v128.load(tail))
  return tailAt
}
