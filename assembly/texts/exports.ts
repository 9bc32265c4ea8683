// The part of the ABI about texts of models: what assembly/index.ts exports. Every span is checked here, once.
import { ERROR_ARGUMENT } from '../abi'
import {
  TEXTS_BYTES, TEXTS_CACHED_TOKENS, TEXTS_FLAGS, TEXTS_INPUT_TOKENS, TEXTS_MODEL, TEXTS_OUTPUT_TOKENS, TEXTS_RECORD_SIZE, TEXTS_REJECTED, TEXTS_UNCOUNTED,
} from './abi'
import { isReadable } from '../arena'
import { fail } from '../refusal'
import { addGuard, freeGuards, guardCount, newGuards } from './chain'
import { matchCount, matchesOf } from './matches'
import { freeRewriter, newRewriter, pushRewriter, rewriterOf, writeError } from './rewriter'

/** An empty chain of guards: a handle, or ERROR_MEMORY. */
export function guards_new(): i32 {
  const handle = newGuards()
  return handle < 0 ? fail(handle) : handle
}

/**
 * Adds a mask set as the next guard, which sees texts as the guards before it leave them; not 0 `rejects`: a match is
 * reported in TEXTS_REJECTED. 0, or ERROR_ARGUMENT. A chain takes at most 64 guards, and none once it is in use.
 */
export function guards_add(guards: i32, set: i32, rejects: i32): i32 {
  const code = addGuard(guards, set, rejects != 0)
  return code < 0 ? fail(code) : 0
}

/** Frees a chain once its rewriters are freed too. Unknown handles are ignored. */
export function guards_free(guards: i32): void {
  freeGuards(guards)
}

/**
 * A rewriter of one message: TEXTS_REQUEST, TEXTS_ANSWER or TEXTS_STREAM in the format TEXTS_*. Without guards (0) the
 * message is only read. `limit` bounds the bytes of a document, of an event, and of held text (texts_hold). A handle, or a code.
 */
export function texts_new(guards: i32, format: i32, kind: i32, limit: i32): i32 {
  const handle = newRewriter(guards, format, kind, limit)
  return handle < 0 ? fail(handle) : handle
}

export function texts_free(texts: i32): void {
  freeRewriter(texts)
}

/**
 * Takes the next bytes of the message (not 0 `is_end`: the last): how many bytes come out at `texts_output`, or a
 * code. After a code the rest of the message must not pass; what had come out before is at `texts_output`, and
 * `texts_fail` ends the message. However the bytes are cut, what comes out in all is the same.
 */
export function texts_push(texts: i32, bytes: usize, length: i32, is_end: i32): i32 {
  const rewriter = rewriterOf(texts)
  if (changetype<usize>(rewriter) == 0 || length < 0 || !isReadable(bytes, length)) return fail(ERROR_ARGUMENT)
  const code = pushRewriter(rewriter, bytes, length, is_end != 0)
  return code == ERROR_ARGUMENT ? fail(code) : code
}

/** Address of the output of the last `texts_push` or `texts_fail`, until the next call on the rewriter. */
export function texts_output(texts: i32): usize {
  const rewriter = rewriterOf(texts)
  return changetype<usize>(rewriter) == 0 ? 0 : rewriter.out.data
}

/**
 * Ends the message with an error in its format; behind the events of a stream that came out before the failure. How many
 * bytes are at `texts_output`, or a code.
 */
export function texts_fail(texts: i32, status: i32, message: usize, length: i32): i32 {
  const rewriter = rewriterOf(texts)
  if (changetype<usize>(rewriter) == 0 || length < 0 || !isReadable(message, length)) return fail(ERROR_ARGUMENT)
  return writeError(rewriter, status, message, length)
}

/** Writes what is known of the message to `record` (TEXTS_RECORD_SIZE bytes): 0, or ERROR_ARGUMENT. */
export function texts_record(texts: i32, record: usize): i32 {
  const rewriter = rewriterOf(texts)
  if (changetype<usize>(rewriter) == 0 || !isReadable(record, TEXTS_RECORD_SIZE)) return fail(ERROR_ARGUMENT)
  store<f64>(record + TEXTS_INPUT_TOKENS, rewriter.inputTokens)
  store<f64>(record + TEXTS_OUTPUT_TOKENS, rewriter.outputTokens)
  store<f64>(record + TEXTS_CACHED_TOKENS, rewriter.cachedTokens)
  store<f64>(record + TEXTS_BYTES, rewriter.textBytes)
  store<f64>(record + TEXTS_UNCOUNTED, rewriter.uncounted)
  store<i32>(record + TEXTS_FLAGS, rewriter.flags)
  store<i32>(record + TEXTS_REJECTED, rewriter.rejected)
  store<u32>(record + TEXTS_MODEL, <u32>rewriter.model.data)
  store<u32>(record + TEXTS_MODEL + 4, <u32>rewriter.model.data + <u32>rewriter.model.used)
  return 0
}

/** How often a guard has replaced something, or ERROR_ARGUMENT. */
export function texts_count(texts: i32, guard: i32): i32 {
  const rewriter = rewriterOf(texts)
  if (changetype<usize>(rewriter) == 0 || guard < 0 || guard >= guardCount(rewriter.guards)) return fail(ERROR_ARGUMENT)
  return matchCount(rewriter.counts, guard)
}

/**
 * How many pairs of i32 are at `texts_match_list`: a rule of the guard, in the order of the first matches, and how many
 * matches of it were replaced. Rule -1 counts matches in texts that an answer repeats. ERROR_ARGUMENT if unknown.
 */
export function texts_matches(texts: i32, guard: i32): i32 {
  const rewriter = rewriterOf(texts)
  if (changetype<usize>(rewriter) == 0 || guard < 0 || guard >= guardCount(rewriter.guards)) return fail(ERROR_ARGUMENT)
  const list = matchesOf(rewriter.counts, guard)
  return changetype<usize>(list) == 0 ? 0 : list.used >> 3
}

/** Address of the pairs of a guard that has matches, until the next call on the rewriter. */
export function texts_match_list(texts: i32, guard: i32): usize {
  if (texts_matches(texts, guard) <= 0) return 0
  return matchesOf(rewriterOf(texts).counts, guard).data
}

/** Bounds the bytes of text and of events that a stream holds back; without it, `limit` of `texts_new` does. */
export function texts_hold(texts: i32, limit: i32): i32 {
  const rewriter = rewriterOf(texts)
  if (changetype<usize>(rewriter) == 0 || limit <= 0) return fail(ERROR_ARGUMENT)
  rewriter.heldLimit = limit
  return 0
}
