// Finds where a match of a builtin can begin. The map of triggers says in which blocks to look.
import { DETECT_API_KEY, DETECT_EMAIL, DETECT_IBAN, DETECT_IP, DETECT_PRIVATE_KEY } from '../abi'
import { isDigit, isLetter, isWord } from './ascii'
import { isKeyPair, KEY_REACH, KEY_TRIGGERS } from './builtin-keys'
import { addTrigger, blockEnd, nextTriggered, TRIGGER_AT, TRIGGER_CAPITAL, TRIGGER_DIGIT, triggersAt } from './builtin-triggers'

/** Bytes at the end of the text in which a match may have begun whose trigger has not arrived. */
const UNDECIDED: i32 = KEY_REACH

/** Returns the groups of the triggers of a builtin. */
export function groupsOf(detect: i32): u32 {
  if (detect == DETECT_EMAIL) return TRIGGER_AT
  if (detect == DETECT_API_KEY) return KEY_TRIGGERS
  return detect == DETECT_PRIVATE_KEY ? TRIGGER_CAPITAL : TRIGGER_DIGIT
}

/** Adds the triggers of all builtins but API keys (builtin-keys.ts). */
export function prepareTriggers(): void {
  addTrigger(TRIGGER_AT, '', '@')
  // IP addresses may have a colon and no digit.
  addTrigger(TRIGGER_DIGIT, '', '0123456789:')
  // `-----BEGIN` and `AGE-SECRET`
  addTrigger(TRIGGER_CAPITAL, '-', 'BS')
}

/** Returns the start of the match that the second byte of a trigger at `at` announces, or -1. */
// @ts-ignore: decorator
@inline
function startAt(detect: i32, text: usize, from: i32, at: i32, length: i32): i32 {
  if (detect == DETECT_IBAN) {
    const start = at - 2
    if (start < from || !isLetter(load<u8>(text + at - 1)) || !isLetter(load<u8>(text + start))) return -1
    return start > 0 && isWord(load<u8>(text + start - 1)) ? -1 : start
  }
  if (detect == DETECT_IP) return addressAt(text, from, at, length)
  return detect == DETECT_API_KEY ? keyAt(text, from, at) : privateKeyAt(text, from, at)
}

function isHex(byte: u32): bool {
  return isDigit(byte) || (byte | 32) - 97 < 6
}

/** A colon between hexadecimal digits, or before a colon. Bytes that have not arrived may be any. */
function colonAt(text: usize, from: i32, at: i32, length: i32): i32 {
  const isEnd = at + 1 >= length
  const next: u32 = isEnd ? 58 : load<u8>(text + at + 1)
  let start = at
  while (start > from && start > at - 4 && isHex(load<u8>(text + start - 1))) start--
  if (next != 58 && (start == at || !isHex(next))) return -1
  return start > 0 && isWord(load<u8>(text + start - 1)) ? -1 : start
}

/** One to three digits and a dot, or a colon. */
function addressAt(text: usize, from: i32, at: i32, length: i32): i32 {
  if (load<u8>(text + at) == 58) return colonAt(text, from, at, length)
  if (at > 0 && isWord(load<u8>(text + at - 1))) return -1
  let i = at + 1
  while (i < length && i < at + 3 && isDigit(load<u8>(text + i))) i++
  return i < length && load<u8>(text + i) != 46 ? -1 : at
}

/** The start of the word that the pair belongs to, or follows with a dot. */
function keyAt(text: usize, from: i32, at: i32): i32 {
  let start = at - 1
  if (start > from && load<u8>(text + start) == 46) start--
  const low = max(from, at - KEY_REACH)
  while (start > low && isWord(load<u8>(text + start - 1))) start--
  if (start < from || (start > 0 && isWord(load<u8>(text + start - 1)))) return -1
  return isKeyPair(load<u8>(text + at - 1), load<u8>(text + at), at - start) ? start : -1
}

function privateKeyAt(text: usize, from: i32, at: i32): i32 {
  const start = load<u8>(text + at) == 66 ? at - 5 : at - 4
  if (start < from) return -1
  // Four dashes, or `AGE-`.
  return load<u32>(text + start) == (start == at - 5 ? 0x2d2d2d2d : 0x2d454741) ? start : -1
}

// @ts-ignore: decorator
@inline
function lettersOf(v: v128): v128 {
  return i8x16.lt_u(i8x16.sub(v128.or(v, i8x16.splat(32)), i8x16.splat(97)), i8x16.splat(26))
}

/** Returns a bit for each of 16 bytes from `i` on that can be the second byte of a trigger of the builtin. */
// @ts-ignore: decorator
@inline
function candidates(detect: i32, text: usize, i: i32): i32 {
  if (detect == DETECT_API_KEY) return triggersAt(text, i, KEY_TRIGGERS)
  const b = v128.load(text + i)
  if (detect == DETECT_PRIVATE_KEY) {
    const letters = v128.or(i8x16.eq(b, i8x16.splat(66)), i8x16.eq(b, i8x16.splat(83)))
    return i8x16.bitmask(v128.and(letters, i8x16.eq(v128.load(text + i - 1), i8x16.splat(45))))
  }
  const digits = i8x16.lt_u(i8x16.sub(b, i8x16.splat(48)), i8x16.splat(10))
  const a = i > 0 ? v128.load(text + i - 1) : i8x16.splat(0)
  const letters = lettersOf(a)
  // What is before the text is checked later.
  if (detect == DETECT_IBAN) return i8x16.bitmask(v128.and(digits, v128.and(letters, lettersOf(v128.load(text + i - 2)))))
  const word = v128.or(letters, i8x16.lt_u(i8x16.sub(a, i8x16.splat(48)), i8x16.splat(10)))
  return i8x16.bitmask(v128.or(v128.andnot(digits, word), i8x16.eq(b, i8x16.splat(58))))
}

/** Returns the first start of a match whose trigger is in `low`..`high`, or -1. */
// @ts-ignore: decorator
@inline
function startIn(detect: i32, text: usize, from: i32, low: i32, high: i32, length: i32): i32 {
  for (let i = low; i < high; i += 16) {
    for (let bits = candidates(detect, text, i); bits != 0; bits &= bits - 1) {
      const at = i + ctz(bits)
      if (at >= high) break
      const start = startAt(detect, text, from, at, length)
      if (start >= 0) return start
    }
  }
  return -1
}

// @ts-ignore: decorator
@inline
function nextOf(detect: i32, text: usize, from: i32, length: i32): i32 {
  const last = max(from, length - UNDECIDED)
  const groups = groupsOf(detect)
  for (let at = nextTriggered(groups, from, length); at < length; ) {
    const end = blockEnd(at, length)
    const start = startIn(detect, text, from, at, end, length)
    if (start >= 0) return min(start, last)
    at = nextTriggered(groups, end, length)
  }
  return last
}

/** Returns the first offset from `from` on, at most `length`, at which a match of the builtin can begin. */
export function nextOfBuiltin(detect: i32, text: usize, from: i32, length: i32): i32 {
  if (from >= length) return length
  if (detect == DETECT_API_KEY) return nextOf(DETECT_API_KEY, text, from, length)
  if (detect == DETECT_IBAN) return nextOf(DETECT_IBAN, text, from, length)
  return detect == DETECT_IP ? nextOf(DETECT_IP, text, from, length) : nextOf(DETECT_PRIVATE_KEY, text, from, length)
}
