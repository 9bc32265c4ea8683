// Pattern text -> syntax tree. Recursive descent over RE2's syntax (github.com/google/re2/wiki/Syntax)
// without \C; recursion is bounded by MAX_NESTING. What cannot be matched in linear time is refused
// with its own code: look-around, back-references, atomic groups, possessive quantifiers.
import { REGEX_ATOMIC, REGEX_BAD_RANGE, REGEX_BAD_REPEAT, REGEX_CASE_INSENSITIVE, REGEX_DOT_ALL, REGEX_MULTI_LINE, REGEX_NESTED_QUANTIFIER, REGEX_NESTED_TOO_DEEP, REGEX_NOTHING_TO_REPEAT, REGEX_SWAP_GREED, REGEX_UNBALANCED_PAREN, REGEX_UNCLOSED_CLASS } from '../abi'
import { errorCode, fail, MAX_CODE_POINT, MAX_NESTING, MAX_REPEAT } from './codes'
import { ESCAPE_CLASS, ESCAPE_ERROR, readEscape, readPosixClass } from './escape'
import { GROUP_FLAGS_ONLY, readGroupHead } from './group'
import { appendChild, ASSERT_LINE_END, ASSERT_LINE_START, ASSERT_NOT_WORD, ASSERT_TEXT_END, ASSERT_TEXT_START, ASSERT_WORD, newNode, Node, NODE_ALTERNATE, NODE_ASSERT, NODE_CHARACTER, NODE_CLASS, NODE_CONCAT, NODE_EMPTY, NODE_REPEAT } from './node'
import { addRange, canonicalize, complement, finishItem, fold, rangeCount } from './ranges'
import { isDigit } from './ascii'
import { accept, atEnd, nextCodePoint, peek, position, readerStart, seek } from './reader'

/** REGEX_* syntax flags that apply at the cursor. */
let flags: i32 = 0
let depth: i32 = 0

/** Parses a pattern whose UTF-8 was checked. Returns its tree; 0 after a failure. */
export function parse(pattern: usize, length: i32, initialFlags: i32): usize {
  readerStart(pattern, length)
  flags = initialFlags
  depth = 0
  const root = parseAlternation()
  if (errorCode != 0) return 0
  if (!atEnd()) return fail(REGEX_UNBALANCED_PAREN, position)
  return root
}

// @ts-ignore: decorator
@inline
function has(flag: i32): bool {
  return (flags & flag) != 0
}

function parseAlternation(): usize {
  const first = parseConcat()
  if (errorCode != 0 || peek() != 124) return first
  const node = newNode(NODE_ALTERNATE)
  if (node == 0) return 0
  appendChild(node, first)
  while (accept(124)) {
    const branch = parseConcat()
    if (errorCode != 0) return 0
    appendChild(node, branch)
  }
  return node
}

function parseConcat(): usize {
  const node = newNode(NODE_CONCAT)
  if (node == 0) return 0
  changetype<Node>(node).isNullable = true
  while (!atEnd() && peek() != 124 && peek() != 41) {
    if (peek() == 92 && peek(1) == 81) {
      parseQuoted(node)
      continue
    }
    if (peek() == 92 && peek(1) == 69) {
      seek(position + 2)
      continue
    }
    const atom = parseAtom()
    if (errorCode != 0) return 0
    if (atom == 0) {
      if (isQuantifier()) return fail(REGEX_NOTHING_TO_REPEAT, position)
      continue
    }
    const repeated = parseQuantifier(atom)
    if (repeated == 0) return 0
    appendChild(node, repeated)
  }
  const concat = changetype<Node>(node)
  if (concat.firstChild == 0) concat.kind = NODE_EMPTY
  else if (concat.firstChild == concat.lastChild) return concat.firstChild
  return node
}

/** \Q...\E: every character is literal; the last one may be repeated. */
function parseQuoted(parent: usize): void {
  seek(position + 2)
  while (!atEnd() && errorCode == 0) {
    if (peek() == 92 && peek(1) == 69) {
      seek(position + 2)
      return
    }
    let atom = character(nextCodePoint())
    if (atom != 0 && peek() == 92 && peek(1) == 69) {
      seek(position + 2)
      atom = parseQuantifier(atom)
      if (atom != 0) appendChild(parent, atom)
      return
    }
    if (atom != 0) appendChild(parent, atom)
  }
}

/** Parses one atom. Returns 0 without an error for a group that only sets flags. */
function parseAtom(): usize {
  const start = position
  const byte = peek()
  if (isQuantifier()) return fail(REGEX_NOTHING_TO_REPEAT, start)
  if (byte == 40) return parseGroup()
  if (byte == 91) return parseClass()
  const point = nextCodePoint()
  if (point == 46) return dot()
  if (point == 94) return assertion(has(REGEX_MULTI_LINE) ? ASSERT_LINE_START : ASSERT_TEXT_START)
  if (point == 36) return assertion(has(REGEX_MULTI_LINE) ? ASSERT_LINE_END : ASSERT_TEXT_END)
  if (point == 92) return parseEscape()
  return character(point)
}

function parseGroup(): usize {
  const start = position
  const outer = flags
  flags = readGroupHead(flags)
  if (errorCode != 0 || flags & GROUP_FLAGS_ONLY) {
    flags &= ~GROUP_FLAGS_ONLY
    return 0
  }
  if (++depth > MAX_NESTING) return fail(REGEX_NESTED_TOO_DEEP, start)
  const node = parseAlternation()
  depth--
  flags = outer
  if (errorCode != 0) return 0
  if (!accept(41)) return fail(REGEX_UNBALANCED_PAREN, start)
  return node
}

function parseEscape(): usize {
  const byte = peek()
  if (byte == 98 || byte == 66 || byte == 65 || byte == 122) {
    seek(position + 1)
    if (byte == 98) return assertion(ASSERT_WORD)
    if (byte == 66) return assertion(ASSERT_NOT_WORD)
    return assertion(byte == 65 ? ASSERT_TEXT_START : ASSERT_TEXT_END)
  }
  const begin = rangeCount()
  const escape = readEscape(has(REGEX_CASE_INSENSITIVE))
  if (escape == ESCAPE_ERROR) return 0
  return escape == ESCAPE_CLASS ? classNode(begin) : character(escape)
}

// --- leaves ----------------------------------------------------------------------------------

function assertion(kind: u32): usize {
  const node = newNode(NODE_ASSERT)
  if (node == 0) return 0
  changetype<Node>(node).first = kind
  changetype<Node>(node).isNullable = true
  return node
}

function character(point: u32): usize {
  if (has(REGEX_CASE_INSENSITIVE)) {
    const begin = rangeCount()
    addRange(point, point)
    fold(begin)
    return classNode(begin)
  }
  const node = newNode(NODE_CHARACTER)
  if (node != 0) changetype<Node>(node).first = point
  return node
}

function dot(): usize {
  const begin = rangeCount()
  if (has(REGEX_DOT_ALL)) {
    addRange(0, MAX_CODE_POINT)
  } else {
    addRange(0, 9)
    addRange(11, MAX_CODE_POINT)
  }
  return classNode(begin)
}

/** Makes a node for the ranges from `begin` on, and sorts them. */
function classNode(begin: u32): usize {
  canonicalize(begin)
  const node = newNode(NODE_CLASS)
  if (node == 0) return 0
  changetype<Node>(node).first = begin
  changetype<Node>(node).count = <i32>(rangeCount() - begin)
  return node
}

// --- classes ---------------------------------------------------------------------------------

/** [...]: a `]` that comes first is a member, as in RE2 and POSIX (and unlike JavaScript). */
function parseClass(): usize {
  const start = position
  seek(position + 1)
  const isNegated = accept(94)
  const begin = rangeCount()
  let isFirst = true
  while (isFirst || peek() != 93) {
    if (atEnd()) return fail(REGEX_UNCLOSED_CLASS, start)
    isFirst = false
    parseClassItem()
    if (errorCode != 0) return 0
  }
  seek(position + 1)
  canonicalize(begin)
  if (isNegated) complement(begin)
  return classNode(begin)
}

function parseClassItem(): void {
  const start = position
  const isFolded = has(REGEX_CASE_INSENSITIVE)
  if (readPosixClass(isFolded)) return
  const low = classCharacter(isFolded)
  // A class cannot begin a range: the dash of `[\w-a]` is a dash.
  if (low < 0) return
  let high = low
  if (peek() == 45 && peek(1) != 93 && peek(1) != 0) {
    seek(position + 1)
    high = classCharacter(isFolded)
    if (high == ESCAPE_ERROR) return
    if (high < low) {
      fail(REGEX_BAD_RANGE, start)
      return
    }
  }
  const begin = rangeCount()
  addRange(low, high)
  finishItem(begin, isFolded, false)
}

/** Reads a class member. Returns a code point, or ESCAPE_CLASS after its ranges were added, or ESCAPE_ERROR. */
function classCharacter(isFolded: bool): i32 {
  const point = <i32>nextCodePoint()
  return point == 92 ? readEscape(isFolded) : point
}

// --- quantifiers -----------------------------------------------------------------------------

let repeatLow: i32 = 0
let repeatHigh: i32 = 0

/** Returns true if a quantifier begins at the cursor. `{` counts only as {n}, {n,} or {n,m}. */
function isQuantifier(): bool {
  const byte = peek()
  if (byte == 42 || byte == 43 || byte == 63) return true
  return byte == 123 && readCounts() > 0
}

/** Returns the length of a {n,m} at the cursor, or 0; sets repeatLow and repeatHigh (-1: no bound). */
function readCounts(): i32 {
  let at = 1
  if (!isDigit(peek(at))) return 0
  repeatLow = 0
  while (isDigit(peek(at))) repeatLow = min(repeatLow * 10 + <i32>(peek(at++) - 48), MAX_REPEAT + 1)
  repeatHigh = repeatLow
  if (peek(at) == 44) {
    at++
    repeatHigh = isDigit(peek(at)) ? 0 : -1
    while (isDigit(peek(at))) repeatHigh = min(repeatHigh * 10 + <i32>(peek(at++) - 48), MAX_REPEAT + 1)
  }
  return peek(at) == 125 ? at + 1 : 0
}

/** Moves past the quantifier at the cursor; sets repeatLow and repeatHigh. Returns false if there is none. */
function takeQuantifier(): bool {
  const byte = peek()
  if (byte == 42 || byte == 43 || byte == 63) {
    repeatLow = byte == 43 ? 1 : 0
    repeatHigh = byte == 63 ? 1 : -1
    seek(position + 1)
    return true
  }
  const size = byte == 123 ? readCounts() : 0
  seek(position + size)
  return size > 0
}

/** Returns the atom, in a repetition if a quantifier follows; 0 after a failure. */
function parseQuantifier(atom: usize): usize {
  const start = position
  if (atEnd() || !takeQuantifier()) return atom
  const low = repeatLow
  const high = repeatHigh
  if (low > MAX_REPEAT || high > MAX_REPEAT || (high >= 0 && high < low)) return fail(REGEX_BAD_REPEAT, start)
  const isMarkedLazy = accept(63)
  if (peek() == 43) return fail(REGEX_ATOMIC, position)
  if (isQuantifier()) return fail(REGEX_NESTED_QUANTIFIER, position)
  const node = newNode(NODE_REPEAT)
  if (node == 0) return 0
  appendChild(node, atom)
  const repeat = changetype<Node>(node)
  repeat.first = low
  repeat.count = high
  repeat.isLazy = isMarkedLazy != has(REGEX_SWAP_GREED)
  repeat.isNullable = low == 0 || changetype<Node>(atom).isNullable
  return node
}
