/**
 * Counts and encodes whole texts. The split pattern divides a text into pieces. A piece is either one
 * token, or its parts are merged. Special tokens are treated as text.
 */
import { ERROR_ARGUMENT, ERROR_MEMORY } from '../abi'
import { arenaAlloc, arenaMark, arenaReset, SLACK } from '../arena'
import { fail } from '../refusal'
import { encodeLong, output, outputTotal, startOutput } from './long'
import { addWork, mergeParts, PART_LIMIT, parts, SHORT_LIMIT, splitParts } from './merge'
import { nextCl100k, nextO200k } from './split'
import { BYTE_MASKS, characterAt, characterLength, isSeparate } from './borders'
import {
  cache,
  CACHE_BITS,
  CACHE_ENTRY,
  CACHED_LENGTH,
  findToken,
  partHash,
  pattern,
  PATTERN_O200K,
} from './tables'
import { copyLossy, coverTail, findInvalid, uncoverTail } from './text'

/** Maximum length of a text with bytes that are not UTF-8, because its copy is three times as long. */
const LOSSY_LIMIT: usize = 0x10000000

/** Returns the number of tokens of a piece that is not one token, with the ids in `parts`; 0 if it is too long. */
// @ts-ignore: decorator
@inline
function mergeShort(p: usize, length: u32): u32 {
  if (length > SHORT_LIMIT) return 0
  const count = splitParts(p, p + length, parts)
  return count > PART_LIMIT ? 0 : mergeParts(count)
}

/** Adds the tokens of a piece that is not one token to the output: 0 or a code. */
function encodeMerged(p: usize, length: u32): i32 {
  const count = mergeShort(p, length)
  if (count == 0) return encodeLong(p, p + length)
  output(parts, count)
  return 0
}

/** Counts the tokens of a part that is not in the cache, or returns a code. */
function countUncached(p: usize, length: u32): i32 {
  if (findToken(p, length) >= 0) return 1
  const count = mergeShort(p, length)
  if (count != 0) return <i32>count
  const before = outputTotal()
  const code = encodeLong(p, p + length)
  return code < 0 ? code : <i32>(outputTotal() - before)
}

/** Counts the tokens of a part of 1 to CACHED_LENGTH bytes. */
// @ts-ignore: decorator
@inline
function countCached(p: usize, length: u32): i32 {
  const mask = BYTE_MASKS + (<usize>length << 4)
  const low = load<u64>(p) & load<u64>(mask)
  const high = (load<u64>(p, 8) & load<u64>(mask, 8)) | (<u64>length << 56)
  const place = <usize>(partHash(low, high) >> (64 - CACHE_BITS)) * CACHE_ENTRY
  const entry = cache + place
  const known = load<u64>(entry, 8) ^ high
  if (load<u64>(entry) == low && known << 4 == 0) return <i32>(known >> 60)
  return fillCache(place, p, length, low, high)
}

/**
 * Returns the count of a part that is not in its first slot of the cache, and stores it there. The part that
 * was in that slot moves to the second slot, which is next to the first.
 */
function fillCache(place: usize, p: usize, length: u32, low: u64, high: u64): i32 {
  const entry = cache + place
  const second = cache + (place ^ CACHE_ENTRY)
  const known = load<u64>(second, 8) ^ high
  const isKnown = load<u64>(second) == low && known << 4 == 0
  const count = isKnown ? <i32>(known >> 60) : countUncached(p, length)
  v128.store(second, v128.load(entry))
  store<u64>(entry, low)
  store<u64>(entry, high | (<u64>count << 60), 8)
  return count
}

/** Counts the tokens of a part, or returns a code. */
// @ts-ignore: decorator
@inline
function countPart(p: usize, length: u32): i32 {
  return length <= CACHED_LENGTH ? countCached(p, length) : countUncached(p, length)
}

/**
 * Counts the tokens of a piece with characters that are not ASCII, or returns a code. If no token crosses
 * the border of two adjacent characters, nothing merges across it, so the parts are counted separately.
 */
function countWide(start: usize, length: u32): i32 {
  const end = start + length
  let count: i32 = 0
  let part = start
  let p = start
  let before: u32 = 0
  while (p < end) {
    const character = characterAt(p)
    if (isSeparate(before, character)) {
      const more = countPart(part, <u32>(p - part))
      if (more < 0) return more
      count += more
      part = p
    }
    p += characterLength(character)
    before = character
  }
  addWork(length)
  const last = countPart(part, <u32>(end - part))
  return last < 0 ? last : count + last
}

/** Returns the number of tokens of the text, or a code. Inlined once for each pattern. */
// @ts-ignore: decorator
@inline
function countPieces(start: usize, end: usize, kind: u32): i32 {
  let count: i32 = 0
  let p = start
  while (p < end) {
    const next = kind == PATTERN_O200K ? nextO200k(p, end) : nextCl100k(p, end)
    const length = <u32>(next - p)
    if (length <= CACHED_LENGTH && load<u8>(p) < 0x80) {
      count += countCached(p, length)
    } else {
      const more = countWide(p, length)
      if (more < 0) return more
      count += more
    }
    p = next
  }
  return count
}

function countO200k(start: usize, end: usize): i32 {
  return countPieces(start, end, PATTERN_O200K)
}

function countCl100k(start: usize, end: usize): i32 {
  return countPieces(start, end, 0)
}

function encodePieces(start: usize, end: usize): i32 {
  let p = start
  while (p < end) {
    const next = pattern == PATTERN_O200K ? nextO200k(p, end) : nextCl100k(p, end)
    const id = findToken(p, <u32>(next - p))
    if (id >= 0) {
      store<u32>(parts, <u32>id)
      output(parts, 1)
    } else {
      const code = encodeMerged(p, <u32>(next - p))
      if (code < 0) return code
    }
    p = next
  }
  return <i32>outputTotal()
}

/** Counts or encodes the tokens of valid UTF-8. The bytes after it are zeros meanwhile, which the split needs. */
function run(start: usize, end: usize, encode: bool): i32 {
  coverTail(end)
  let count: i32
  if (encode) count = encodePieces(start, end)
  else count = pattern == PATTERN_O200K ? countO200k(start, end) : countCl100k(start, end)
  uncoverTail()
  return count
}

/** Returns the number of tokens of any bytes in the selected vocabulary; writes the first `limit` ids to `to`. */
export function tokenize(start: usize, length: usize, to: usize, limit: u32): i32 {
  const end = start + length
  if (limit > 0 && to < end + SLACK && start < to + (<usize>limit << 2)) return fail(ERROR_ARGUMENT)
  startOutput(to, limit)
  addWork(length)
  if (findInvalid(start, end) == end) return run(start, end, limit > 0)
  if (length > LOSSY_LIMIT) return fail(ERROR_MEMORY)
  const mark = arenaMark()
  const copy = arenaAlloc(length * 3 + SLACK)
  const count = copy == 0 ? fail(ERROR_MEMORY) : run(copy, copyLossy(copy, start, end), limit > 0)
  arenaReset(mark)
  return count
}
