// The regex functions of the ABI, exported by assembly/index.ts. Every span is checked here, once.
import { ERROR_ARGUMENT, WORDS_BAD_UTF8, WORDS_TOO_MANY } from '../abi'
import { isReadable } from '../arena'
import { fail, refuse, setOrigin } from '../refusal'
import { errorOffset } from './codes'
import { regexCompile, regexFind, regexFindAll, regexFree, regexHold, regexIsFullMatch, regexIsMatch, regexOf } from './index'
import { heldBack, pushText } from './mask'
import { addDetector, addPattern, addWords, freeSet, newSet, SET_HOLD, setOf } from './set'
import { work } from './step'
import { freeStream, newStream, resetStream, S_COUNT, S_EDIT_COUNT, S_EDITS, S_OUT, streamOf } from './stream'
import { refusedAt } from './words'

/**
 * Compiles `length` bytes of pattern with REGEX_* flags. Returns a handle, or a code, with last_error_offset at
 * the error in the pattern. The pattern's bytes are not needed afterwards.
 */
export function regex_compile(pattern: usize, length: i32, flags: i32): i32 {
  const handle = regexCompile(pattern, length, flags)
  if (handle > 0) return handle
  setOrigin(pattern)
  return refuse(handle, pattern + errorOffset)
}

/** Returns the byte offset in the pattern at which the last `regex_compile` failed. */
export function regex_error_offset(): i32 {
  return errorOffset
}

/** Frees a regex; its handle may be reused. Unknown handles are ignored. */
export function regex_free(handle: i32): void {
  regexFree(handle)
}

function check(handle: i32, text: usize, length: i32): i32 {
  const isGood = regexOf(handle) != 0 && length >= 0 && isReadable(text, length)
  return isGood ? 0 : fail(ERROR_ARGUMENT)
}

/** Returns 1 if the regex matches anywhere in the text, 0 if not, or a code. */
export function regex_is_match(handle: i32, text: usize, length: i32): i32 {
  const code = check(handle, text, length)
  return code < 0 ? code : regexIsMatch(handle, text, length) ? 1 : 0
}

/** Returns 1 if the regex matches the whole text, 0 if not, or a code. */
export function regex_full_match(handle: i32, text: usize, length: i32): i32 {
  const code = check(handle, text, length)
  return code < 0 ? code : regexIsFullMatch(handle, text, length) ? 1 : 0
}

/** Finds the first match from `from` on. Returns 1 with (start, end) as 2 u32 at `out`, 0 if there is none, or a code. */
export function regex_find(handle: i32, text: usize, length: i32, from: i32, out: usize): i32 {
  const code = check(handle, text, length)
  if (code < 0) return code
  return isReadable(out, 8) ? regexFind(handle, text, length, from, out) : fail(ERROR_ARGUMENT)
}

/**
 * Finds all matches from `from` on. Returns the number of (start, end) pairs of u32 written to `out`, at most `limit`,
 * or a code. To continue after `limit` pairs, call again from the last end, or one character after an empty match.
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

/** Returns the units of work done since the module started; tests of linear time use it. */
export function regex_work(): f64 {
  return <f64>work
}

/**
 * Returns the maximum number of bytes that an undecided search must hold back; -1 if there is no bound (then a
 * host must buffer the whole text); or ERROR_ARGUMENT.
 */
export function regex_hold(handle: i32): i32 {
  return regexHold(handle)
}

/** Makes an empty mask set. Returns a handle, or ERROR_MEMORY. */
export function mask_new(): i32 {
  return newSet()
}

/** Frees a mask set when its streams are freed too. */
export function mask_free(set: i32): void {
  freeSet(set)
}

/** Adds a pattern and the bytes that replace its matches. Returns 0, or a code. At most 64 members. */
export function mask_add(set: i32, regex: i32, text: usize, length: i32): i32 {
  if (length < 0 || !isReadable(text, length)) return fail(ERROR_ARGUMENT)
  const code = addPattern(set, regex, text, length)
  return code < 0 ? fail(code) : 0
}

/** Adds a builtin (DETECT_*) and the bytes that replace its matches. Returns 0, or a code. */
export function mask_add_builtin(set: i32, builtin: i32, text: usize, length: i32): i32 {
  if (length < 0 || !isReadable(text, length)) return fail(ERROR_ARGUMENT)
  const code = addDetector(set, builtin, text, length)
  return code < 0 ? fail(code) : 0
}

/**
 * Adds a list of words (UTF-8, one a line) and the bytes that replace them. Returns 0, or a code, with last_error_offset at
 * the refused word. The list's bytes are not needed afterwards.
 */
export function mask_add_words(set: i32, words: usize, words_length: i32, text: usize, length: i32): i32 {
  if (length < 0 || !isReadable(text, length)) return fail(ERROR_ARGUMENT)
  if (words_length < 0 || !isReadable(words, words_length)) return fail(ERROR_ARGUMENT)
  const code = addWords(set, words, words_length, text, length)
  if (code == 0) return 0
  if (code > WORDS_TOO_MANY || code < WORDS_BAD_UTF8) return fail(code)
  setOrigin(words)
  return refuse(code, refusedAt)
}

/** Returns the maximum number of bytes that a stream over the set holds back; -1 if there is no bound; or ERROR_ARGUMENT. */
export function mask_hold(set: i32): i32 {
  const record = setOf(set)
  return record == 0 ? ERROR_ARGUMENT : load<i32>(record, SET_HOLD)
}

/** Makes a stream of text to mask. No members can be added to its set afterwards. Returns a handle, or a code. */
export function stream_new(set: i32): i32 {
  const handle = newStream(set)
  return handle < 0 ? fail(handle) : handle
}

export function stream_free(stream: i32): void {
  freeStream(stream)
}

/** Begins a new text in a stream and keeps its buffers. Returns 0, or ERROR_ARGUMENT. */
export function stream_reset(stream: i32): i32 {
  const record = streamOf(stream)
  if (record == 0) return fail(ERROR_ARGUMENT)
  resetStream(record)
  return 0
}

/**
 * Processes the next bytes of the text (the last ones if `is_end` is not 0). Returns the number of masked bytes at
 * `stream_output`, or a code. After a code the stream cannot continue, and its text must not be forwarded. The
 * complete output does not depend on where the text is split.
 */
export function stream_push(stream: i32, text: usize, length: i32, is_end: i32): i32 {
  const record = streamOf(stream)
  if (record == 0 || length < 0 || !isReadable(text, length)) return fail(ERROR_ARGUMENT)
  const code = pushText(record, text, length, is_end != 0)
  return code < 0 ? fail(code) : code
}

/** Returns the address of the output of the last `stream_push`; valid until the next call on the stream. */
export function stream_output(stream: i32): usize {
  const record = streamOf(stream)
  return record == 0 ? 0 : load<u32>(record, S_OUT)
}

/**
 * Returns the address of the edits from the text to the output of the last `stream_push`; valid until the next call on the
 * stream. There are `stream_edit_count` edits of three words: the number of unchanged bytes, the number of bytes
 * of the masked span after them, and the rule whose text replaces the span (0 for the first that was
 * added; -1: no span, or a span that an earlier edit began continues).
 */
export function stream_edits(stream: i32): usize {
  const record = streamOf(stream)
  return record == 0 ? 0 : load<u32>(record, S_EDITS)
}

/** Returns the number of edits at `stream_edits`, or ERROR_ARGUMENT. */
export function stream_edit_count(stream: i32): i32 {
  const record = streamOf(stream)
  return record == 0 ? ERROR_ARGUMENT : load<i32>(record, S_EDIT_COUNT)
}

/** Returns the number of bytes that the stream holds back now, or ERROR_ARGUMENT. */
export function stream_held(stream: i32): i32 {
  const record = streamOf(stream)
  return record == 0 ? ERROR_ARGUMENT : heldBack(record)
}

/** Returns the number of replacements since the text began, or ERROR_ARGUMENT. */
export function stream_count(stream: i32): i32 {
  const record = streamOf(stream)
  return record == 0 ? ERROR_ARGUMENT : load<i32>(record, S_COUNT)
}
