// Vector loops of the builtins that are patterns: they skip text in which no match can begin. Each condition follows
// from the pattern in builtin-patterns.ts, so that a search with the filter finds the same matches as one without.
//
//   ApiKey     the first four bytes of the keys of an issuer
//   Iban       a digit after exactly two letters
//   IpAddress  one to three digits and a dot, or a colon
//   PrivateKey two dashes, or `E-`
import { DETECT_API_KEY, DETECT_IBAN, DETECT_IP } from '../abi'
import { isDigit, isLetter, isWord } from './ascii'

/**
 * First bytes of API keys, four each; `?` is any byte. Those that end with it are the last WITHOUT_LAST ones. The order
 * decides which share a bucket: in this one, they rarely combine to four bytes of English text.
 * One literal, because joined ones would be allocated.
 */
const PREFIXES: string = 'dckrdp.cdp.pdp.sgithglcbgldtgloanvapAIzafigdglagglftglpaglrtglsogsk_hvs.glpthookhvb.hvr.pplxpypirk_lrk_trubyshpcshppshpssk_lsk_tsntrsq0asq0cwhseAKIAASIANRAKPMAKpscasbp_shpatskexappGOCSdapidoo_dop_dor_dot_glimglsanpm_ATATgh?_glc_key-lin_ntn_xai-ya29SG.?eyJ?hf_?r8_?sk-?xox?'
const WITHOUT_LAST: i32 = 6
const PREFIX_BYTES: i32 = 4
const BUCKETS: i32 = 8
/** For each of the four positions: the buckets of a lower half of a byte, and those of an upper half. */
const tables = memory.data(128)
let isReady: bool = false

/** Divides the prefixes into buckets, so that bytes of different prefixes rarely combine; the last one has those with any byte at the end. */
function prepare(): void {
  isReady = true
  const count = PREFIXES.length / PREFIX_BYTES - WITHOUT_LAST
  for (let i = 0; i < PREFIXES.length; i++) {
    const bucket = <u8>1 << <u8>min((i / PREFIX_BYTES) * (BUCKETS - 1) / count, BUCKETS - 1)
    const table = tables + (<usize>(i % PREFIX_BYTES) << 5)
    const byte = PREFIXES.charCodeAt(i)
    for (let half = 0; half < 16; half++) {
      const lower = table + half
      const upper = table + 16 + half
      if (byte == 63 || half == (byte & 15)) store<u8>(lower, load<u8>(lower) | bucket)
      if (byte == 63 || half == byte >> 4) store<u8>(upper, load<u8>(upper) | bucket)
    }
  }
}

/** Returns the buckets with the byte of each lane at a position. */
// @ts-ignore: decorator
@inline
function bucketsAt(position: usize, lower: v128, upper: v128): v128 {
  const table = tables + (position << 5)
  return v128.and(i8x16.swizzle(v128.load(table), lower), i8x16.swizzle(v128.load(table, 16), upper))
}

/** Returns the first offset from `from` on at which a prefix begins, including the last three bytes, which are undecided. */
function nextPrefix(text: usize, from: i32, length: i32): i32 {
  if (!isReady) prepare()
  for (let i = from; i + 3 < length; i += 16) {
    // Overlapping loads replace shifts between vectors. Bytes behind the text are slack, which `min` excludes.
    const a = v128.load(text + i)
    const b = v128.load(text + i, 1)
    const first = bucketsAt(0, v128.and(a, i8x16.splat(15)), i8x16.shr_u(a, 4))
    const two = v128.and(first, bucketsAt(1, v128.and(b, i8x16.splat(15)), i8x16.shr_u(b, 4)))
    if (!v128.any_true(two)) continue
    const c = v128.load(text + i, 2)
    const d = v128.load(text + i, 3)
    const three = v128.and(two, bucketsAt(2, v128.and(c, i8x16.splat(15)), i8x16.shr_u(c, 4)))
    const four = v128.and(three, bucketsAt(3, v128.and(d, i8x16.splat(15)), i8x16.shr_u(d, 4)))
    if (v128.any_true(four)) return min(i + ctz(i8x16.bitmask(i8x16.ne(four, i8x16.splat(0)))), max(from, length - 3))
  }
  return max(from, length - 3)
}

/** Returns the bytes before which, or at which, a match of the builtin can begin. */
// @ts-ignore: decorator
@inline
function triggers(detect: i32, v: v128): v128 {
  if (detect == DETECT_IBAN) return i8x16.lt_u(i8x16.sub(v, i8x16.splat(48)), i8x16.splat(10))
  // The digits and the colon are adjacent.
  if (detect == DETECT_IP) return i8x16.lt_u(i8x16.sub(v, i8x16.splat(48)), i8x16.splat(11))
  return i8x16.eq(v, i8x16.splat(45))
}

/** Returns the start of the match that the byte at `at` announces, or -1. Bytes that have not arrived may be any. */
// @ts-ignore: decorator
@inline
function startAt(detect: i32, text: usize, from: i32, at: i32, length: i32): i32 {
  if (detect == DETECT_IBAN) {
    const start = at - 2
    if (start < from || !isLetter(load<u8>(text + at - 1)) || !isLetter(load<u8>(text + start))) return -1
    return start > 0 && isWord(load<u8>(text + start - 1)) ? -1 : start
  }
  const byte = <u32>load<u8>(text + at)
  if (detect == DETECT_IP) {
    if (byte == 58) return max(from, at - 4)
    if (at > 0 && isWord(load<u8>(text + at - 1))) return -1
    let i = at + 1
    while (i < length && i < at + 3 && isDigit(load<u8>(text + i))) i++
    return i < length && load<u8>(text + i) != 46 ? -1 : at
  }
  if (at + 1 == length || load<u8>(text + at + 1) == 45) return at
  return at >= from + 3 && load<u8>(text + at - 1) == 69 ? at - 3 : -1
}

/** Bytes at the end of the text in which a match may have begun without being announced. */
const UNDECIDED: i32 = 4

// @ts-ignore: decorator
@inline
function nextTrigger(detect: i32, text: usize, from: i32, length: i32): i32 {
  for (let i = from; i < length; i += 32) {
    const one = triggers(detect, v128.load(text + i))
    const two = i + 16 < length ? triggers(detect, v128.load(text + i, 16)) : i8x16.splat(0)
    if (!v128.any_true(v128.or(one, two))) continue
    for (let bits = i8x16.bitmask(one) | (i8x16.bitmask(two) << 16); bits != 0; bits &= bits - 1) {
      const at = i + ctz(bits)
      if (at >= length) break
      const start = startAt(detect, text, from, at, length)
      if (start >= 0) return min(start, max(from, length - UNDECIDED))
    }
  }
  return max(from, length - UNDECIDED)
}

/** Returns the first offset from `from` on, at most `length`, at which a match of the builtin can begin. */
export function nextOfBuiltin(detect: i32, text: usize, from: i32, length: i32): i32 {
  if (from >= length) return length
  if (detect == DETECT_API_KEY) return nextPrefix(text, from, length)
  if (detect == DETECT_IBAN) return nextTrigger(DETECT_IBAN, text, from, length)
  if (detect == DETECT_IP) return nextTrigger(DETECT_IP, text, from, length)
  return nextTrigger(-1, text, from, length)
}
