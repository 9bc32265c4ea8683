// The regex part of the ABI: what assembly/index.ts exports. Every span is checked here, once.
import { ERROR_ARGUMENT } from '../abi'
import { isReadable } from '../arena'
import { fail, refuse, setOrigin } from '../refusal'
import { errorOffset } from './codes'
import { regexCompile, regexFind, regexFindAll, regexFree, regexHold, regexIsFullMatch, regexIsMatch, regexOf } from './index'
import { heldBack, pushText } from './mask'
import { addDetector, addPattern, freeSet, newSet, SET_HOLD, setOf } from './set'
import { work } from './step'
import { freeStream, newStream, resetStream, S_COUNT, S_EDIT_COUNT, S_EDITS, S_OUT, streamOf } from './stream'

/**
 * Compiles `length` bytes of pattern under REGEX_* flags: a handle, or a code, with last_error_offset at
 * what is wrong in the pattern. The pattern's bytes are not kept.
 */
export function regex_compile(pattern: usize, length: i32, flags: i32): i32 {
  const handle = regexCompile(pattern, length, flags)
  if (handle > 0) return handle
  setOrigin(pattern)
  return refuse(handle, pattern + errorOffset)
}

/** Byte offset in the pattern at which the last `regex_compile` failed. */
export function regex_error_offset(): i32 {
  return errorOffset
}

/** Frees a regex; its handle may be given out again. Unknown handles are ignored. */
export function regex_free(handle: i32): void {
  regexFree(handle)
}

function check(handle: i32, text: usize, length: i32): i32 {
  const isGood = regexOf(handle) != 0 && length >= 0 && isReadable(text, length)
  return isGood ? 0 : fail(ERROR_ARGUMENT)
}

/** 1 when the regex matches anywhere in the text, 0 when not, or a code. */
export function regex_is_match(handle: i32, text: usize, length: i32): i32 {
  const code = check(handle, text, length)
  return code < 0 ? code : regexIsMatch(handle, text, length) ? 1 : 0
}

/** 1 when the regex matches the whole text, 0 when not, or a code. */
export function regex_full_match(handle: i32, text: usize, length: i32): i32 {
  const code = check(handle, text, length)
  return code < 0 ? code : regexIsFullMatch(handle, text, length) ? 1 : 0
}

/** 1 and (start, end) as 2 u32 at `out`, 0 when nothing matches from `from` on, or a code. */
export function regex_find(handle: i32, text: usize, length: i32, from: i32, out: usize): i32 {
  const code = check(handle, text, length)
  if (code < 0) return code
  return isReadable(out, 8) ? regexFind(handle, text, length, from, out) : fail(ERROR_ARGUMENT)
}

/**
 * All matches from `from` on: how many (start, end) pairs of u32 were written to `out`, at most `limit`,
 * or a code. To go on after `limit` pairs, begin at the last end, or one character after an empty match.
 */
export function regex_find_all(
  handle: i32,
  text: usize,
  length: i32,
  from: i32,
  out: usize,
  limit: i32,
): i32 {
  const code = check(handle, text, length)
  if (code < 0) return code
  const isRoom = limit >= 0 && limit <= 0x7ffffff && isReadable(out, <usize>limit << 3)
  return isRoom && from >= 0 ? regexFindAll(handle, text, length, from, out, limit) : fail(ERROR_ARGUMENT)
}

/** Units of work done since the module started: what tests of linear time count. */
export function regex_work(): f64 {
  return <f64>work
}

/**
 * Bytes that a search can need to hold back before it is decided, or -1 when there is no bound (then who
 * streams must buffer all), or ERROR_ARGUMENT.
 */
export function regex_hold(handle: i32): i32 {
  return regexHold(handle)
}

/** An empty mask set: a handle, or ERROR_MEMORY. */
export function mask_new(): i32 {
  return newSet()
}

/** Frees a mask set, once its streams are freed too. */
export function mask_free(set: i32): void {
  freeSet(set)
}

/** Adds a pattern and the bytes that replace its matches: 0, or a code. At most 64 members. */
export function mask_add(set: i32, regex: i32, text: usize, length: i32): i32 {
  if (length < 0 || !isReadable(text, length)) return fail(ERROR_ARGUMENT)
  const code = addPattern(set, regex, text, length)
  return code < 0 ? fail(code) : 0
}

/** Adds a builtin (DETECT_*) and the bytes that replace its matches: 0, or a code. */
export function mask_add_builtin(set: i32, builtin: i32, text: usize, length: i32): i32 {
  if (length < 0 || !isReadable(text, length)) return fail(ERROR_ARGUMENT)
  const code = addDetector(set, builtin, text, length)
  return code < 0 ? fail(code) : 0
}

/** Bytes that a stream over the set holds back at most, or -1 when there is no bound, or ERROR_ARGUMENT. */
export function mask_hold(set: i32): i32 {
  const record = setOf(set)
  return record == 0 ? ERROR_ARGUMENT : load<i32>(record, SET_HOLD)
}

/** A stream of text to mask; its set takes no more members. A handle, or a code. */
export function stream_new(set: i32): i32 {
  const handle = newStream(set)
  return handle < 0 ? fail(handle) : handle
}

export function stream_free(stream: i32): void {
  freeStream(stream)
}

/** Begins a new text in a stream, keeping its buffers: 0, or ERROR_ARGUMENT. */
export function stream_reset(stream: i32): i32 {
  const record = streamOf(stream)
  if (record == 0) return fail(ERROR_ARGUMENT)
  resetStream(record)
  return 0
}

/**
 * Takes the next bytes of the text (not 0 `is_end`: the last): how many masked bytes come out at
 * `stream_output`, or a code, after which the stream is lost and its text must not pass. However the text
 * is cut, what comes out in all is the same.
 */
export function stream_push(stream: i32, text: usize, length: i32, is_end: i32): i32 {
  const record = streamOf(stream)
  if (record == 0 || length < 0 || !isReadable(text, length)) return fail(ERROR_ARGUMENT)
  const code = pushText(record, text, length, is_end != 0)
  return code < 0 ? fail(code) : code
}

/** Address of the output of the last `stream_push`, until the next call on the stream. */
export function stream_output(stream: i32): usize {
  const record = streamOf(stream)
  return record == 0 ? 0 : load<u32>(record, S_OUT)
}

/**
 * Address of how the last `stream_push` got from the text to what it gave out, until the next call on the
 * stream: `stream_edit_count` times three words. First the bytes that came out as they are, then the bytes
 * of the masked span behind them, then which rule's text stands for the span (0 for the first that was
 * added; -1: none, or a span that an earlier edit began goes on).
 */
export function stream_edits(stream: i32): usize {
  const record = streamOf(stream)
  return record == 0 ? 0 : load<u32>(record, S_EDITS)
}

/** Edits at `stream_edits`, or ERROR_ARGUMENT. */
export function stream_edit_count(stream: i32): i32 {
  const record = streamOf(stream)
  return record == 0 ? ERROR_ARGUMENT : load<i32>(record, S_EDIT_COUNT)
}

/** Bytes the stream holds back now, or ERROR_ARGUMENT. */
export function stream_held(stream: i32): i32 {
  const record = streamOf(stream)
  return record == 0 ? ERROR_ARGUMENT : heldBack(record)
}

/** Replacements given out since the text began, or ERROR_ARGUMENT. */
export function stream_count(stream: i32): i32 {
  const record = streamOf(stream)
  return record == 0 ? ERROR_ARGUMENT : load<i32>(record, S_COUNT)
}
