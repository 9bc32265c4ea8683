// Vector loops that skip text in which nothing can begin. They read whole vectors: up to 15 bytes behind
// the text are looked at (every block has that slack) and never answered.
import { P_ANCHORED, P_CLASS_OF } from './program'
import { firstClasses } from './step'

// @ts-ignore: decorator
@inline
function digitsAndSigns(v: v128): v128 {
  const digits = i8x16.lt_u(i8x16.sub(v, i8x16.splat(48)), i8x16.splat(10))
  const plus = i8x16.eq(v, i8x16.splat(43))
  const bracket = i8x16.eq(v, i8x16.splat(40))
  return v128.or(digits, v128.or(plus, bracket))
}

/** The first digit, '+' or '(' (if `numbers`) or '@' (if `emails`) from `from` on, or `length`. */
export function nextTrigger(text: usize, from: i32, length: i32, numbers: bool, emails: bool): i32 {
  const at = i8x16.splat(64)
  for (let i = from; i < length; i += 16) {
    const v = v128.load(text + i)
    let hits = emails ? i8x16.eq(v, at) : i8x16.splat(0)
    if (numbers) hits = v128.or(hits, digitsAndSigns(v))
    const mask = i8x16.bitmask(hits)
    if (mask != 0) return min(i + ctz(mask), length)
  }
  return length
}

// --- first bytes of a pattern --------------------------------------------------------------------
//
// A set of ASCII bytes as two tables of 16: the bit of a byte's upper half in the table of lower halves,
// and which bit that is in the table of upper halves. A byte is in the set when both have a bit in common.
// Bytes of 0x80 and up are all in or all out.
//
//   +0 lower halves   +16 upper halves   +32 all ones when bytes of 0x80 and up are in

/** Bytes of the tables. */
export const FILTER_BYTES: usize = 48
/** A filter that stops at more of the most frequent letters than this costs more than it saves. */
const COMMON_LIMIT: i32 = 6
/** Space and the letters that make most of European text: ' etaoinshrdlu'. */
const COMMON = memory.data<u8>([32, 101, 116, 97, 111, 105, 110, 115, 104, 114, 100, 108, 117])
const COMMON_COUNT = 13

const classes = memory.data(272)

function isFirst(program: usize, byte: i32): bool {
  return load<u8>(classes + load<u8>(program + byte, P_CLASS_OF)) != 0
}

/** Makes the filter of a program at `tables`; false when skipping would not pay or a match may be empty. */
export function makeFilter(program: usize, tables: usize): bool {
  memory.fill(classes, 0, 272)
  if (!firstClasses(program, load<u32>(program, P_ANCHORED), classes)) return false
  let common = 0
  for (let i = 0; i < COMMON_COUNT; i++) if (isFirst(program, load<u8>(COMMON + i))) common++
  if (common > COMMON_LIMIT) return false
  memory.fill(tables, 0, FILTER_BYTES)
  for (let byte = 0; byte < 256; byte++) {
    if (!isFirst(program, byte)) continue
    if (byte >= 128) memory.fill(tables + 32, 255, 16)
    else store<u8>(tables + (byte & 15), load<u8>(tables + (byte & 15)) | (<u8>1 << <u8>(byte >> 4)))
  }
  for (let i = 0; i < 8; i++) store<u8>(tables + i, <u8>1 << <u8>i, 16)
  return true
}

/** The first byte of the set from `from` on, or `length`. */
export function nextFirst(tables: usize, text: usize, from: i32, length: i32): i32 {
  const lower = v128.load(tables)
  const upper = v128.load(tables, 16)
  const high = v128.load(tables, 32)
  for (let i = from; i < length; i += 16) {
    const v = v128.load(text + i)
    const ascii = v128.and(i8x16.swizzle(lower, v128.and(v, i8x16.splat(15))), i8x16.swizzle(upper, i8x16.shr_u(v, 4)))
    const none = i8x16.eq(ascii, i8x16.splat(0))
    const other = v128.and(high, i8x16.lt_s(v, i8x16.splat(0)))
    const mask = i8x16.bitmask(v128.or(v128.not(none), other))
    if (mask != 0) return min(i + ctz(mask), length)
  }
  return length
}
