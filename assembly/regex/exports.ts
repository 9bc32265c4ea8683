// The regex part of the ABI: what assembly/index.ts exports. Every span is checked here, once.
import { ERROR_ARGUMENT } from '../abi'
import { isReadable } from '../arena'
import { fail, refuse, setOrigin } from '../refusal'
import { errorOffset } from './codes'
import { regexCompile, regexFind, regexFindAll, regexFree, regexIsFullMatch, regexIsMatch, regexOf } from './index'
import { work } from './step'

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

/** Byte offset in the pattern of what the last failed `regex_compile` refused. */
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
