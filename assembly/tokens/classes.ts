/**
 * The classes of code points that the split patterns distinguish, by Unicode 16, the version of
 * `tiktoken` 1.0.22. The tables are unpacked when the first vocabulary is loaded, from the regex
 * engine's categories (Unicode 17) and the few ranges in which Unicode 16 differs.
 *
 *     directory: 0x1100 addresses (u32) of 256 class bytes each; blocks of one class are shared
 */
import { arenaAlloc, arenaMark, arenaReset, blockAlloc, blockFree } from '../arena'
import { readAt, readFrom, readNumber } from '../regex/packed-numbers'
import { CATEGORY_BYTES, CATEGORY_RUNS } from '../regex/unicode-data'
import { DIFFERENCES, DIFFERENCE_COUNT } from './unicode-16'

/** All other code points. */
export const OTHER: u32 = 0
/** \p{Lu} and \p{Lt}. */
export const UPPER: u32 = 1
/** \p{Ll}. */
export const LOWER: u32 = 2
/** \p{Lm} and \p{Lo}. */
export const CASELESS: u32 = 3
/** \p{M}: with the letters in o200k, with the others in cl100k. */
export const MARK: u32 = 4
/** \p{N}. */
export const NUMBER: u32 = 5
/** \s without line ends. */
export const SPACE: u32 = 6
/** CR and LF. */
export const NEWLINE: u32 = 7

const POINTS: usize = 0x110000
const DIRECTORY_SIZE: usize = 0x1100 * 4

/** Class of each general category, in the order of unicode-data.ts: Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No ... */
const CLASS_OF_CATEGORY = memory.data<u8>([
  1, 2, 1, 3, 3, 4, 4, 4, 5, 5, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 6, 6, 0, 0, 0, 0, 0,
])

let directory: usize = 0
/** Class bytes of the first 256 code points. */
let latin: usize = 0

/** One class byte for each code point at `flat`. */
function unpackFlat(flat: usize): void {
  readFrom(CATEGORY_RUNS)
  const end = CATEGORY_RUNS + CATEGORY_BYTES
  let point: usize = 0
  while (readAt < end) {
    const run = readNumber()
    const length = <usize>(run >> 6) + 1
    memory.fill(flat + point, load<u8>(CLASS_OF_CATEGORY + <usize>(run & 63)), length)
    point += length
  }
  for (let i: usize = 0; i < DIFFERENCE_COUNT; i++) {
    const at = DIFFERENCES + i * 12
    const low = <usize>load<u32>(at)
    memory.fill(flat + low, <u8>load<u32>(at, 8), <usize>load<u32>(at, 4) + 1 - low)
  }
  memory.fill(flat + 9, <u8>SPACE, 5)
  store<u8>(flat + 10, <u8>NEWLINE)
  store<u8>(flat + 13, <u8>NEWLINE)
  store<u8>(flat + 0x85, <u8>SPACE)
}

/** Returns true if all 256 class bytes are equal. */
function isUniform(block: usize): bool {
  const first = i8x16.splat(load<u8>(block))
  let others = i8x16.splat(0)
  for (let p = block; p < block + 256; p += 16) {
    others = v128.or(others, v128.xor(first, v128.load(p)))
  }
  return !v128.any_true(others)
}

function countMixed(flat: usize): usize {
  let count: usize = 0
  for (let p = flat; p < flat + POINTS; p += 256) if (!isUniform(p)) count++
  return count
}

function fillDirectory(flat: usize): void {
  const uniform = directory + DIRECTORY_SIZE
  for (let i: usize = 0; i < 8; i++) memory.fill(uniform + (i << 8), <u8>i, 256)
  let next = uniform + 8 * 256
  for (let i: usize = 0; i < 0x1100; i++) {
    const block = flat + (i << 8)
    let place = uniform + (<usize>load<u8>(block) << 8)
    if (!isUniform(block)) {
      place = next
      memory.copy(place, block, 256)
      next += 256
    }
    store<u32>(directory + (i << 2), <u32>place)
  }
  latin = <usize>load<u32>(directory)
}

/** Makes the tables, once per instance; returns false if there is no memory. */
export function readyClasses(): bool {
  if (directory != 0) return true
  const place = arenaMark()
  const flat = arenaAlloc(POINTS)
  if (flat == 0) return false
  unpackFlat(flat)
  directory = blockAlloc(DIRECTORY_SIZE + (8 + countMixed(flat)) * 256)
  if (directory != 0) fillDirectory(flat)
  arenaReset(place)
  return directory != 0
}

/** Class of the character of two or more bytes at `p`, with its length in bytes from bit 8 on. */
function classOfLong(p: usize, lead: u32): u32 {
  const second = <u32>load<u8>(p, 1) & 63
  let point = ((lead & 31) << 6) | second
  let length: u32 = 2
  if (lead >= 0xe0) {
    point = ((lead & 15) << 12) | (second << 6) | (<u32>load<u8>(p, 2) & 63)
    length = 3
    if (lead >= 0xf0) {
      point = ((point & 0x7fff) << 6) | (<u32>load<u8>(p, 3) & 63)
      length = 4
    }
  }
  const block = <usize>load<u32>(directory + (<usize>(point >> 8) << 2))
  return <u32>load<u8>(block + <usize>(point & 255)) | (length << 8)
}

/** Class of the character at `p`, with its length in bytes from bit 8 on. The text is valid UTF-8. */
// @ts-ignore: decorator
@inline
export function classAt(p: usize): u32 {
  const byte = <u32>load<u8>(p)
  if (byte < 0x80) return <u32>load<u8>(latin + byte) | 0x100
  return classOfLong(p, byte)
}
