// Reads one JSON document onto the tape. Strict (RFC 8259), linear, and at most DEPTH_LIMIT levels deep.
import { TEXTS_MALFORMED, TEXTS_TOO_DEEP } from './abi'
import { failure, setFailure } from './bytes'
import { foldedName, nameOf } from './names'
import {
  addNode, beginTape, KIND_ARRAY, KIND_FALSE, KIND_NULL, KIND_NUMBER, KIND_OBJECT, KIND_STRING, KIND_TRUE, Node, node, NODE_ESCAPES,
  NODE_FOLDED, NODE_SCALARS, unescape,
} from './tape'

export const DEPTH_LIMIT: i32 = 200

let doc: usize = 0
let end: usize = 0
let at: usize = 0

/** Index of the document's root, or 0 and a failure. The bytes must stay where they are until the next parse. */
export function parseDocument(from: usize, length: i32): i32 {
  if (!beginTape(from, length)) return 0
  doc = from
  end = from + length
  at = from
  skipSpace()
  const root = readValue(0, true)
  if (failure != 0) return 0
  skipSpace()
  if (at < end) refuse()
  return failure == 0 ? root : 0
}

/** Offset in the document at which reading stopped. */
export function readOffset(): i32 {
  return <i32>(at - doc)
}

function refuse(): void {
  setFailure(TEXTS_MALFORMED)
}

// @ts-ignore: decorator
@inline
function peek(): u32 {
  return at < end ? load<u8>(at) : 0
}

function skipSpace(): void {
  while (at < end) {
    const byte = <u32>load<u8>(at)
    if (byte != 32 && byte != 10 && byte != 13 && byte != 9) return
    at++
  }
}

/** Reads a value; its index, or 0 for a scalar in an array (`keepsScalars` false) and after a failure. */
function readValue(depth: i32, keepsScalars: bool): i32 {
  const byte = peek()
  if (byte == 123 || byte == 91) {
    if (depth < DEPTH_LIMIT) return byte == 123 ? readObject(depth) : readArray(depth)
    setFailure(TEXTS_TOO_DEEP)
    return 0
  }
  if (byte == 34) {
    const index = addNode(KIND_STRING, readOffset())
    const flags = readString()
    if (failure != 0) return 0
    const entry = node(index)
    entry.flags = flags
    entry.end = readOffset()
    return index
  }
  return readScalar(byte, keepsScalars)
}

function readScalar(byte: u32, isKept: bool): i32 {
  let kind = KIND_NUMBER
  if (byte == 116) kind = KIND_TRUE
  else if (byte == 102) kind = KIND_FALSE
  else if (byte == 110) kind = KIND_NULL
  const index = isKept ? addNode(kind, readOffset()) : 0
  if (kind == KIND_NUMBER) readNumber()
  else if (kind == KIND_TRUE) readWord(0x65757274, 4)
  else if (kind == KIND_NULL) readWord(0x6c6c756e, 4)
  else {
    at++
    readWord(0x65736c61, 4)
  }
  if (failure != 0) return 0
  if (isKept) node(index).end = readOffset()
  return index
}

function readWord(word: u32, length: i32): void {
  if (at + length > end || load<u32>(at) != word) return refuse()
  at += length
}

function readDigits(): bool {
  const start = at
  while (at < end && <u32>load<u8>(at) - 48 < 10) at++
  return at > start
}

function readNumber(): void {
  if (peek() == 45) at++
  if (peek() == 48) at++
  else if (!readDigits()) return refuse()
  if (peek() == 46) {
    at++
    if (!readDigits()) return refuse()
  }
  if ((peek() | 32) == 101) {
    at++
    if (peek() == 43 || peek() == 45) at++
    if (!readDigits()) return refuse()
  }
}

function readObject(depth: i32): i32 {
  const index = addNode(KIND_OBJECT, readOffset())
  let last = 0
  at++
  skipSpace()
  while (peek() != 125 || last != 0) {
    const key = at
    if (peek() != 34) {
      refuse()
      return 0
    }
    const flags = readString()
    const keyEnd = at
    skipSpace()
    if (failure != 0 || peek() != 58) {
      refuse()
      return 0
    }
    at++
    skipSpace()
    const child = readValue(depth + 1, true)
    if (failure != 0) return 0
    nameMember(node(child), key, keyEnd, flags)
    link(index, last, child)
    last = child
    if (!readComma(125)) break
  }
  return close(index)
}

function readArray(depth: i32): i32 {
  const index = addNode(KIND_ARRAY, readOffset())
  let last = 0
  let count = 0
  at++
  skipSpace()
  while (peek() != 93 || count != 0) {
    const child = readValue(depth + 1, false)
    if (failure != 0) return 0
    count++
    if (child == 0) node(index).flags |= NODE_SCALARS
    else {
      link(index, last, child)
      last = child
    }
    if (!readComma(93)) break
  }
  return close(index)
}

function link(parent: i32, before: i32, child: i32): void {
  if (before == 0) node(parent).child = child
  else node(before).next = child
}

/** True after a comma; false before the closing byte. */
function readComma(closing: u32): bool {
  skipSpace()
  const byte = peek()
  if (byte == 44) {
    at++
    skipSpace()
    return true
  }
  if (byte != closing) refuse()
  return false
}

function close(index: i32): i32 {
  if (failure != 0) return 0
  at++
  node(index).end = readOffset()
  return index
}

function nameMember(member: Node, key: usize, keyEnd: usize, flags: u8): void {
  let from = key + 1
  let length = <i32>(keyEnd - key) - 2
  if (flags & NODE_ESCAPES) {
    const text = unescape(from, keyEnd - 1)
    from = text.data
    length = text.used
  }
  const name = nameOf(from, length)
  const folded = name == 0 ? foldedName(from, length) : 0
  member.name = <u16>(name | folded)
  if (folded != 0) member.flags |= NODE_FOLDED
  member.key = <i32>(key - doc)
  member.keyEnd = <i32>(keyEnd - doc)
}

// --- strings -----------------------------------------------------------------------------------

// @ts-ignore: decorator
@inline
function specials(v: v128): i32 {
  const marks = v128.or(i8x16.eq(v, i8x16.splat(34)), i8x16.eq(v, i8x16.splat(92)))
  // Control characters and bytes of longer characters: below 32 as signed numbers.
  return i8x16.bitmask(v128.or(marks, i8x16.lt_s(v, i8x16.splat(32))))
}

/** Moves to the next byte that is not a plain character of a string; false if there is none. */
// @ts-ignore: decorator
@inline
function findSpecial(): bool {
  while (at < end) {
    const found = specials(v128.load(at))
    if (found != 0) {
      at += ctz(found)
      return at < end
    }
    at += 16
  }
  return false
}

/** Reads a string from its quote on; NODE_ESCAPES or 0. */
function readString(): u8 {
  let flags: u8 = 0
  at++
  while (findSpecial()) {
    const byte = <u32>load<u8>(at)
    if (byte == 34) {
      at++
      return flags
    }
    const length = byte == 92 ? escapeLength() : byte < 32 ? 0 : characterLength()
    if (length == 0) break
    if (byte == 92) flags = NODE_ESCAPES
    at += length
  }
  refuse()
  return flags
}

/** Address of the quote that ends the string at `from`; 0 if it has escapes, is not UTF-8, or does not end. */
export function plainEnd(from: usize, stop: usize): usize {
  at = from
  end = stop
  while (findSpecial()) {
    const byte = <u32>load<u8>(at)
    if (byte == 34) return at
    const length = byte < 128 ? 0 : characterLength()
    if (length == 0) return 0
    at += length
  }
  return 0
}

function isHex(byte: u32): bool {
  return byte - 48 < 10 || (byte | 32) - 97 < 6
}

/** Bytes of the escape, or 0 if it is none. */
function escapeLength(): i32 {
  if (at + 2 > end) return 0
  const kind = <u32>load<u8>(at, 1)
  if (kind == 117) {
    if (at + 6 > end) return 0
    for (let i: usize = 2; i < 6; i++) if (!isHex(load<u8>(at + i))) return 0
    return 6
  }
  const isKnown = kind == 34 || kind == 92 || kind == 47 || kind == 98 || kind == 102 || kind == 110 || kind == 114 || kind == 116
  return isKnown ? 2 : 0
}

/** Bytes of the UTF-8 character, or 0 if it is none. */
function characterLength(): i32 {
  const byte = <u32>load<u8>(at)
  const length = byte - 0xc2 < 30 ? 2 : byte - 0xe0 < 16 ? 3 : byte - 0xf0 < 5 ? 4 : 0
  if (length == 0 || at + length > end) return 0
  for (let i = 1; i < length; i++) if ((load<u8>(at + i) & 0xc0) != 0x80) return 0
  const second = <u32>load<u8>(at, 1)
  if (byte == 0xe0 && second < 0xa0) return 0
  if (byte == 0xed && second > 0x9f) return 0
  if (byte == 0xf0 && second < 0x90) return 0
  return byte == 0xf4 && second > 0x8f ? 0 : length
}
