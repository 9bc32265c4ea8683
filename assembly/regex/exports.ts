// The regex part of the ABI: what assembly/index.ts exports. Every span is checked here, once.
import { ERROR_ARGUMENT } from '../abi'
import { isReadable } from '../arena'
import { errorOffset, REGEX_BAD_HANDLE } from './codes'
import { regexCompile, regexFind, regexFindAll, regexFree, regexIsFullMatch, regexIsMatch, regexOf } from './index'
import { work } from './step'

/** See regexCompile. */
export function regex_compile(pattern: usize, length: i32, flags: i32): i32 {
  return regexCompile(pattern, length, flags)
}

/** Byte offset in the pattern of what the last failed `regex_compile` refused. */
export function regex_error_offset(): i32 {
  return errorOffset
}

export function regex_free(handle: i32): void {
  regexFree(handle)
}

function check(handle: i32, text: usize, length: i32): i32 {
  if (regexOf(handle) == 0) return REGEX_BAD_HANDLE
  return length >= 0 && isReadable(text, length) ? 0 : ERROR_ARGUMENT
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
  return isReadable(out, 8) ? regexFind(handle, text, length, from, out) : ERROR_ARGUMENT
}

/** How many (start, end) pairs of u32 were written to `out`, at most `limit`, or a code. */
export function regex_find_all(handle: i32, text: usize, length: i32, out: usize, limit: i32): i32 {
  const code = check(handle, text, length)
  if (code < 0) return code
  if (limit < 0 || limit > 0x7ffffff || !isReadable(out, <usize>limit << 3)) return ERROR_ARGUMENT
  return regexFindAll(handle, text, length, out, limit)
}

/** Units of work done since the module started: what tests of linear time count. */
export function regex_work(): f64 {
  return <f64>work
}
