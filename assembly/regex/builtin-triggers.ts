// One scan of a text for all builtins of a set. Each builtin has triggers: pairs of adjacent bytes of which every match
// has one near its start, and which are rare in other text. The scan notes which triggers each block of 64 bytes has.
// The builtins then look only at the blocks that have their own, so that one more builtin costs almost nothing.
//
// Triggers are in eight groups, one bit each. A byte is in a group if its lower half and its upper half are, so a group
// has some pairs more than those that were added. A pair belongs to the block of its second byte.
export const TRIGGER_DIGIT: u32 = 1
export const TRIGGER_AT: u32 = 2
export const TRIGGER_CAPITAL: u32 = 4
/** The groups of API keys besides TRIGGER_CAPITAL: pairs in a group must not combine to frequent ones. */
export const TRIGGER_UNDERSCORE: u32 = 8
export const TRIGGER_DASH: u32 = 16
export const TRIGGER_MIXED: u32 = 32
export const TRIGGER_RARE: u32 = 64
export const TRIGGER_INNER: u32 = 128

/** Lower halves of first bytes, their upper halves, and both of second bytes. */
const tables = memory.data(64)
const BLOCK_SHIFT: i32 = 6
const BLOCK: i32 = 1 << BLOCK_SHIFT
/** Maximum number of bytes that can be mapped. */
export const MAP_LIMIT: i32 = 66560
/** One byte for each block: its groups. Vector reads need 15 bytes behind the last one. */
const map = memory.data(MAP_LIMIT / 64 + 16)
let mapFrom: i32 = 0
let mapCount: i32 = 0
/** The groups of all blocks. */
let mapBits: u32 = 0

function addBytes(table: usize, group: u32, bytes: string): void {
  for (let i: usize = 0; i < 32 && bytes.length == 0; i++) store<u8>(table + i, load<u8>(table + i) | <u8>group)
  for (let i = 0; i < bytes.length; i++) {
    const byte = <usize>bytes.charCodeAt(i)
    store<u8>(table + (byte & 15), load<u8>(table + (byte & 15)) | <u8>group)
    store<u8>(table + (byte >> 4), load<u8>(table + (byte >> 4), 16) | <u8>group, 16)
  }
}

/** Adds the pairs of a first and a second byte to a group; no bytes stand for any. */
export function addTrigger(group: u32, first: string, second: string): void {
  addBytes(tables, group, first)
  addBytes(tables + 32, group, second)
}

/** Maps the groups `groups` of the text from `from` to `length`, at most MAP_LIMIT bytes. What is before `from` is not mapped. */
export function mapTriggers(text: usize, from: i32, length: i32, groups: u32): void {
  const lanes = i8x16.splat(<i8>groups)
  const half = i8x16.splat(15)
  const firstLower = v128.and(v128.load(tables), lanes)
  const firstUpper = v128.load(tables, 16)
  const secondLower = v128.load(tables, 32)
  const secondUpper = v128.load(tables, 48)
  let before = i8x16.splat(-1)
  mapFrom = from
  mapCount = 0
  mapBits = 0
  for (let i = from; i < length; mapCount++) {
    let found = i8x16.splat(0)
    for (const end = min(i + BLOCK, length); i < end; i += 16) {
      const v = v128.load(text + i)
      const lower = v128.and(v, half)
      const upper = i8x16.shr_u(v, 4)
      const first = v128.and(i8x16.swizzle(firstLower, lower), i8x16.swizzle(firstUpper, upper))
      const second = v128.and(i8x16.swizzle(secondLower, lower), i8x16.swizzle(secondUpper, upper))
      const previous = i8x16.shuffle(before, first, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)
      found = v128.or(found, v128.and(previous, second))
      before = first
    }
    let bits: u64 = 0
    if (v128.any_true(found)) {
      bits = i64x2.extract_lane(found, 0) | i64x2.extract_lane(found, 1)
      bits |= bits >> 32
      bits |= bits >> 16
      bits |= bits >> 8
      mapBits |= <u32>bits & 255
    }
    store<u8>(map + mapCount, <u8>bits)
  }
}

/** Returns the first offset from `from` on whose block may have one of the groups, or `length`. */
export function nextTriggered(groups: u32, from: i32, length: i32): i32 {
  if (from < mapFrom) return from
  if ((mapBits & groups) == 0) return length
  for (let k = (from - mapFrom) >> BLOCK_SHIFT; k < mapCount; k += 16) {
    const found = v128.and(v128.load(map + k), i8x16.splat(<i8>groups))
    if (!v128.any_true(found)) continue
    const at = k + ctz(i8x16.bitmask(i8x16.ne(found, i8x16.splat(0))))
    return at < mapCount ? max(from, mapFrom + (at << BLOCK_SHIFT)) : length
  }
  return length
}

/** Returns the end of the block with an offset; what is not mapped counts as one block. */
export function blockEnd(at: i32, length: i32): i32 {
  return at < mapFrom ? mapFrom : min(length, mapFrom + ((((at - mapFrom) >> BLOCK_SHIFT) + 1) << BLOCK_SHIFT))
}

/** Returns a bit for each of 16 bytes, from `at` (at least 1) on, that is the second one of a pair of the groups. */
export function triggersAt(text: usize, at: i32, groups: u32): i32 {
  const half = i8x16.splat(15)
  const a = v128.load(text + at - 1)
  const b = v128.load(text + at)
  const first = v128.and(i8x16.swizzle(v128.load(tables), v128.and(a, half)), i8x16.swizzle(v128.load(tables, 16), i8x16.shr_u(a, 4)))
  const second = v128.and(i8x16.swizzle(v128.load(tables, 32), v128.and(b, half)), i8x16.swizzle(v128.load(tables, 48), i8x16.shr_u(b, 4)))
  const found = v128.and(v128.and(first, second), i8x16.splat(<i8>groups))
  return i8x16.bitmask(i8x16.ne(found, i8x16.splat(0)))
}
