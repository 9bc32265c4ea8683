// Vector loops that skip text in which no match can begin. They read whole vectors: up to 15 bytes after
// the text are read (every block has this slack), but never returned as a result.
import { isLetter, isWord } from './ascii'
import { nextOfBuiltin } from './builtin-filter'
import { isLocal } from './detect'
import { P_ANCHORED, P_CLASS_OF } from './program'
import { beginClasses, nextClasses } from './step'

// @ts-ignore: decorator
@inline
function equal(v: v128, byte: u8): v128 {
  return i8x16.eq(v, i8x16.splat(byte))
}

/** Offset of the 16 bytes for which `nextCandidates` returned bits. */
export let candidatesAt: i32 = 0

/**
 * Finds the next 16 bytes, from `from` on, that contain a candidate: a position at which a builtin may match. Returns a
 * bit for each candidate, the lowest for the byte at `candidatesAt`, or 0 if there is none.
 *
 * With `numbers`, candidates are digits, '+' and '(' without a word character before; with `lettered`, also digits
 * after a letter. With `emails`, they are '@'
 * between a character of a local part and a letter or digit. The next byte is not checked at the end of the text or of
 * the 16 bytes.
 */
export function nextCandidates(text: usize, from: i32, length: i32, numbers: bool, lettered: bool, emails: bool): i32 {
  for (let i = from; i < length; i += 16) {
    const v = v128.load(text + i)
    const digits = i8x16.lt_u(i8x16.sub(v, i8x16.splat(48)), i8x16.splat(10))
    const at = emails ? equal(v, 64) : i8x16.splat(0)
    const starts = numbers ? v128.or(digits, v128.or(equal(v, 43), equal(v, 40))) : i8x16.splat(0)
    if (!v128.any_true(v128.or(at, starts))) continue
    const letters = i8x16.lt_u(i8x16.sub(v128.or(v, i8x16.splat(32)), i8x16.splat(97)), i8x16.splat(26))
    const alphanumeric = v128.or(digits, letters)
    const word = v128.or(alphanumeric, equal(v, 95))
    const local = v128.or(v128.or(word, equal(v, 46)), v128.or(equal(v, 37), v128.or(equal(v, 43), equal(v, 45))))
    const previous: u32 = i == 0 ? 0 : load<u8>(text + i - 1)
    const afterWord = (i8x16.bitmask(word) << 1) | <i32>isWord(previous)
    const afterLetter = lettered ? (i8x16.bitmask(letters) << 1) | <i32>isLetter(previous) : 0
    const afterLocal = (i8x16.bitmask(local) << 1) | <i32>isLocal(previous)
    const last = min(length - i, 16) - 1
    const beforeLabel = (i8x16.bitmask(alphanumeric) >> 1) | (1 << last)
    const found = (i8x16.bitmask(starts) & ~afterWord) | (i8x16.bitmask(digits) & afterLetter) | (i8x16.bitmask(at) & afterLocal & beforeLabel)
    const bits = found & ((2 << last) - 1)
    if (bits != 0) {
      candidatesAt = i
      return bits
    }
  }
  return 0
}

/** Returns a bit for each digit of the 16 bytes from `i` on, before `end`, that is adjacent to a letter. */
export function letteredDigits(text: usize, i: i32, end: i32, length: i32): i32 {
  const v = v128.load(text + i)
  const digits = i8x16.bitmask(i8x16.lt_u(i8x16.sub(v, i8x16.splat(48)), i8x16.splat(10)))
  if (digits == 0) return 0
  const letters = i8x16.bitmask(i8x16.lt_u(i8x16.sub(v128.or(v, i8x16.splat(32)), i8x16.splat(97)), i8x16.splat(26)))
  const before = i > 0 && isLetter(load<u8>(text + i - 1)) ? 1 : 0
  const after = i + 16 < length && isLetter(load<u8>(text + i + 16)) ? 1 << 15 : 0
  return digits & ((letters << 1) | before | (letters >> 1) | after) & ((2 << (min(end - i, 16) - 1)) - 1)
}

// --- first bytes of a pattern --------------------------------------------------------------------
//
// Three sets: the possible first, second and third bytes of a match. Text is skipped up to a position at which
// all three match, which is rare in prose. A pattern that a single byte can match has one set.
//
// A set of ASCII bytes is two tables of 16: the bit of a byte's upper half in the table of lower halves,
// and which bit that is in the table of upper halves. A byte is in the set if both have a bit in common.
// Either all bytes of 0x80 and up are in the set, or none.
//
// If each set has a single byte, as for most keys and names, the loop compares with that byte.
//
//   +0 upper halves, the same for all sets   +16 FILTER_*   +20 DETECT_* (FILTER_BUILTIN)
//   +32 sets:  +0 lower halves (FILTER_LITERAL: the byte)   +16 all ones when bytes of 0x80 and up are in

/** Bytes of the tables. */
export const FILTER_BYTES: usize = 128
const F_KIND: usize = 16
const FILTER_FIRST: u32 = 1
const FILTER_THREE: u32 = 2
const FILTER_LITERAL: u32 = 3
const FILTER_BUILTIN: u32 = 4
const F_DETECT: usize = 20
const F_SETS: usize = 32
const SET_BYTES: usize = 32
/** If a filter stops at more of the most frequent letters than this, it costs more than it saves. */
const COMMON_LIMIT: i32 = 6
/** Space and the letters that make most of European text: ' etaoinshrdlu'. */
const COMMON = memory.data<u8>([32, 101, 116, 97, 111, 105, 110, 115, 104, 114, 100, 108, 117])
const COMMON_COUNT = 13

const classes = memory.data(272)

function hasByte(program: usize, byte: i32): bool {
  return load<u8>(classes + load<u8>(program + byte, P_CLASS_OF)) != 0
}

/** The number of bytes in the last set, and one of them. */
let size: i32 = 0
let member: i32 = 0

/** Writes the bytes of `classes` as a set. Returns the number of most frequent characters in it. */
function writeSet(program: usize, set: usize): i32 {
  size = 0
  for (let byte = 0; byte < 256; byte++) {
    if (!hasByte(program, byte)) continue
    size++
    member = byte
    if (byte >= 128) memory.fill(set + 16, 255, 16)
    else store<u8>(set + (byte & 15), load<u8>(set + (byte & 15)) | (<u8>1 << <u8>(byte >> 4)))
  }
  let common = 0
  for (let i = 0; i < COMMON_COUNT; i++) if (hasByte(program, load<u8>(COMMON + i))) common++
  return common
}

/** Makes the filter of a program at `tables`. Returns false if it would cost more than it saves, or a match may be empty. */
export function makeFilter(program: usize, tables: usize): bool {
  memory.fill(tables, 0, FILTER_BYTES)
  for (let i = 0; i < 8; i++) store<u8>(tables + i, <u8>1 << <u8>i)
  let count: usize = 0
  let least = COMMON_COUNT
  let literal: u32 = 0
  beginClasses(load<u32>(program, P_ANCHORED))
  for (; count < 3; count++) {
    memory.fill(classes, 0, 272)
    if (!nextClasses(program, classes)) break
    least = min(least, writeSet(program, tables + F_SETS + count * SET_BYTES))
    if (size == 1) literal |= <u32>member << (<u32>count << 3) | (<u32>1 << (24 + <u32>count))
  }
// Any byte may follow a match of two bytes.
  if (count == 2) memory.fill(tables + F_SETS + 2 * SET_BYTES, 255, SET_BYTES)
  store<u32>(tables, count == 1 ? FILTER_FIRST : FILTER_THREE, F_KIND)
  if (literal >> 24 == 7) {
    for (let i: usize = 0; i < 3; i++) memory.fill(tables + F_SETS + i * SET_BYTES, <u8>(literal >> (<u32>i << 3)), 16)
    store<u32>(tables, FILTER_LITERAL, F_KIND)
  }
  return count > 0 && least <= COMMON_LIMIT
}

/** Uses the filter of a builtin instead of the one that was made of its pattern. */
export function useBuiltinFilter(tables: usize, detect: i32): void {
  store<u32>(tables, FILTER_BUILTIN, F_KIND)
  store<i32>(tables, detect, F_DETECT)
}

/** Returns all ones in the lanes whose byte is in the set at `set`. `upper` has the bits of the upper halves. */
// @ts-ignore: decorator
@inline
function inSet(set: usize, v: v128, upper: v128): v128 {
  const lower = i8x16.swizzle(v128.load(set), v128.and(v, i8x16.splat(15)))
  const isAscii = i8x16.ne(v128.and(lower, upper), i8x16.splat(0))
  return v128.or(isAscii, v128.and(v128.load(set, 16), i8x16.lt_s(v, i8x16.splat(0))))
}

/** Returns the first offset from `from` on at which a match can begin, including the last bytes, which are undecided. */
export function nextFirst(tables: usize, text: usize, from: i32, length: i32): i32 {
  const kind = load<u32>(tables, F_KIND)
  if (kind == FILTER_BUILTIN) return nextOfBuiltin(load<i32>(tables, F_DETECT), text, from, length)
  if (kind == FILTER_LITERAL) return nextLiteral(tables, text, from, length)
  if (kind == FILTER_THREE) return nextOfThree(tables, text, from, length)
  const bits = v128.load(tables)
  for (let i = from; i < length; i += 16) {
    const v = v128.load(text + i)
    const mask = i8x16.bitmask(inSet(tables + F_SETS, v, i8x16.swizzle(bits, i8x16.shr_u(v, 4))))
    if (mask != 0) return min(i + ctz(mask), length)
  }
  return length
}

/** Finds the three first bytes of a match. A vector may contain only the third of them. */
// @ts-ignore: decorator
@inline
function together(firsts: v128, first: v128, seconds: v128, second: v128, third: v128): i32 {
  const before = i8x16.shuffle(firsts, first, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29)
  const between = i8x16.shuffle(seconds, second, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)
  return i8x16.bitmask(v128.and(v128.and(before, between), third))
}

/** Checks the last two bytes of the text, where a match may have begun whose rest has not arrived. */
// @ts-ignore: decorator
@inline
function undecided(from: i32, length: i32): i32 {
  return min(max(from, length - 2), length)
}

function nextOfThree(tables: usize, text: usize, from: i32, length: i32): i32 {
  const bits = v128.load(tables)
  let firsts = i8x16.splat(0)
  let seconds = i8x16.splat(0)
  for (let i = from; i < length; i += 16) {
    const v = v128.load(text + i)
    const upper = i8x16.swizzle(bits, i8x16.shr_u(v, 4))
    const first = inSet(tables + F_SETS, v, upper)
    const second = inSet(tables + F_SETS + SET_BYTES, v, upper)
    const mask = together(firsts, first, seconds, second, inSet(tables + F_SETS + 2 * SET_BYTES, v, upper))
    if (mask != 0) return min(i + ctz(mask) - 2, undecided(from, length))
    firsts = first
    seconds = second
  }
  return undecided(from, length)
}

function nextLiteral(tables: usize, text: usize, from: i32, length: i32): i32 {
  const one = v128.load(tables, F_SETS)
  const two = v128.load(tables, F_SETS + SET_BYTES)
  const three = v128.load(tables, F_SETS + 2 * SET_BYTES)
  let firsts = i8x16.splat(0)
  let seconds = i8x16.splat(0)
  for (let i = from; i < length; i += 16) {
    const v = v128.load(text + i)
    const first = i8x16.eq(v, one)
    const second = i8x16.eq(v, two)
    const mask = together(firsts, first, seconds, second, i8x16.eq(v, three))
    if (mask != 0) return min(i + ctz(mask) - 2, undecided(from, length))
    firsts = first
    seconds = second
  }
  return undecided(from, length)
}
