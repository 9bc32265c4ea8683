// Reads what follows an opening parenthesis: (?:  (?i)  (?i-s:  (?P<name>  (?<name>, and refuses the rest.
import { REGEX_ATOMIC, REGEX_BACKREFERENCE, REGEX_BAD_GROUP, REGEX_CASE_INSENSITIVE, REGEX_DOT_ALL, REGEX_LOOKAROUND, REGEX_MULTI_LINE, REGEX_SWAP_GREED } from '../abi'
import { fail } from './codes'
import { isDigit, isLetter } from './ascii'
import { accept, atEnd, peek, position, seek } from './reader'

/** Added to the flags when the group was `(?flags)`: it has no body. */
export const GROUP_FLAGS_ONLY: i32 = 256

/** Reads a group's head, with the cursor at its `(`. Returns the flags that apply from here on. */
export function readGroupHead(flags: i32): i32 {
  const start = position
  seek(position + 1)
  if (!accept(63)) return flags
  const byte = peek()
  const next = peek(1)
  if (byte == 61 || byte == 33 || (byte == 60 && (next == 61 || next == 33))) return refuse(REGEX_LOOKAROUND, start)
  if (byte == 62) return refuse(REGEX_ATOMIC, start)
  if (byte == 80 && (next == 61 || next == 62)) return refuse(REGEX_BACKREFERENCE, start)
  if (byte == 60 || (byte == 80 && next == 60)) return readName(start, byte == 80, flags)
  return readFlags(start, flags)
}

function refuse(code: i32, offset: i32): i32 {
  fail(code, offset)
  return 0
}

/** <name>: a letter or underscore, then letters, digits and underscores. The name is ignored. */
function readName(start: i32, isPython: bool, flags: i32): i32 {
  seek(position + (isPython ? 2 : 1))
  if (isDigit(peek())) return refuse(REGEX_BAD_GROUP, start)
  let length = 0
  while (isDigit(peek()) || isLetter(peek()) || peek() == 95) {
    seek(position + 1)
    length++
  }
  return length > 0 && accept(62) ? flags : refuse(REGEX_BAD_GROUP, start)
}

/** Flags, an optional `-` and more flags, then `)` or `:`. */
function readFlags(start: i32, flags: i32): i32 {
  let result = flags
  let isClearing = false
  let count = 0
  while (!atEnd()) {
    const byte = peek()
    seek(position + 1)
    if (byte == 58) return isClearing && count == 0 ? refuse(REGEX_BAD_GROUP, start) : result
    if (byte == 41) return count == 0 ? refuse(REGEX_BAD_GROUP, start) : result | GROUP_FLAGS_ONLY
    if (byte == 45) {
      if (isClearing) break
      isClearing = true
      count = 0
      continue
    }
    const flag = flagOf(byte)
    if (flag == 0) break
    count++
    result = isClearing ? result & ~flag : result | flag
  }
  return refuse(REGEX_BAD_GROUP, start)
}

function flagOf(byte: u32): i32 {
  if (byte == 105) return REGEX_CASE_INSENSITIVE
  if (byte == 109) return REGEX_MULTI_LINE
  if (byte == 115) return REGEX_DOT_ALL
  return byte == 85 ? REGEX_SWAP_GREED : 0
}
