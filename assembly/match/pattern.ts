/** The seam to the regex engine. */
import { regexIsFullMatch } from '../regex/index'

/** Does the regex of `handle` match the whole of the bytes? False for an invalid handle. */
export function isPatternMatch(handle: i32, start: usize, length: usize): bool {
  return regexIsFullMatch(handle, start, <i32>length)
}
