// Characters of texts in UTF-8, as lists of words compare them: without case, and by whether they belong to words.
import { firstFold, foldEnd } from './fold-table'
import { readAt, readFrom, readNumber } from './packed-numbers'
import { CATEGORY_BYTES, CATEGORY_RUNS, SCRIPT_BYTES, SCRIPT_RUNS } from './unicode-data'

/** Results of `decode` besides code points: bytes that are not UTF-8, and a character whose end has not arrived. */
export const INVALID: i32 = -1
export const CUT: i32 = -2
/** Number of bytes of the last decoded character; 1 if it is invalid. */
export let decodedBytes: i32 = 1

/** Decodes the character at `at`. The text ends at `length`. */
export function decode(text: usize, at: i32, length: i32): i32 {
  const lead = <i32>load<u8>(text + at)
  decodedBytes = 1
  if (lead < 0x80) return lead
  if (lead < 0xc2 || lead > 0xf4) return INVALID
  const size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  let point = lead & (0x7f >> size)
  for (let i = 1; i < size; i++) {
    if (at + i >= length) return CUT
    const byte = <i32>load<u8>(text + at + i)
    if ((byte & 0xc0) != 0x80) return INVALID
    point = (point << 6) | (byte & 0x3f)
  }
  const isShortest = point >= (size == 2 ? 0x80 : size == 3 ? 0x800 : 0x10000)
  if (!isShortest || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return INVALID
  decodedBytes = size
  return point
}

/** Decodes the character that ends at `end`; INVALID at the start of the text. */
export function decodeBefore(text: usize, end: i32): i32 {
  let start = end - 1
  while (start > 0 && start > end - 4 && (load<u8>(text + start) & 0xc0) == 0x80) start--
  if (start < 0) return INVALID
  const point = decode(text, start, end)
  return point >= 0 && start + decodedBytes == end ? point : INVALID
}

/** Writes a code point in UTF-8. Returns its number of bytes. */
export function encode(point: u32, out: usize): i32 {
  if (point < 0x80) {
    store<u8>(out, <u8>point)
    return 1
  }
  const size = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4
  let rest = point
  for (let i = size - 1; i > 0; i--, rest >>= 6) store<u8>(out + i, <u8>((rest & 0x3f) | 0x80))
  store<u8>(out, <u8>(rest | ((0xf00 >> size) & 0xff)))
  return size
}

// --- equal characters ------------------------------------------------------------------------------

/** Returns the next character that differs only in case; the last one is followed by the first. */
export function nextCase(point: u32): u32 {
  for (let run = firstFold(point); run < foldEnd() && load<u32>(run) <= point; run += 16) {
    if ((point - load<u32>(run)) % load<u32>(run, 8) == 0) return point + load<i32>(run, 12)
  }
  return point
}

/** White space, apostrophes and hyphens, each with the character that they equal. */
const SPELLINGS = memory.data<u16>([
  9, 32, 10, 32, 11, 32, 12, 32, 13, 32, 0x85, 32, 0xa0, 32, 0x1680, 32, 0x2000, 32, 0x2001, 32, 0x2002, 32, 0x2003, 32, 0x2004, 32,
  0x2005, 32, 0x2006, 32, 0x2007, 32, 0x2008, 32, 0x2009, 32, 0x200a, 32, 0x2028, 32, 0x2029, 32, 0x202f, 32, 0x205f, 32, 0x3000, 32,
  0x2bc, 39, 0x2019, 39, 0x2010, 45, 0x2011, 45,
])
const SPELLING_COUNT: i32 = 28

/** Returns the spelling with an index from 0 on of an ASCII character, or 0. */
export function spellingOf(point: u32, index: i32): u32 {
  let left = index
  for (let i = 0; i < SPELLING_COUNT; i++) {
    const at = SPELLINGS + (<usize>i << 2)
    if (<u32>load<u16>(at, 2) == point && left-- == 0) return load<u16>(at)
  }
  return 0
}

/** Returns the smallest of all characters that count as equal to one. It has the shortest UTF-8. */
export function canonical(point: u32): u32 {
  if (point < 128) return point - 97 < 26 ? point - 32 : point - 9 < 5 ? 32 : point
  const block = point >> 8
  if (block == 0 || block == 2 || block == 0x16 || block == 0x20 || block == 0x30) {
    for (let i = 5; i < SPELLING_COUNT; i++) {
      const at = SPELLINGS + (<usize>i << 2)
      if (<u32>load<u16>(at) == point) return load<u16>(at, 2)
    }
  }
  let least = point
  for (let other = nextCase(point); other != point; other = nextCase(other)) least = min(least, other)
  return least
}

// --- words -----------------------------------------------------------------------------------------

/** One bit for each character of the first two planes that belongs to a word. */
const WORD_POINTS: u32 = 0x20000
const wordBits = memory.data(0x20000 / 8)
let isPrepared: bool = false

/** Letters (Lu Ll Lt Lm Lo), marks (Mn Mc Me), numbers (Nd Nl) and connectors (Pc), as bits of categories. */
const WORD_CATEGORIES: u32 = 0xbff
/** Thai, Lao, Myanmar, Hangul, Khmer, Hiragana, Katakana, Bopomofo, Han and Yi, as bits of numbers of scripts. */
const UNSPACED_SCRIPTS: u64 = 0x3e9580000

/** Sets or clears the bits of the runs whose value is one of `values`. */
function applyRuns(runs: usize, end: usize, values: u64, isSet: bool): void {
  readFrom(runs)
  for (let low: u32 = 0; readAt < end && low < WORD_POINTS; ) {
    const run = readNumber()
    const next = low + (run >> 6) + 1
    if ((values >> <u64>(run & 63)) & 1) {
      for (let point = low; point < min(next, WORD_POINTS); point++) {
        const at = wordBits + (point >> 3)
        const bit = <u8>1 << <u8>(point & 7)
        store<u8>(at, isSet ? load<u8>(at) | bit : load<u8>(at) & ~bit)
      }
    }
    low = next
  }
}

/** Prepares `isWordPoint`. */
export function prepareWordPoints(): void {
  if (isPrepared) return
  isPrepared = true
  applyRuns(CATEGORY_RUNS, CATEGORY_RUNS + CATEGORY_BYTES, WORD_CATEGORIES, true)
  applyRuns(SCRIPT_RUNS, SCRIPT_RUNS + SCRIPT_BYTES, UNSPACED_SCRIPTS, false)
}

/**
 * Returns whether a character belongs to a word: letters, marks, numbers and connectors. Not those of scripts in which words
 * follow each other without spaces, or take endings (Hangul).
 */
export function isWordPoint(point: i32): bool {
  return <u32>point < WORD_POINTS && ((load<u8>(wordBits + (<usize>point >> 3)) >> <u8>(point & 7)) & 1) != 0
}
