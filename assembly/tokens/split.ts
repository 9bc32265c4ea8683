/**
 * The split patterns of o200k_base and cl100k_base as automata over valid UTF-8. Each returns the end
 * of the piece that begins at `p`, exactly as the leftmost-first alternatives of the pattern do.
 * Sixteen zero bytes follow the text, so that runs of letters, digits and white space need no
 * comparison with its end.
 *
 *     o200k_base   L = [^\r\n\p{L}\p{N}]   U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]   l = [\p{Ll}\p{Lm}\p{Lo}\p{M}]
 *       L?U*l+(?i:'s|'t|'re|'ve|'m|'ll|'d)?  |  L?U+l*(?i:'s|...)?  |  \p{N}{1,3}
 *       |  ?[^\s\p{L}\p{N}]+[\r\n/]*  |  \s*[\r\n]+  |  \s+(?!\S)  |  \s+
 *     cl100k_base
 *       (?i:'s|'t|'re|'ve|'m|'ll|'d)  |  L?\p{L}+  |  \p{N}{1,3}
 *       |  ?[^\s\p{L}\p{N}]+[\r\n]*  |  \s*[\r\n]+  |  \s+(?!\S)  |  \s+
 */
import { CASELESS, classAt, LOWER, MARK, NEWLINE, NUMBER, OTHER, SPACE, UPPER } from './classes'

const APOSTROPHE: u32 = 0x27
const SLASH: u32 = 0x2f

/** End of the run of a-z at `from`. */
// @ts-ignore: decorator
@inline
function skipLower(from: usize): usize {
  let p = from
  while (true) {
    const shifted = i8x16.sub(v128.load(p), i8x16.splat(97))
    const others = ~i8x16.bitmask(i8x16.lt_u(shifted, i8x16.splat(26))) | 0x10000
    const count = <usize>ctz(others)
    p += count
    if (count < 16) return p
  }
}

/** End of the contraction after the apostrophe at `p`, any case; `p` if none follows. */
function skipContraction(p: usize): usize {
  const first = <u32>load<u8>(p, 1) | 0x20
  if (first == 0x73 || first == 0x74 || first == 0x6d || first == 0x64) return p + 2
  const second = <u32>load<u8>(p, 2) | 0x20
  if ((first == 0x72 || first == 0x76) && second == 0x65) return p + 3
  if (first == 0x6c && second == 0x6c) return p + 3
  // U+017F, the long s, folds to s.
  return load<u16>(p, 1) == 0xbfc5 ? p + 3 : p
}

// @ts-ignore: decorator
@inline
function afterContraction(p: usize): usize {
  return load<u8>(p) == <u8>APOSTROPHE ? skipContraction(p) : p
}

/** Returns the end of a run of up to three numbers. The first one ends at `p`. */
function skipNumbers(p: usize): usize {
  const second = classAt(p)
  if ((second & 7) != NUMBER) return p
  const at = p + <usize>(second >> 8)
  const third = classAt(at)
  return (third & 7) == NUMBER ? at + <usize>(third >> 8) : at
}

/**
 * Returns the end of a piece of white space at `start`. If the run has a line end, the piece ends after the
 * last one. If the text ends after the run, or the run is a single character, the piece is the run. Otherwise
 * the piece is all but the last character, which belongs to the next piece.
 */
function skipSpace(start: usize, end: usize): usize {
  let p = start
  let last = start
  let afterNewline: usize = 0
  while (p < end) {
    const found = classAt(p)
    if ((found & 7) < SPACE) break
    last = p
    p += <usize>(found >> 8)
    if ((found & 7) == NEWLINE) afterNewline = p
  }
  if (afterNewline != 0) return afterNewline
  return p >= end || last == start ? p : last
}

/** Returns the end of a run of other characters than white space, letters and numbers, with line ends after it. */
function skipOther(start: usize, end: usize, slash: u32): usize {
  let p = start
  while (p < end) {
    const found = classAt(p)
    const kind = found & 7
    if (kind != OTHER && kind != MARK) break
    p += <usize>(found >> 8)
  }
  while (p < end) {
    const byte = <u32>load<u8>(p)
    if (byte != 10 && byte != 13 && byte != slash) break
    p++
  }
  return p
}

// --- o200k_base ----------------------------------------------------------------------------------

/** l* and the contraction. */
function skipLowers(from: usize): usize {
  let p = from
  while (true) {
    const found = classAt(p)
    if ((found & 7) - LOWER > MARK - LOWER) return afterContraction(p)
    p += <usize>(found >> 8)
  }
}

/**
 * U*l+ or U+l* and the contraction, with a letter or mark at `start`. U and l overlap: the run of U is as
 * long as possible; if no \p{Ll} follows, its last caseless letter or mark is the l+.
 */
function skipCased(start: usize): usize {
  let p = start
  let afterCaseless: usize = 0
  while (true) {
    const found = classAt(p)
    const kind = found & 7
    if (kind == LOWER) return skipLowers(p)
    if (kind != UPPER) {
      if (kind != CASELESS && kind != MARK) break
      afterCaseless = p + <usize>(found >> 8)
    }
    p += <usize>(found >> 8)
  }
  return afterContraction(afterCaseless != 0 ? afterCaseless : p)
}

/** Like the function above, but tries the most frequent form first: A?a+ in ASCII. */
// @ts-ignore: decorator
@inline
function skipWord(start: usize): usize {
  const lower = start + <usize>(<u32>load<u8>(start) - 65 < 26)
  const p = skipLower(lower)
  if (p == lower) return skipCased(start)
  return load<u8>(p) < 0x80 ? afterContraction(p) : skipLowers(p)
}

/** Returns true if U*l+ matches here. */
function isCasedWord(start: usize): bool {
  let p = start
  while (true) {
    const found = classAt(p)
    if ((found & 7) != UPPER) return (found & 7) - LOWER <= MARK - LOWER
    p += <usize>(found >> 8)
  }
}

/** End of the piece at `p` by the pattern of o200k_base. */
// @ts-ignore: decorator
@inline
export function nextO200k(p: usize, end: usize): usize {
  const found = classAt(p)
  const kind = found & 7
  const after = p + <usize>(found >> 8)
  if (kind - UPPER <= CASELESS - UPPER) return skipWord(p)
  if (kind == NUMBER) return skipNumbers(after)
  if (kind == NEWLINE) return skipSpace(p, end)
  if (after >= end) return after
  const next = classAt(after) & 7
  if (next - UPPER <= MARK - UPPER) {
    // A mark may be the L, or the l of the following word: the first alternative is tried with both.
    return kind == MARK && !isCasedWord(after) ? skipCased(p) : skipWord(after)
  }
  if (kind == MARK) return afterContraction(after)
  if (kind == OTHER || (next == OTHER && load<u8>(p) == 0x20)) return skipOther(after, end, SLASH)
  return skipSpace(p, end)
}

// --- cl100k_base ---------------------------------------------------------------------------------

/** \p{L}* */
// @ts-ignore: decorator
@inline
function skipLetters(from: usize): usize {
  let p = from
  while (true) {
    p = skipLower(p)
    const found = classAt(p)
    if ((found & 7) - UPPER > CASELESS - UPPER) return p
    p += <usize>(found >> 8)
  }
}

/** End of the piece at `p` by the pattern of cl100k_base. */
// @ts-ignore: decorator
@inline
export function nextCl100k(p: usize, end: usize): usize {
  const found = classAt(p)
  const kind = found & 7
  const after = p + <usize>(found >> 8)
  if (kind - UPPER <= CASELESS - UPPER) return skipLetters(p)
  if (kind == NUMBER) return skipNumbers(after)
  if (kind == NEWLINE) return skipSpace(p, end)
  if (load<u8>(p) == <u8>APOSTROPHE) {
    const contracted = skipContraction(p)
    if (contracted != p) return contracted
  }
  if (after >= end) return after
  const next = classAt(after) & 7
  if (next - UPPER <= CASELESS - UPPER) return skipLetters(after)
  if (kind != SPACE) return skipOther(after, end, 10)
  if ((next == OTHER || next == MARK) && load<u8>(p) == 0x20) return skipOther(after, end, 10)
  return skipSpace(p, end)
}
