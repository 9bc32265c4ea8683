/**
 * Counting and encoding of whole texts: pieces by the split pattern, each a token as it stands or the
 * merge of its parts. Special tokens are text here.
 */
import { ERROR_ARGUMENT, ERROR_MEMORY } from '../abi'
import { arenaAlloc, arenaMark, arenaReset, SLACK } from '../arena'
import { fail } from '../refusal'
import { encodeLong, output, outputTotal, startOutput } from './long'
import { addWork, mergeParts, PART_LIMIT, parts, SHORT_LIMIT, splitParts } from './merge'
import { nextCl100k, nextO200k } from './split'
import {
  cache,
  CACHE_BITS,
  CACHE_ENTRY,
  findToken,
  lowBytes,
  mediumHash,
  pattern,
  PATTERN_O200K,
} from './tables'
import { copyLossy, coverTail, findInvalid, uncoverTail } from './text'

/** Longest text with bytes that are not UTF-8: its copy is three times as long. */
const LOSSY_LIMIT: usize = 0x10000000

/** Tokens of a piece that is not one token: the ids in `parts`; 0 if it is too long for that. */
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

/** Counts the tokens of a piece that is not one token, or returns a code; pieces of up to 16 bytes are cached. */
function countMerged(p: usize, length: u32): i32 {
  if (length > 16) {
    const count = mergeShort(p, length)
    if (count != 0) return <i32>count
    const before = outputTotal()
    const code = encodeLong(p, p + length)
    return code < 0 ? code : <i32>(outputTotal() - before)
  }
  let low = load<u64>(p)
  let high: u64 = 0
  if (length <= 8) low = lowBytes(low, length)
  else high = lowBytes(load<u64>(p, 8), length - 8)
  const entry = cache + <usize>(mediumHash(low, high) >> (64 - CACHE_BITS)) * CACHE_ENTRY
  const isKnown =
    load<u64>(entry) == low && load<u64>(entry, 8) == high && load<u32>(entry, 20) == length
  if (isKnown) return <i32>load<u32>(entry, 16)
  const count = mergeShort(p, length)
  store<u64>(entry, low)
  store<u64>(entry, high, 8)
  store<u32>(entry, count, 16)
  store<u32>(entry, length, 20)
  return <i32>count
}

/** Tokens of the text, or a code. Inlined once for each pattern. */
// @ts-ignore: decorator
@inline
function countPieces(start: usize, end: usize, kind: u32): i32 {
  let count: i32 = 0
  let p = start
  while (p < end) {
    const next = kind == PATTERN_O200K ? nextO200k(p, end) : nextCl100k(p, end)
    const length = <u32>(next - p)
    if (length == 1 || findToken(p, length) >= 0) {
      count++
    } else {
      const more = countMerged(p, length)
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

/** The same over valid UTF-8, with as many zeros after it as the reads need. */
function run(start: usize, end: usize, encode: bool): i32 {
  coverTail(end)
  let count: i32
  if (encode) count = encodePieces(start, end)
  else count = pattern == PATTERN_O200K ? countO200k(start, end) : countCl100k(start, end)
  uncoverTail()
  return count
}

/** Tokens of any bytes, by the selected vocabulary; the first `limit` of them are written to `to`. */
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
