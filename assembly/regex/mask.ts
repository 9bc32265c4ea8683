// Processes the text of a stream: every member continues its search, decided text is written with the found
// spans replaced, and the rest is held back.
//
// A pattern's member holds back text from the position before which no match has begun (the automaton is idle),
// but never more than its bound of undecided bytes (hold.ts), because every earlier thread has accepted
// or died. If a match has accepted and is longer than that bound, its beginning is decided: its replacement
// is written, and the rest is dropped until the match ends.
import { REGEX_TOO_MUCH_WORK } from '../abi'
import { mapTriggers } from './builtin-triggers'
import { checkedEnd } from './check'
import { DETECT_COUNT } from './detect'
import { UNBOUNDED } from './hold'
import { afterCharacter, holdOf, readsAllowed } from './index'
import { advanceDetectors, lookbackOf, resumeOf } from './mask-detect'
import { runBackward } from './run'
import { beginScan, scan, scanIdle, scanLast, scanMeta, scanPosition } from './scan'
import { bytesRead } from './step'
import { MEMBER_DETECT, MEMBER_REGEX, MEMBER_TEXT, MEMBER_TEXT_LENGTH, memberOf, SET_DETECTS, SET_MEMBERS, SET_TRIGGERS, WORDS } from './set'
import { addEdit, addFound, appendToWindow, failStream, FOUND_BYTES, foundAt, M_FROM, M_HOLD, M_IDLE, M_LAST, M_META, M_POSITION, M_START, M_THREADS, output, progressOf, S_COUNT, S_DETECT_AT, S_DETECT_HOLD, S_EDIT_COUNT, S_EMITTED, S_FAILURE, S_FOUND, S_FOUND_COUNT, S_LENGTH, S_MASKED, S_OUT_LENGTH, S_READ, S_SET, S_TAKEN, S_WINDOW, sortFound } from './stream'
import { advanceWords } from './word-scan'

/** Text is processed in chunks of this size, which keeps the window small if possible. */
const PIECE: i32 = 1 << 16

// --- patterns ----------------------------------------------------------------------------------

/** Records that the member's match, which began at M_START, now reaches `end`. */
function extend(stream: usize, index: i32, start: i32, end: i32): void {
  for (let i = load<i32>(stream, S_FOUND_COUNT) - 1; i >= 0; i--) {
    const found = foundAt(stream, i)
    if (load<i32>(found) == index && load<i32>(found, 4) == start) {
      store<i32>(found, end, 8)
      return
    }
  }
  // Its replacement is written already; the rest of the span is masked too.
  store<i32>(stream, max(load<i32>(stream, S_MASKED), end), S_MASKED)
}

/** Returns the start of the match that ends at `end`. It is after the written text, where a match can have begun. */
function startOf(stream: usize, regex: usize, progress: usize, end: i32): i32 {
  const low = max(max(load<i32>(progress, M_FROM), load<i32>(progress, M_IDLE)), load<i32>(stream, S_EMITTED))
  return max(low, runBackward(regex, load<u32>(stream, S_WINDOW), load<i32>(stream, S_LENGTH), end, low))
}

/** Records a decided match and prepares for the next one, which begins at M_FROM or later. */
function settle(stream: usize, index: i32, regex: usize, progress: usize): void {
  const window = <usize>load<u32>(stream, S_WINDOW)
  const length = load<i32>(stream, S_LENGTH)
  let end = load<i32>(progress, M_LAST)
  let start = load<i32>(progress, M_START)
  if (start >= 0) {
    extend(stream, index, start, end)
  } else {
    start = startOf(stream, regex, progress, end)
    const member = memberOf(load<u32>(stream, S_SET), index)
    const checked = checkedEnd(load<i32>(member, MEMBER_DETECT), window, length, start, end)
    if (checked > start) addFound(stream, start, checked, index)
// After a match that is not verified, the search continues behind its first byte.
    end = checked > 0 ? checked : start + 1
  }
  const from = end > start ? end : afterCharacter(window, length, end)
  store<i32>(progress, from, M_FROM)
  store<i32>(progress, from, M_POSITION)
  store<i32>(progress, from, M_IDLE)
  store<i32>(progress, -1, M_LAST)
  store<i32>(progress, -1, M_START)
  store<u32>(progress, 0, M_META)
}

/** Returns the start of the member's undecided text; decides the beginning of a long match. */
function holdBack(stream: usize, index: i32, regex: usize, progress: usize): i32 {
  const length = load<i32>(stream, S_LENGTH)
  const last = load<i32>(progress, M_LAST)
  const from = load<i32>(progress, M_FROM)
  const bound = holdOf(regex)
  if (load<i32>(progress, M_START) >= 0) {
    extend(stream, index, load<i32>(progress, M_START), last)
    return last
  }
  const idle = max(load<i32>(progress, M_IDLE), from)
  if (bound == UNBOUNDED) return idle
  const settled = length - bound - 1
  if (last > from && settled >= from) {
    const start = startOf(stream, regex, progress, last)
    if (start <= settled && start < last) {
      store<i32>(progress, start, M_START)
      addFound(stream, start, last, index)
      return last
    }
  }
  return max(idle, settled)
}

function advancePattern(stream: usize, index: i32, regex: usize, isEnd: bool): void {
  const progress = progressOf(stream, index)
  const window = <usize>load<u32>(stream, S_WINDOW)
  const length = load<i32>(stream, S_LENGTH)
  const threads = <usize>load<u32>(progress, M_THREADS)
  while (load<i32>(progress, M_FROM) <= length) {
    const from = load<i32>(progress, M_FROM)
    if (load<u32>(progress, M_META) == 0) {
// At the window's end the previous byte may be needed, and there may be no byte to look ahead to.
      if (from == length && !isEnd) break
      store<u32>(progress, beginScan(regex, window, from, threads), M_META)
    }
    scan(regex, window, length, isEnd, threads, load<u32>(progress, M_META), load<i32>(progress, M_POSITION), load<i32>(progress, M_LAST), load<i32>(progress, M_IDLE))
    store<i32>(progress, scanPosition, M_POSITION)
    store<i32>(progress, scanIdle, M_IDLE)
    store<i32>(progress, scanLast, M_LAST)
    store<u32>(progress, scanMeta, M_META)
    if (scanMeta != 0) {
      store<i32>(progress, holdBack(stream, index, regex, progress), M_HOLD)
      return
    }
    if (scanLast < 0) break
    settle(stream, index, regex, progress)
    if (bytesRead - startedAt > allowed) {
      failStream(stream, REGEX_TOO_MUCH_WORK)
      return
    }
  }
  store<i32>(progress, min(length, load<i32>(progress, M_FROM)), M_HOLD)
}

// --- output --------------------------------------------------------------------------------------

/** Returns the start of undecided text. Before it, every span is known. */
function frontier(stream: usize, isEnd: bool): i32 {
  const set = <usize>load<u32>(stream, S_SET)
  const length = load<i32>(stream, S_LENGTH)
  if (isEnd) return length
  let least = load<u32>(set, SET_DETECTS) == 0 ? length : load<i32>(stream, S_DETECT_HOLD)
  for (let i = 0; i < load<i32>(set, SET_MEMBERS); i++) {
    if (load<u32>(memberOf(set, i), MEMBER_REGEX) != 0) least = min(least, load<i32>(progressOf(stream, i), M_HOLD))
  }
  return max(load<i32>(stream, S_EMITTED), wholeCharacters(load<u32>(stream, S_WINDOW), least, length))
}

/** Returns `end`, or the start of the UTF-8 sequence that `end` would split. */
function wholeCharacters(window: usize, end: i32, length: i32): i32 {
  if (end < length && (load<u8>(window + end) & 0xc0) != 0x80) return end
  for (let back = 1; back <= 3 && back <= end; back++) {
    const byte = <i32>load<u8>(window + end - back)
    if ((byte & 0xc0) == 0x80) continue
    const size = byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : byte < 0xf8 ? 4 : 1
    return size > back ? end - back : end
  }
  return end
}

/** Records plain text and a span, unless both are empty. */
function noteSpan(stream: usize, plain: i32, masked: i32, member: i32): void {
  if (plain > 0 || masked > 0) addEdit(stream, plain, max(masked, 0), member)
}

function giveOut(stream: usize, limit: i32): void {
  const set = <usize>load<u32>(stream, S_SET)
  const window = <usize>load<u32>(stream, S_WINDOW)
  const count = load<i32>(stream, S_FOUND_COUNT)
  let emitted = load<i32>(stream, S_EMITTED)
  let masked = load<i32>(stream, S_MASKED)
  sortFound(stream)
// The open span: its member (-1: an earlier call began it), the plain text before it, and its position.
  let member = -1
  let before = 0
  let opened = emitted
  let i = 0
  for (; i < count; i++) {
    const found = foundAt(stream, i)
    const start = load<i32>(found, 4)
    if (start >= limit) break
    if (start >= masked) {
      noteSpan(stream, before, min(masked, limit) - opened, member)
      const plain = max(emitted, masked)
      before = start - plain
      if (before > 0) output(stream, window + plain, before)
      member = load<i32>(found)
      opened = start
      const rule = memberOf(set, member)
      output(stream, load<u32>(rule, MEMBER_TEXT), load<i32>(rule, MEMBER_TEXT_LENGTH))
      store<i32>(stream, load<i32>(stream, S_COUNT) + 1, S_COUNT)
      emitted = start
    }
    masked = max(masked, load<i32>(found, 8))
  }
  noteSpan(stream, before, min(masked, limit) - opened, member)
  const plain = max(emitted, masked)
  if (limit > plain) {
    output(stream, window + plain, limit - plain)
    noteSpan(stream, limit - plain, 0, -1)
  }
  memory.copy(load<u32>(stream, S_FOUND), foundAt(stream, i), (count - i) * FOUND_BYTES)
  store<i32>(stream, count - i, S_FOUND_COUNT)
  store<i32>(stream, max(load<i32>(stream, S_EMITTED), limit), S_EMITTED)
  store<i32>(stream, masked, S_MASKED)
}

/** Moves an offset of the record at `place` down; an offset before the window becomes its start. */
function shift(place: usize, bytes: i32): void {
  store<i32>(place, max(load<i32>(place) - bytes, 0))
}

/** Drops the written bytes from the window, except those that a search may read again. */
function compact(stream: usize): void {
  const bytes = load<i32>(stream, S_EMITTED) - lookbackOf(load<u32>(stream, S_SET))
  if (bytes <= 0) return
  const window = <usize>load<u32>(stream, S_WINDOW)
  memory.copy(window, window + bytes, load<i32>(stream, S_LENGTH) - bytes)
  shift(stream + S_LENGTH, bytes)
  shift(stream + S_EMITTED, bytes)
  shift(stream + S_MASKED, bytes)
  shift(stream + S_DETECT_AT, bytes)
  for (let kind = 0; kind < DETECT_COUNT; kind++) shift(resumeOf(stream, kind), bytes)
  for (let i = 0; i < load<i32>(stream, S_FOUND_COUNT); i++) {
    shift(foundAt(stream, i) + 4, bytes)
    shift(foundAt(stream, i) + 8, bytes)
  }
  for (let i = 0; i < load<i32>(load<u32>(stream, S_SET), SET_MEMBERS); i++) {
    const progress = progressOf(stream, i)
    shift(progress + M_FROM, bytes)
    shift(progress + M_POSITION, bytes)
    shift(progress + M_IDLE, bytes)
    if (load<i32>(progress, M_LAST) >= 0) shift(progress + M_LAST, bytes)
    if (load<i32>(progress, M_START) >= 0) shift(progress + M_START, bytes)
  }
}

/** `bytesRead` at the start of the current chunk, and the maximum that may be added to it. */
let startedAt: u64 = 0
let allowed: u64 = 0

function takePiece(stream: usize, text: usize, length: i32, isEnd: bool): void {
  const set = <usize>load<u32>(stream, S_SET)
  compact(stream)
  appendToWindow(stream, text, length)
  if (load<i32>(stream, S_FAILURE) != 0) return
  const triggers = load<u32>(set, SET_TRIGGERS)
  // The last byte before the text may be the first one of a pair.
  if (triggers != 0) mapTriggers(load<u32>(stream, S_WINDOW), max(0, load<i32>(stream, S_LENGTH) - length - 1), load<i32>(stream, S_LENGTH), triggers)
  const taken = load<u64>(stream, S_TAKEN) + <u64>length
  const read = load<u64>(stream, S_READ)
  store<u64>(stream, taken, S_TAKEN)
  startedAt = bytesRead
  const most = readsAllowed(taken * load<u32>(set, SET_MEMBERS))
  allowed = most > read ? most - read : 0
  const kinds = load<u32>(set, SET_DETECTS)
  if (kinds != 0) advanceDetectors(stream, kinds, isEnd)
  for (let i = 0; i < load<i32>(set, SET_MEMBERS); i++) {
    const member = memberOf(set, i)
    const record = <usize>load<u32>(member, MEMBER_REGEX)
    if (load<i32>(member, MEMBER_DETECT) == WORDS) advanceWords(stream, i, record, isEnd)
    else if (record != 0) advancePattern(stream, i, record, isEnd)
  }
  store<u64>(stream, read + bytesRead - startedAt, S_READ)
  if (load<i32>(stream, S_FAILURE) == 0) giveOut(stream, frontier(stream, isEnd))
}

/**
 * Processes text that has arrived, the last if `isEnd`. Returns the number of bytes of masked text
 * (at S_OUT, until the next call), or a code. After a code the stream cannot continue, and its text must not be forwarded.
 */
export function pushText(stream: usize, text: usize, length: i32, isEnd: bool): i32 {
  store<i32>(stream, 0, S_OUT_LENGTH)
  store<i32>(stream, 0, S_EDIT_COUNT)
  let done = 0
  do {
    const size = min(length - done, PIECE)
    takePiece(stream, text + done, size, isEnd && done + size == length)
    done += size
  } while (done < length && load<i32>(stream, S_FAILURE) == 0)
  const failure = load<i32>(stream, S_FAILURE)
  return failure != 0 ? failure : load<i32>(stream, S_OUT_LENGTH)
}

/** Returns the number of bytes that the stream holds back now. */
export function heldBack(stream: usize): i32 {
  return load<i32>(stream, S_LENGTH) - max(load<i32>(stream, S_EMITTED), min(load<i32>(stream, S_MASKED), load<i32>(stream, S_LENGTH)))
}
