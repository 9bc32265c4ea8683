// Regular expressions in linear time: text -> tree (parse.ts) -> program (compile.ts) -> lazily built DFA
// with a simulation behind it (run.ts). Syntax and classes are RE2's, the choice among matches is
// leftmost-first as in JavaScript; docs and the case files in test/core/regex name the differences.
//
// A compiled regex is a record:
//
//   +0  forward program   +4  reverse program or 0   +8  caches of the three modes, 0: none
//   +20 flags             +24 bytes simulated without a cache   +28 bound of undecided bytes, or -1
//   +32 reference count (its handle, and sets)   +36 1 if there is a filter   +48 filter (prefilter.ts)
import { arenaMark, arenaReset, blockAlloc, blockFree, isReadable } from '../arena'
import { ERROR_ARGUMENT, ERROR_MEMORY, REGEX_MATCH_ONLY, REGEX_NO_SPANS, REGEX_PATTERN_TOO_LONG, REGEX_TOO_MUCH_WORK } from '../abi'
import { MAX_PATTERN_BYTES, READS_FREE, READS_LIMIT, REGEX_ALL_FLAGS, REGEX_SYNTAX_FLAGS, clearError, errorCode, fail } from './codes'
import { growCaches, MODE_SEARCH, releaseCaches } from './cache'
import { compileTree } from './compile'
import { dropHandle, HANDLE_REGEX, newHandle, recordOf } from './handles'
import { UNBOUNDED, undecidedBytes } from './hold'
import { nodesStart } from './node'
import { parse } from './parse'
import { FILTER_BYTES, makeFilter } from './prefilter'
import { P_COUNT } from './program'
import { rangesStart } from './ranges'
import { checkUtf8 } from './reader'
import { matchesWhole, NONE, R_FILTER, R_FORWARD, R_HAS_FILTER, R_REVERSE, runBackward, runForward } from './run'
import { bytesRead, ensureScratch } from './step'

const RECORD_BYTES: usize = R_FILTER + FILTER_BYTES
const R_FLAGS: usize = 20
const R_HOLD: usize = 28
const R_USERS: usize = 32

/** Number of live regexes. */
let liveCount: i32 = 0

/** Returns the record of a regex handle, or 0. */
export function regexOf(handle: i32): usize {
  return recordOf(handle, HANDLE_REGEX)
}

// --- compiling -------------------------------------------------------------------------------

/** Programs of the compile in progress; freed if it fails. */
let forward: usize = 0
let reverse: usize = 0
let hold: i32 = UNBOUNDED

function compilePrograms(pattern: usize, length: i32, flags: i32): void {
  nodesStart(length)
  rangesStart()
  const root = parse(pattern, length, flags & REGEX_SYNTAX_FLAGS)
  if (errorCode != 0) return
  hold = undecidedBytes(root, true)
  forward = compileTree(root, false)
  if (errorCode != 0 || flags & REGEX_MATCH_ONLY) return
  reverse = compileTree(root, true)
}

function newRecord(flags: i32): i32 {
  const needed = max(load<u32>(forward, P_COUNT), reverse == 0 ? 0 : load<u32>(reverse, P_COUNT))
  if (!ensureScratch(needed)) return ERROR_MEMORY
  const record = blockAlloc(RECORD_BYTES)
  if (record == 0) return ERROR_MEMORY
  memory.fill(record, 0, RECORD_BYTES)
  store<u32>(record, <u32>forward, R_FORWARD)
  store<u32>(record, <u32>reverse, R_REVERSE)
  store<u32>(record, <u32>flags, R_FLAGS)
  store<i32>(record, hold, R_HOLD)
  store<u32>(record, 1, R_USERS)
  store<u32>(record, makeFilter(forward, record + R_FILTER) ? 1 : 0, R_HAS_FILTER)
  const handle = newHandle(record, HANDLE_REGEX)
  if (handle < 0) blockFree(record)
  else liveCount++
  return handle
}

/**
 * Compiles `length` bytes of pattern (UTF-8) with REGEX_* flags. Returns a handle (> 0) or a REGEX_*
 * code (< 0); then `regexErrorOffset()` is the byte offset of the error. Takes O(pattern) time times
 * its repetition counts, bounded by MAX_COMPILE_STEPS.
 */
export function regexCompile(pattern: usize, length: i32, flags: i32): i32 {
  clearError()
  if (length < 0 || length > MAX_PATTERN_BYTES) {
    fail(REGEX_PATTERN_TOO_LONG, MAX_PATTERN_BYTES)
    return REGEX_PATTERN_TOO_LONG
  }
  if (!isReadable(pattern, length) || !checkUtf8(pattern, length)) return errorCode == 0 ? ERROR_ARGUMENT : errorCode
  const place = arenaMark()
  forward = 0
  reverse = 0
  compilePrograms(pattern, length, flags & REGEX_ALL_FLAGS)
  arenaReset(place)
  const handle = errorCode == 0 ? newRecord(flags) : errorCode
  if (handle < 0) {
    blockFree(forward)
    blockFree(reverse)
    return handle
  }
// Search, full match and backward search: the caches that one regex can use.
  growCaches(liveCount * 3)
  return handle
}

/** Adds a reference to a regex for a set, which keeps it after its handle is freed. */
export function retainRegex(record: usize): void {
  store<u32>(record, load<u32>(record, R_USERS) + 1, R_USERS)
}

/** Removes a reference; the last one frees the regex. */
export function releaseRegex(record: usize): void {
  const users = load<u32>(record, R_USERS) - 1
  store<u32>(record, users, R_USERS)
  if (users > 0) return
  releaseCaches(record)
  blockFree(load<u32>(record, R_FORWARD))
  blockFree(load<u32>(record, R_REVERSE))
  blockFree(record)
  liveCount--
}

/** Frees a regex; its handle may be reused. Unknown handles are ignored. */
export function regexFree(handle: i32): void {
  const record = regexOf(handle)
  if (record == 0) return
  dropHandle(handle)
  releaseRegex(record)
}

/** Like `regexHold`, for a record. */
export function holdOf(record: usize): i32 {
  return load<i32>(record, R_HOLD)
}

/** Returns the maximum number of bytes that an undecided search must hold back, or UNBOUNDED; see hold.ts. */
export function regexHold(handle: i32): i32 {
  const record = regexOf(handle)
  return record == 0 ? ERROR_ARGUMENT : holdOf(record)
}

// --- matching --------------------------------------------------------------------------------

/** Returns true if the regex matches the whole text; false for an unknown handle. O(length). */
export function regexIsFullMatch(handle: i32, text: usize, length: i32): bool {
  const record = regexOf(handle)
  if (record == 0 || length < 0) return false
  return matchesWhole(record, text, length)
}

/** Returns true if the regex matches anywhere in the text; false for an unknown handle. O(length). */
export function regexIsMatch(handle: i32, text: usize, length: i32): bool {
  const record = regexOf(handle)
  if (record == 0 || length < 0) return false
  return runForward(record, MODE_SEARCH, text, length, 0, true) != NONE
}

/**
 * Finds the preferred match that begins leftmost at byte `from` or later. Writes its start and end to `out`
 * (2 u32) and returns 1, or 0 if there is none, or a REGEX_* code. O(length - from).
 */
export function regexFind(handle: i32, text: usize, length: i32, from: i32, out: usize): i32 {
  const record = regexOf(handle)
  if (record == 0) return ERROR_ARGUMENT
  if (load<u32>(record, R_REVERSE) == 0) return REGEX_NO_SPANS
  if (from < 0 || from > length) return 0
  const end = runForward(record, MODE_SEARCH, text, length, from, false)
  if (end == NONE) return 0
  store<u32>(out, <u32>runBackward(record, text, length, end, from))
  store<u32>(out, <u32>end, 4)
  return 1
}

/**
 * Finds all matches from byte `from` on, without overlaps. Writes at most `limit` (start, end) pairs of u32 to `out`.
 * Returns their number, or a REGEX_* code. As in JavaScript, an empty match directly after another match
 * counts, and the search continues one character after an empty match. O(length), or REGEX_TOO_MUCH_WORK.
 */
export function regexFindAll(handle: i32, text: usize, length: i32, from: i32, out: usize, limit: i32): i32 {
  let count = 0
  let next = from
  const limitRead = bytesRead + readsAllowed(length)
  while (count < limit && next <= length) {
    const place = out + (<usize>count << 3)
    const found = regexFind(handle, text, length, next, place)
    if (found < 0) return found
    if (found == 0) break
    if (bytesRead > limitRead) return REGEX_TOO_MUCH_WORK
    count++
    next = <i32>load<u32>(place, 4)
    if (<i32>load<u32>(place) == next) next = afterCharacter(text, length, next)
  }
  return count
}

/** Returns the maximum number of bytes that finding all matches in `length` bytes may read. */
export function readsAllowed(length: u64): u64 {
  return length * <u64>READS_LIMIT + <u64>READS_FREE
}

/** Returns the offset after the character at `at`; an invalid byte counts as one character. */
export function afterCharacter(text: usize, length: i32, at: i32): i32 {
  let next = at + 1
  while (next < length && (load<u8>(text + next) & 0xc0) == 0x80) next++
  return next
}
