// The builtins that are not patterns, in a stream: each finds its own matches, and waits for text that has not arrived.
import { DETECT_EMAIL, DETECT_SECRET } from '../abi'
import { isDigit, isLetter, isWord } from './ascii'
import { blockEnd, nextTriggered, TRIGGER_AT, TRIGGER_DIGIT } from './builtin-triggers'
import { DETECT_COUNT, detectNumber, emailAround, emailStart, isLocal, LOCAL_LIMIT, numbersAt } from './detect'
import { detectIn, ranOut } from './detect-text'
import { LETTERED, LETTERS, nationalAfterLetters, VAT } from './national'
import { isNumberSeparator } from './number-format'
import { candidatesAt, letteredDigits, nextCandidates } from './prefilter'
import { LOOKBACK, openRun, runEnd, runStart, secretEnd } from './secret'
import { MEMBER_DETECT, MEMBER_REGEX, memberOf, SET_DETECTS, SET_HAS_WORDS, SET_MEMBERS } from './set'
import { addFound, S_DETECT_AT, S_DETECT_HOLD, S_EMITTED, S_LENGTH, S_RESUME, S_SET, S_WINDOW } from './stream'
import { WORDS_LOOKBACK } from './word-scan'

/** The set's members by DETECT_*, -1 if it has none; and their results at one position. */
const members = memory.data(4 * 32)
const ends = memory.data(4 * 32)

/** The first member of each builtin; others of the same builtin would find the same spans. */
function findMembers(set: usize): void {
  memory.fill(members, 255, 4 * 32)
  for (let i = load<i32>(set, SET_MEMBERS) - 1; i >= 0; i--) {
    const member = memberOf(set, i)
    if (load<u32>(member, MEMBER_REGEX) == 0) store<i32>(members + (<usize>load<u32>(member, MEMBER_DETECT) << 2), i)
  }
}

/** Returns where the position from which a builtin may match again is stored. */
export function resumeOf(stream: usize, kind: i32): usize {
  return stream + S_RESUME + (<usize>kind << 2)
}

function takeDetected(stream: usize, kind: i32, start: i32, end: i32): void {
  addFound(stream, start, end, load<i32>(members + (<usize>kind << 2)))
  store<i32>(resumeOf(stream, kind), end)
}

/** Runs the detector for an '@'. Returns false if its result needs more text. */
function detectEmail(stream: usize, at: i32, isEnd: bool): bool {
  const from = load<i32>(resumeOf(stream, DETECT_EMAIL))
  if (at < from) return true
  const end = emailAround(at, from)
  if (ranOut && !isEnd) return false
  if (end > 0) takeDetected(stream, DETECT_EMAIL, emailStart, end)
  return true
}

/** Runs the detectors `possible` (bits) at `at`. Returns false, without a result, if one needs more text. */
function detectAll(stream: usize, at: i32, possible: u32, isEnd: bool): bool {
  for (let rest = possible; rest != 0; rest &= rest - 1) {
    const kind = <i32>ctz(rest)
    const end = at >= load<i32>(resumeOf(stream, kind)) ? detectNumber(kind, at) : 0
    if (ranOut && !isEnd) return false
    store<i32>(ends + (<usize>kind << 2), end)
  }
  for (let rest = possible; rest != 0; rest &= rest - 1) {
    const kind = <i32>ctz(rest)
    const end = load<i32>(ends + (<usize>kind << 2))
    if (end > 0) takeDetected(stream, kind, at, end)
  }
  return true
}

/** Runs the detectors `kinds` (bits) for a digit, '+' or '('. Returns false if one needs more text. */
function detectNumbers(stream: usize, at: i32, kinds: u32, isEnd: bool): bool {
  const window = <usize>load<u32>(stream, S_WINDOW)
  if (kinds & LETTERED && isDigit(load<u8>(window + at))) {
    const start = lettersBefore(stream, at)
    const end = start < at && isLetter(load<u8>(window + at - 1)) ? at : at - 1
    const isWhole = start < end && end - start <= LETTERS && (start == 0 || !isWord(load<u8>(window + start - 1)))
    if (isWhole && !detectAll(stream, start, nationalAfterLetters(end - start) & kinds, isEnd)) return false
    const country = countryBefore(stream, start, end)
    if (isWhole && country < start && !detectAll(stream, country, VAT & kinds, isEnd)) return false
  }
  if (at > 0 && isLetter(load<u8>(window + at - 1))) return true
  return detectAll(stream, at, numbersAt(at) & kinds, isEnd)
}

/** Returns the start of the letters before `at`, with which a number may begin; a separator may be between. */
function lettersBefore(stream: usize, at: i32): i32 {
  const window = <usize>load<u32>(stream, S_WINDOW)
  const low = max(load<i32>(stream, S_EMITTED), at - LETTERS - 2)
  let start = at
  if (start > low && isNumberSeparator(load<u8>(window + start - 1))) start--
  while (start > low && isLetter(load<u8>(window + start - 1))) start--
  return start
}

/** Returns the start of `ES` or `FR` and a separator before the one or two letters `start`..`end`, as in `ES B58378431`; or `start`. */
function countryBefore(stream: usize, start: i32, end: i32): i32 {
  const window = <usize>load<u32>(stream, S_WINDOW)
  const country = start - 3
  if (end - start > 2 || country < load<i32>(stream, S_EMITTED) || !isNumberSeparator(load<u8>(window + start - 1))) return start
  // Little-endian, in upper case.
  const letters = load<u16>(window + country) & ~0x2020
  return (letters == 0x5345 || letters == 0x5246) && (country == 0 || !isWord(load<u8>(window + country - 1))) ? country : start
}

/** Returns the start of the letters before `at` that must be held back, because a number may begin with them. */
function lettersToHold(stream: usize, at: i32): i32 {
  const start = lettersBefore(stream, at)
  const isSeparated = start < at && !isLetter(load<u8>(<usize>load<u32>(stream, S_WINDOW) + at - 1))
  return countryBefore(stream, start, isSeparated ? at - 1 : at)
}

/** Returns the start of the letters and digits that an '@' at `end` would have before it. */
function localBefore(stream: usize, end: i32): i32 {
  const window = <usize>load<u32>(stream, S_WINDOW)
  const low = max(load<i32>(resumeOf(stream, DETECT_EMAIL)), end - LOCAL_LIMIT)
  let start = end
  while (start > low && isLocal(load<u8>(window + start - 1))) start--
  return start
}

/** '+' or '(', which may begin a telephone number. */
function isBeforeDigit(byte: u32): bool {
  return byte == 43 || byte == 40
}

/** Runs the detectors `kinds` (bits) from `from` on. Returns the position that needs more text, or the end. */
function detectFrom(stream: usize, from: i32, kinds: u32, isEnd: bool): i32 {
  const window = <usize>load<u32>(stream, S_WINDOW)
  const length = load<i32>(stream, S_LENGTH)
  const hasEmail = ((kinds >> DETECT_EMAIL) & 1) != 0
  const numbers = kinds & ~(<u32>1 << DETECT_EMAIL)
  const groups = (numbers != 0 ? TRIGGER_DIGIT : 0) | (hasEmail ? TRIGGER_AT : 0)
  let done = from
  for (let block = nextTriggered(groups, from, length); block < length; block = nextTriggered(groups, done, length)) {
    // A '+' or '(' may be the last byte of the block before its digit.
    const low = max(done, block - 1)
    done = blockEnd(block, length)
    for (let next = low; next < done; next = candidatesAt + 16) {
      let bits = nextCandidates(window, next, done, numbers != 0, (kinds & LETTERED) != 0, hasEmail)
      if (bits == 0) break
      for (; bits != 0; bits &= bits - 1) {
        const at = candidatesAt + ctz(bits)
        detectIn(window, length)
        const isDone = load<u8>(window + at) == 64 ? detectEmail(stream, at, isEnd) : detectNumbers(stream, at, numbers, isEnd)
        if (!isDone) return at
      }
    }
  }
  // Its digit has not arrived.
  return numbers != 0 && !isEnd && length > from && isBeforeDigit(load<u8>(window + length - 1)) ? length - 1 : length
}

const SECRET: u32 = 1 << DETECT_SECRET

/** Returns the number of written bytes that the members of a set may read again, at least 1. */
export function lookbackOf(set: usize): i32 {
  if (load<u32>(set, SET_DETECTS) & SECRET) return LOOKBACK
  return load<u32>(set, SET_HAS_WORDS) != 0 ? WORDS_LOOKBACK : 1
}

/** Finds secrets. Returns the start of undecided text. */
function detectSecrets(stream: usize, isEnd: bool): i32 {
  const window = <usize>load<u32>(stream, S_WINDOW)
  const length = load<i32>(stream, S_LENGTH)
  const decided = isEnd ? length : openRun(window, length)
  let done = load<i32>(resumeOf(stream, DETECT_SECRET))
  for (let block = nextTriggered(TRIGGER_DIGIT, done, decided); block < decided; block = nextTriggered(TRIGGER_DIGIT, done, decided)) {
    const end = min(blockEnd(block, length), decided)
    done = max(done, block)
    for (let i = done; i < end; i += 16) {
      for (let bits = letteredDigits(window, i, end, length); bits != 0; bits &= bits - 1) {
        const at = i + ctz(bits)
        if (at < done) continue
        const start = runStart(window, at)
        done = runEnd(window, at, length)
        const found = secretEnd(window, start, done, length)
        if (found > 0) takeDetected(stream, DETECT_SECRET, start, found)
      }
    }
    done = max(done, end)
  }
  store<i32>(resumeOf(stream, DETECT_SECRET), max(done, decided))
  return decided
}

/** Runs the builtins `kinds` (bits), which are not patterns, on the text that has arrived. */
export function advanceDetectors(stream: usize, kinds: u32, isEnd: bool): void {
  findMembers(load<u32>(stream, S_SET))
  const others = kinds & ~SECRET
  const at = detectFrom(stream, load<i32>(stream, S_DETECT_AT), others, isEnd)
  store<i32>(stream, at, S_DETECT_AT)
  let hold = kinds & LETTERED ? lettersToHold(stream, at) : at
  if ((kinds >> DETECT_EMAIL) & 1) hold = min(hold, localBefore(stream, at))
  if (kinds & SECRET) hold = min(hold, detectSecrets(stream, isEnd))
  store<i32>(stream, hold, S_DETECT_HOLD)
}
