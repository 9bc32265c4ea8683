// Escapes and Perl, POSIX and Unicode classes: each yields a character or adds ranges to a class.
import { REGEX_BACKREFERENCE, REGEX_BAD_ESCAPE, REGEX_TRAILING_BACKSLASH, REGEX_UNKNOWN_CLASS } from '../abi'
import { fail, MAX_CODE_POINT } from './codes'
import { addTable, finishItem, rangeCount } from './ranges'
import { isDigit, isLetter } from './ascii'
import { accept, atEnd, hexValue, nextCodePoint, peek, position, sameName, seek, textAt } from './reader'
import { addProperty, findProperty } from './unicode'

/** `readEscape` results that are not a code point. */
export const ESCAPE_CLASS: i32 = -1
export const ESCAPE_ERROR: i32 = -2

/** ASCII, as in RE2: \s is without vertical tab and without Unicode spaces. */
const DIGIT = memory.data<u32>([48, 57])
const WORD = memory.data<u32>([48, 57, 65, 90, 95, 95, 97, 122])
const SPACE = memory.data<u32>([9, 10, 12, 13, 32, 32])

/**
 * Reads the escape after a backslash (the cursor is after it). Returns the code point, or
 * ESCAPE_CLASS after appending the ranges of a class, or ESCAPE_ERROR.
 */
export function readEscape(isFolded: bool): i32 {
  const start = position - 1
  if (atEnd()) return error(REGEX_TRAILING_BACKSLASH, start)
  const byte = nextCodePoint()
  if (addPerlClass(byte, isFolded)) return ESCAPE_CLASS
  if (byte == 112 || byte == 80) return readProperty(start, byte == 80, isFolded)
  if (byte == 120) return readHex(start, 2)
  if (byte == 117) return readHex(start, 4)
  if (byte == 48) return readOctal()
  if (isDigit(byte)) return error(REGEX_BACKREFERENCE, start)
  if (byte == 107 && (peek() == 60 || peek() == 123 || peek() == 39)) return error(REGEX_BACKREFERENCE, start)
  const control = controlOf(byte)
  if (control != 0) return control
  if (byte < 0x80 && !isLetter(byte)) return byte
  return error(REGEX_BAD_ESCAPE, start)
}

function error(code: i32, offset: i32): i32 {
  fail(code, offset)
  return ESCAPE_ERROR
}

function addPerlClass(byte: u32, isFolded: bool): bool {
  const lower = byte | 32
  const isNegated = byte < 97
  if (byte > 0x7f) return false
  if (lower == 100) addTable(DIGIT, 1, false, isNegated)
  else if (lower == 119) addTable(WORD, 4, isFolded, isNegated)
  else if (lower == 115) addTable(SPACE, 3, false, isNegated)
  else return false
  return true
}

/** \a \f \n \r \t \v; 0 for any other. */
function controlOf(byte: u32): i32 {
  if (byte == 97) return 7
  if (byte == 102) return 12
  if (byte == 110) return 10
  if (byte == 114) return 13
  if (byte == 116) return 9
  return byte == 118 ? 11 : 0
}

/** \0, \01, \012: at most two more octal digits. */
function readOctal(): i32 {
  let value = 0
  for (let i = 0; i < 2 && peek() - 48 < 8; i++) {
    value = value * 8 + <i32>(peek() - 48)
    seek(position + 1)
  }
  return value
}

/** `digits` hexadecimal digits, or any number of them in braces. */
function readHex(start: i32, digits: i32): i32 {
  const isBraced = accept(123)
  let value: u32 = 0
  let count = 0
  while (isBraced || count < digits) {
    const digit = atEnd() ? -1 : hexValue(peek())
    if (digit < 0) break
    value = value * 16 + <u32>digit
    if (value > MAX_CODE_POINT) return error(REGEX_BAD_ESCAPE, start)
    seek(position + 1)
    count++
  }
  const isWhole = isBraced ? count > 0 && accept(125) : count == digits
  return isWhole ? <i32>value : error(REGEX_BAD_ESCAPE, start)
}

/** \pL, \p{Greek}, \p{^Lu}, \P{...}, \p{Script=Greek}: the cursor is after the p. */
function readProperty(start: i32, isUpper: bool, isFolded: bool): i32 {
  if (atEnd()) return error(REGEX_UNKNOWN_CLASS, start)
  let isNegated = isUpper
  let from = position
  let length = 1
  if (accept(123)) {
    if (accept(94)) isNegated = !isNegated
    from = position
    while (!atEnd() && peek() != 125) seek(position + 1)
    length = position - from
    if (!accept(125)) return error(REGEX_UNKNOWN_CLASS, start)
  } else {
    nextCodePoint()
    length = position - from
  }
  const property = findProperty(textAt(from), length)
  if (property == 0) return error(REGEX_UNKNOWN_CLASS, start)
  const begin = rangeCount()
  addProperty(property)
  finishItem(begin, isFolded, isNegated)
  return ESCAPE_CLASS
}

// --- POSIX -----------------------------------------------------------------------------------
//
// Names padded to 8 bytes, then counts of ranges, then the ranges, all in one order.

const POSIX_ROWS: i32 = 14
const POSIX_NAMES = memory.data<u8>([
  97, 108, 110, 117, 109, 0, 0, 0, 97, 108, 112, 104, 97, 0, 0, 0, 97, 115, 99, 105, 105, 0, 0, 0,
  98, 108, 97, 110, 107, 0, 0, 0, 99, 110, 116, 114, 108, 0, 0, 0, 100, 105, 103, 105, 116, 0, 0, 0,
  103, 114, 97, 112, 104, 0, 0, 0, 108, 111, 119, 101, 114, 0, 0, 0, 112, 114, 105, 110, 116, 0, 0, 0,
  112, 117, 110, 99, 116, 0, 0, 0, 115, 112, 97, 99, 101, 0, 0, 0, 117, 112, 112, 101, 114, 0, 0, 0,
  119, 111, 114, 100, 0, 0, 0, 0, 120, 100, 105, 103, 105, 116, 0, 0,
])
/** alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit. */
const POSIX_COUNTS = memory.data<u8>([3, 2, 1, 2, 2, 1, 1, 1, 1, 4, 2, 1, 4, 3])
const POSIX_RANGES = memory.data<u32>([
  48, 57, 65, 90, 97, 122, 65, 90, 97, 122, 0, 127, 9, 9, 32, 32, 0, 31, 127, 127, 48, 57, 33, 126,
  97, 122, 32, 126, 33, 47, 58, 64, 91, 96, 123, 126, 9, 13, 32, 32, 65, 90, 48, 57, 65, 90, 95, 95,
  97, 122, 48, 57, 65, 70, 97, 102,
])

/** Reads [:name:] or [:^name:] inside a class, with the cursor at its `[`. Returns false if it is not one. */
export function readPosixClass(isFolded: bool): bool {
  const start = position
  if (peek() != 91 || peek(1) != 58) return false
  let length = 0
  const isNegated = peek(2) == 94
  const from = start + (isNegated ? 3 : 2)
  while (isLetter(peek(from - start + length))) length++
  if (peek(from - start + length) != 58 || peek(from - start + length + 1) != 93) return false
  seek(from + length + 2)
  let at = POSIX_RANGES
  for (let row = 0; row < POSIX_ROWS; row++) {
    const name = POSIX_NAMES + (row << 3)
    const count = <u32>load<u8>(POSIX_COUNTS + row)
    if (sameName(from, length, name, nameLength(name))) {
      addTable(at, count, isFolded, isNegated)
      return true
    }
    at += <usize>count << 3
  }
  fail(REGEX_UNKNOWN_CLASS, start)
  return true
}

function nameLength(name: usize): i32 {
  let length = 0
  while (length < 8 && load<u8>(name + length) != 0) length++
  return length
}
