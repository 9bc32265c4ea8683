// Finds the words of a list (words.ts) in the text of a stream: the longest of those that begin first. A word matches
// as a whole: if its first character belongs to a word, the one before the match does not; the same at its end.
import { isWord } from './ascii'
import { canonical, CUT, decode, decodeBefore, decodedBytes, encode, isWordPoint } from './characters'
import { addFound, M_FROM, M_HOLD, progressOf, S_LENGTH, S_WINDOW } from './stream'
import { hashOf, step, W_FIRST, W_FIRST_HIGH, W_KEYS, W_SHORT, WORD_END } from './words'

/** Number of written bytes that are read again: the character before a match. */
export const WORDS_LOOKBACK: i32 = 4
/** The result of `wordAt` if it depends on text that has not arrived. */
const UNDECIDED: i32 = -1

const encoded = memory.data(8)

// @ts-ignore: decorator
@inline
function hasKey(words: usize, bytes: u32, mask: u32): bool {
  const hash = hashOf(bytes, mask)
  return ((load<u8>(words + W_KEYS + (hash >> 3)) >> <u8>(hash & 7)) & 1) != 0
}

/** Returns the first offset from `from` on at which a word may begin, or `length`. */
function nextStart(words: usize, text: usize, from: i32, length: i32): i32 {
  const half = i8x16.splat(15)
  const zero = i8x16.splat(0)
  const first = v128.load(words, W_FIRST)
  const firstHigh = v128.load(words, W_FIRST_HIGH)
  const short = load<u32>(words, W_SHORT)
  // One bit for each upper half of a byte; and for ASCII letters, digits and the underscore by their lower half.
  const lowHalves = i8x16(1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0)
  const highHalves = i8x16(0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, -128)
  const wordBytes = i8x16(-88, -8, -8, -8, -8, -8, -8, -8, -8, -8, -16, 80, 80, 80, 80, 112)
  let before = i8x16.splat(from > 0 && isWord(load<u8>(text + from - 1)) ? -1 : 0)
  for (let i = from; i < length; i += 16) {
    const v = v128.load(text + i)
    const lower = v128.and(v, half)
    const upper = i8x16.shr_u(v, 4)
    const low = i8x16.swizzle(lowHalves, upper)
    const words16 = i8x16.ne(v128.and(i8x16.swizzle(wordBytes, lower), low), zero)
    const isFirst = i8x16.ne(v128.and(i8x16.swizzle(first, lower), low), zero)
    const isHigh = i8x16.ne(v128.and(i8x16.swizzle(firstHigh, lower), i8x16.swizzle(highHalves, upper)), zero)
    const previous = i8x16.shuffle(before, words16, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)
    before = words16
    const starts = v128.or(isHigh, v128.andnot(isFirst, v128.and(words16, previous)))
    for (let bits = i8x16.bitmask(starts); bits != 0; bits &= bits - 1) {
      const at = i + ctz(bits)
      if (at + 4 > length) return min(at, length)
      const bytes = load<u32>(text + at)
      if (hasKey(words, bytes, <u32>-1) || (short != 0 && hasKey(words, bytes, short))) return at
    }
  }
  return length
}

/** Returns the node behind `node` on a character, or 0. */
// @ts-ignore: decorator
@inline
function stepPoint(words: usize, node: u32, point: u32): u32 {
  const least = canonical(point)
  if (least < 128) return step(words, node, least)
  const size = encode(least, encoded)
  let next = node
  for (let i = 0; i < size; i++) {
    next = step(words, next, load<u8>(encoded + i))
    if (next == 0) return 0
  }
  return next
}

/** Returns the end of the longest word that begins at `start`; 0 if none does; or UNDECIDED. */
function wordAt(words: usize, text: usize, start: i32, length: i32, isEnd: bool): i32 {
  let node: u32 = 0
  let best = 0
  let isInWord = start > 0 && isWordPoint(decodeBefore(text, start))
  let at = start
  while (true) {
    if (at >= length && !isEnd) return UNDECIDED
    const point = at < length ? decode(text, at, length) : 0
    if (point == CUT && !isEnd) return UNDECIDED
    const isNextInWord = isWordPoint(point)
    const isBoundary = !isInWord || !isNextInWord
    if (at == start && !isBoundary) return 0
    if (node & WORD_END && isBoundary) best = at
    if (at >= length || point < 0) return best
    const next = at + decodedBytes
    node = stepPoint(words, node, point)
    if (node == 0) return best
    isInWord = isNextInWord
    at = next
    if (point != 13) continue
    // A line end of two bytes is one character.
    if (at >= length && !isEnd) return UNDECIDED
    if (at < length && load<u8>(text + at) == 10) at++
  }
}

/** Finds the words in the text that has arrived. */
export function advanceWords(stream: usize, index: i32, words: usize, isEnd: bool): void {
  const progress = progressOf(stream, index)
  const window = <usize>load<u32>(stream, S_WINDOW)
  const length = load<i32>(stream, S_LENGTH)
  let at = nextStart(words, window, load<i32>(progress, M_FROM), length)
  while (at < length) {
    const end = wordAt(words, window, at, length, isEnd)
    if (end == UNDECIDED) break
    if (end > 0) addFound(stream, at, end, index)
    at = nextStart(words, window, end > 0 ? end : at + 1, length)
  }
  store<i32>(progress, at, M_FROM)
  store<i32>(progress, at, M_HOLD)
}
