/**
 * UTF-8 as `tiktoken` gets it: what is not UTF-8 is read as U+FFFD, one for each maximal part of a
 * character (as the WHATWG decoder does), so lone surrogates in three bytes are three of them.
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
 * Length of the character at `p`, whose lead byte is not ASCII: 2 to 4; or, where no whole
 * character stands, minus the length of the part that one U+FFFD stands for.
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

/** Address of the first byte that begins no character of UTF-8; `end` when all do. */
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

// --- the bytes behind a text ---------------------------------------------------------------------------
//
// Sixteen zeros stand there while a text is split. The bytes may be anyone's, a block's header for
// one: they are put back before anything else looks, at the end and around every allocation.

/** What the zeros stand in for. */
const tail: usize = memory.data(16, 16)
let tailAt: usize = 0

/** Puts zeros behind the text that ends at `end`. */
export function coverTail(end: usize): void {
  tailAt = end
  v128.store(tail, v128.load(end))
  v128.store(end, i8x16.splat(0))
}

/** Puts the bytes back that `coverTail` covered; the text's end. */
export function uncoverTail(): usize {
  v128.store(tailAt, v128.load(tail))
  return tailAt
}
