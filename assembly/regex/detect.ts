// The builtins of numbers and email addresses, written by hand: counted repetitions of digits make large automata, and no automaton can
// verify check digits. The comment of each function defines its matches; docs/regex.md describes them for users.
//
// All are word-bounded: there is no ASCII letter, digit or underscore directly before or after a match. A detector
// reads bytes with `at`, which records reads beyond the text that has arrived. After such a read, the result is
// not final until more text arrives. No detector reads more than REACH bytes from its start.

import { DETECT_CARD, DETECT_PHONE, DETECT_SECRET, DETECT_SIN, DETECT_SSN, DETECT_VAT } from '../abi'
import { isAlphanumeric, isDigit, isLetter, isWord } from './ascii'
import { at, clearRanOut, ranOut } from './detect-text'
import { nationalAfter, nationalEnd } from './national'

/** One more than the greatest DETECT_* of a builtin that is not a pattern. */
export const DETECT_COUNT: i32 = DETECT_SECRET + 1

/** Maximum length of the local part of an address (RFC 5321, 4.5.3.1.1). */
export const LOCAL_LIMIT: i32 = 64
/** Maximum length of a domain name, in bytes of its text form. */
const DOMAIN_LIMIT: i32 = 253
/** Maximum number of bytes that a detector reads, from its first byte to the one after its last. */
export const REACH: i32 = LOCAL_LIMIT + 1 + DOMAIN_LIMIT + 1

/** Start of the last email address that `emailAround` found. */
export let emailStart: i32 = 0

/** Returns the number of consecutive digits from `offset` on, at most `limit`. */
function digitsFrom(offset: i32, limit: i32): i32 {
  let count = 0
  while (count < limit && isDigit(at(offset + count))) count++
  return count
}

const SSN: u8 = 1 << <u8>DETECT_SSN
const CARD: u8 = 1 << <u8>DETECT_CARD
const PHONE: u8 = 1 << <u8>DETECT_PHONE
const SIN: u8 = 1 << <u8>DETECT_SIN
/** The detectors whose matches can begin with 1, 2, … 19 digits, after which another byte follows. */
const BY_DIGITS = memory.data<u8>([
  PHONE, 0, SSN | SIN | PHONE, CARD, SSN | CARD, PHONE | CARD, CARD, CARD, SSN | SIN | CARD, PHONE | CARD,
  CARD, CARD, CARD, CARD, CARD, CARD, CARD, CARD, CARD
])
const MOST_DIGITS: i32 = 19

/**
 * Returns the detectors, as bits 1 << DETECT_*, that may match at a digit, '+' or '('. The number of digits and the byte
 * after them exclude most detectors, and all of them for most numbers of usual texts.
 */
export function numbersAt(offset: i32): u32 {
  const digits = digitsFrom(offset, MOST_DIGITS + 1)
  if (digits == 0) return PHONE
  if (digits > MOST_DIGITS) return 0
  const next = at(offset + digits)
  if (ranOut) {
    // Each detector decides whether it needs the bytes that have not arrived.
    clearRanOut()
    return -1
  }
  const national = nationalAfter(digits, next)
  if (isWord(next)) return national
  const kinds = national | <u32>load<u8>(BY_DIGITS + digits - 1)
  return digits < 13 && next != 32 && next != 45 ? kinds & ~(<u32>CARD) : kinds
}

/** Returns the end of the match of a digit detector that begins at `offset`, or 0. */
export function detectNumber(kind: i32, offset: i32): i32 {
  if (kind >= DETECT_VAT) return nationalEnd(kind, offset)
  if (kind == DETECT_SSN) return ssnAt(offset)
  if (kind == DETECT_CARD) return cardAt(offset)
  return kind == DETECT_SIN ? sinAt(offset) : phoneAt(offset)
}

// --- social security numbers -------------------------------------------------------------------

function isZero(offset: i32, count: i32): bool {
  for (let i = 0; i < count; i++) if (at(offset + i) != 48) return false
  return true
}

/**
 * Nine digits: bare, 3-2-4 with one kind of separator (dash, space or dot), 5-4 or 3-6 with a dash. Area,
 * group and serial are not all zeros. Numbers that were never assigned (area 666, 900 to 999) match
 * too, because a guard should rather mask them.
 */
function ssnAt(offset: i32): i32 {
  const first = digitsFrom(offset, 10)
  let end = 0
  if (first == 9) {
    if (isZero(offset, 3) || isZero(offset + 3, 2) || isZero(offset + 5, 4)) return 0
    end = offset + 9
  } else if (first == 5 && at(offset + 5) == 45 && digitsFrom(offset + 6, 5) == 4) {
    if (isZero(offset, 3) || isZero(offset + 3, 2) || isZero(offset + 6, 4)) return 0
    end = offset + 10
  } else if (first == 3) {
    end = dashedSsnAt(offset)
  }
  return end > 0 && !isWord(at(end)) ? end : 0
}

function dashedSsnAt(offset: i32): i32 {
  const separator = at(offset + 3)
  if ((separator != 45 && separator != 32 && separator != 46) || isZero(offset, 3)) return 0
  const second = digitsFrom(offset + 4, 7)
  if (second == 6 && separator == 45) {
    return isZero(offset + 4, 2) || isZero(offset + 6, 4) ? 0 : offset + 10
  }
  if (second != 2 || at(offset + 6) != separator || digitsFrom(offset + 7, 5) != 4) return 0
  return isZero(offset + 4, 2) || isZero(offset + 7, 4) ? 0 : offset + 11
}

// --- cards ---------------------------------------------------------------------------------------

/**
 * 13 to 19 digits that begin with 1 to 6 and pass the Luhn check, not all equal (with 1 exactly 15, because times in
 * milliseconds have 13); bare, or in groups of
 * three and more (the first of four and more) with single spaces or single dashes between, one kind in
 * a number. The longest that fits.
 */
function cardAt(offset: i32): i32 {
  const first = at(offset)
  if (first < 49 || first > 54) return 0
  let best = 0
  let separator: u32 = 0
  let digits = 0
  let group = 0
  let i = offset
// Luhn: every second digit from the right counts double. The sums for both parities are kept until the end is known.
  let even = 0
  let odd = 0
  let isVaried = false
  while (digits <= 19) {
    const byte = at(i)
    if (isDigit(byte)) {
      const value = <i32>byte - 48
      const doubled = value > 4 ? value * 2 - 9 : value * 2
      if (digits & 1) {
        odd += doubled
        even += value
      } else {
        odd += value
        even += doubled
      }
      isVaried = isVaried || byte != first
      digits++
      group++
      i++
      continue
    }
// `even` doubles the digits at even places, which is correct for an even count.
    const isGroup = separator == 0 || group >= 3
    const sum = digits & 1 ? odd : even
    if (digits >= 13 && (first != 49 || digits == 15) && isGroup && isVaried && sum % 10 == 0 && !isWord(byte)) best = i
    if (byte != 32 && byte != 45) break
    if ((separator != 0 && byte != separator) || group < (separator == 0 ? 4 : 3)) break
    separator = byte
    group = 0
    i++
  }
  return best
}

/** Nine digits with a Luhn check digit, bare or 3-3-3 with one kind of separator (dash or space). */
function sinAt(offset: i32): i32 {
  const first = digitsFrom(offset, 10)
  if (first != 9 && first != 3) return 0
  const step = first == 9 ? 3 : 4
  const separator = at(offset + 3)
  if (first == 3) {
    if (separator != 45 && separator != 32) return 0
    if (digitsFrom(offset + 4, 4) != 3 || at(offset + 7) != separator || digitsFrom(offset + 8, 4) != 3) return 0
  }
  const end = offset + 2 * step + 3
  if (isWord(at(end))) return 0
  let sum = 0
  let any: u32 = 0
  for (let i = 0; i < 9; i++) {
    const value = <i32>at(offset + (i / 3) * step + (i % 3)) - 48
    any |= value
    sum += i & 1 ? (value > 4 ? value * 2 - 9 : value * 2) : value
  }
  return any != 0 && sum % 10 == 0 ? end : 0
}

// --- telephone numbers -----------------------------------------------------------------------------

/**
 * International: `+`, then 8 to 15 digits of which the first is not 0, with single spaces, dots or dashes
 * between and one group in parentheses (E.164). North American without `+`: three digits (perhaps in
 * parentheses), three, four; area and exchange begin with 2 to 9; separators space, dot or dash, or
 * none at all; perhaps `1` and a separator before.
 */
function phoneAt(offset: i32): i32 {
  const first = at(offset)
  if (first == 43) return internationalAt(offset + 1)
  if (first == 49 && isSeparator(at(offset + 1))) return northAmericanAt(offset + 2)
  return northAmericanAt(offset)
}

function isSeparator(byte: u32): bool {
  return byte == 32 || byte == 45 || byte == 46
}

function internationalAt(offset: i32): i32 {
  if (at(offset) - 49 > 8) return 0
  let digits = 0
  let best = 0
  let i = offset
  let isOpen = false
  let groups = 0
  while (digits <= 15) {
    const byte = at(i)
    if (isDigit(byte)) {
      digits++
      i++
      continue
    }
    if (digits >= 8 && !isOpen && !isWord(byte)) best = i
    if (byte == 41 && isOpen) {
      isOpen = false
      i++
      if (digits >= 8 && !isWord(at(i))) best = i
    }
    if (isSeparator(at(i))) i++
    if (at(i) == 40 && groups == 0) {
      isOpen = true
      groups++
      i++
    }
// After a digit, a bracket or one separator there must be a digit; otherwise the number ends here.
    if (!isDigit(at(i))) break
  }
  return best
}

function northAmericanAt(offset: i32): i32 {
  let i = offset
  const isBracketed = at(i) == 40
  if (isBracketed) i++
  if (at(i) - 50 > 7 || digitsFrom(i, 3) != 3) return 0
  i += 3
  if (isBracketed) {
    if (at(i) != 41) return 0
    i++
  }
  const separator = at(i)
  if (isSeparator(separator)) i++
  if (at(i) - 50 > 7 || digitsFrom(i, 3) != 3) return 0
  i += 3
// If the first gap has a separator, every gap must have one.
  if (isSeparator(at(i))) i++
  else if (isSeparator(separator) || isBracketed) return 0
  if (digitsFrom(i, 5) != 4) return 0
  return isWord(at(i + 4)) ? 0 : i + 4
}

// --- email -----------------------------------------------------------------------------------------

/** A letter, digit or one of . _ % + - : the characters of a local part. */
export function isLocal(byte: u32): bool {
  return isWord(byte) || byte == 46 || byte == 37 || byte == 43 || byte == 45
}

/**
 * An address around the '@' at `offset`: up to 64 bytes of letters, digits and `._%+-` before it (not
 * before `from`), a domain after it: labels of letters, digits and inner dashes with dots between, at
 * least two, the last one of two letters or more, 253 bytes at most; the longest that fits. Quoted local
 * parts, address literals and names outside ASCII do not match. Returns the end, or 0, and sets emailStart.
 */
export function emailAround(offset: i32, from: i32): i32 {
  if (offset == from || !isLocal(at(offset - 1))) return 0
  const end = domainEnd(offset + 1)
  if (end == 0) return 0
  let start = offset - 1
  const low = max(from, offset - LOCAL_LIMIT)
  while (start > low && isLocal(at(start - 1))) start--
  emailStart = start
  return end
}

function domainEnd(offset: i32): i32 {
  const limit = offset + DOMAIN_LIMIT
  let best = 0
  let i = offset
  let byte = at(i)
  for (let isFirst = true; isAlphanumeric(byte); isFirst = false) {
    const label = i
    let isLetters = true
    let isDash = false
    while (i < limit && (isAlphanumeric(byte) || byte == 45)) {
      isLetters = isLetters && isLetter(byte)
      isDash = byte == 45
      byte = at(++i)
// The last label may end after a letter: in `a@b.com-x`, `a@b.com` is an address.
      if (!isFirst && isLetters && i - label >= 2 && i - label <= 63 && !isWord(byte)) best = i
    }
    if (i - label > 63 || isDash || byte != 46 || ++i >= limit) break
    byte = at(i)
  }
  return best
}
