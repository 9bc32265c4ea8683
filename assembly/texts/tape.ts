// Reads one JSON document into a list of its values in order, the *tape*. Strict (RFC 8259), linear, and at
// most DEPTH_LIMIT levels deep. There is one tape; it holds the document that is being rewritten.
//
// Numbers, true, false and null that are items of an array get no entry of their own, because arrays
// of numbers can be long: the array has NODE_SCALARS instead.
import { TEXTS_MALFORMED, TEXTS_TOO_DEEP } from './abi'
import { Bytes, newBytes, clear, push, setFailure, failure } from './bytes'
import { foldedName, nameOf } from './names'
import { appendUnescaped } from './strings'

export const DEPTH_LIMIT: i32 = 200

export const KIND_OBJECT: u8 = 1
export const KIND_ARRAY: u8 = 2
export const KIND_STRING: u8 = 3
export const KIND_NUMBER: u8 = 4
export const KIND_TRUE: u8 = 5
export const KIND_FALSE: u8 = 6
export const KIND_NULL: u8 = 7

/** The string has escapes. */
export const NODE_ESCAPES: u8 = 1
/** The array has items that are neither strings, arrays nor objects. */
export const NODE_SCALARS: u8 = 2
/** The member's name is not `name`, but a server that ignores case may read it so. */
export const NODE_FOLDED: u8 = 4

/** A value. Offsets count from the start of the document; `next` and `child` are indexes, 0 for none. */
@unmanaged
export class Node {
  kind: u8
  flags: u8
  /** Number of the member's name, or 0. */
  name: u16
  start: i32
  end: i32
  next: i32
  child: i32
  /** Of a member: where its name begins, with the quote. Of anything else: `start`. */
  key: i32
  keyEnd: i32
  /** What replaces the value: 1 + index of the edit, or 0. */
  edit: i32
}
const NODE_BYTES: i32 = 32

let tape: Bytes = changetype<Bytes>(0)
let doc: usize = 0
let end: usize = 0
let at: usize = 0
/** Text of the last string that was asked for and has escapes. */
let scratch: Bytes = changetype<Bytes>(0)

export function node(index: i32): Node {
  return changetype<Node>(tape.data + <usize>(index * NODE_BYTES))
}

export function nodeCount(): i32 {
  return tape.used / NODE_BYTES
}

export function documentStart(): usize {
  return doc
}

export function documentLength(): i32 {
  return <i32>(end - doc)
}

/** Forgets the document, and frees a large tape. */
export function forgetDocument(): void {
  clear(tape)
  clear(scratch)
}

/** Index of the document's root, or 0 and a failure. The bytes must stay where they are until the next parse. */
export function parseDocument(from: usize, length: i32): i32 {
  if (changetype<usize>(tape) == 0) {
    tape = newBytes()
    scratch = newBytes()
    if (failure != 0) return 0
  }
  clear(tape)
  push(tape, NODE_BYTES)
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

function addNode(kind: u8): i32 {
  const index = nodeCount()
  const entry = changetype<Node>(push(tape, NODE_BYTES))
  entry.kind = kind
  entry.start = <i32>(at - doc)
  entry.key = entry.start
  entry.keyEnd = entry.start
  return index
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
    const index = addNode(KIND_STRING)
    const flags = readString()
    if (failure != 0) return 0
    const entry = node(index)
    entry.flags = flags
    entry.end = <i32>(at - doc)
    return index
  }
  return readScalar(byte, keepsScalars)
}

function readScalar(byte: u32, isKept: bool): i32 {
  let kind = KIND_NUMBER
  if (byte == 116) kind = KIND_TRUE
  else if (byte == 102) kind = KIND_FALSE
  else if (byte == 110) kind = KIND_NULL
  const index = isKept ? addNode(kind) : 0
  if (kind == KIND_NUMBER) readNumber()
  else if (kind == KIND_TRUE) readWord(0x65757274, 4)
  else if (kind == KIND_NULL) readWord(0x6c6c756e, 4)
  else {
    at++
    readWord(0x65736c61, 4)
  }
  if (failure != 0) return 0
  if (isKept) node(index).end = <i32>(at - doc)
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
  const index = addNode(KIND_OBJECT)
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
  const index = addNode(KIND_ARRAY)
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
  node(index).end = <i32>(at - doc)
  return index
}

function nameMember(member: Node, key: usize, keyEnd: usize, flags: u8): void {
  let from = key + 1
  let length = <i32>(keyEnd - key) - 2
  if (flags & NODE_ESCAPES) {
    clear(scratch)
    appendUnescaped(scratch, from, keyEnd - 1)
    from = scratch.data
    length = scratch.used
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

/** Reads a string from its quote on; NODE_ESCAPES or 0. */
function readString(): u8 {
  let flags: u8 = 0
  at++
  while (at < end) {
    const found = specials(v128.load(at))
    if (found == 0) {
      at += 16
      continue
    }
    at += ctz(found)
    if (at >= end) break
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
  while (at < end) {
    const found = specials(v128.load(at))
    if (found == 0) {
      at += 16
      continue
    }
    at += ctz(found)
    if (at >= end) return 0
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

// --- values ------------------------------------------------------------------------------------

/** Text of the last `readText`. */
export let textStart: usize = 0
export let textLength: i32 = 0

/** Makes the text of a string available at `textStart`, until the next call. */
export function readText(index: i32): void {
  const entry = node(index)
  if (entry.flags & NODE_ESCAPES) return readSpan(entry.start, entry.end)
  textStart = doc + entry.start + 1
  textLength = entry.end - entry.start - 2
}

/** Makes the text of the name of a member available. */
export function readName(index: i32): void {
  readSpan(node(index).key, node(index).keyEnd)
}

function readSpan(start: i32, stop: i32): void {
  textStart = doc + start + 1
  textLength = stop - start - 2
  for (let i = 0; i < textLength; i++) {
    if (load<u8>(textStart + i) != 92) continue
    clear(scratch)
    appendUnescaped(scratch, textStart, textStart + textLength)
    textStart = scratch.data
    textLength = scratch.used
    return
  }
}

/** The last member with that name, as JSON.parse has it, or 0. */
export function member(object: i32, name: i32): i32 {
  if (object == 0 || node(object).kind != KIND_OBJECT) return 0
  let found = 0
  for (let i = node(object).child; i != 0; i = node(i).next) {
    if (<i32>node(i).name == name && !(node(i).flags & NODE_FOLDED)) found = i
  }
  return found
}

// @ts-ignore: decorator
@inline
export function isKind(index: i32, kind: u8): bool {
  return index != 0 && node(index).kind == kind
}

/** The member if it is of that kind, or 0. */
export function memberOf(object: i32, name: i32, kind: u8): i32 {
  const found = member(object, name)
  return isKind(found, kind) ? found : 0
}

/** The number as a count, -1 if it is negative, a fraction, large or no number. */
export function countOf(index: i32): i64 {
  if (!isKind(index, KIND_NUMBER)) return -1
  const from = doc + node(index).start
  const length = node(index).end - node(index).start
  if (length > 15) return -1
  let value: i64 = 0
  for (let i = 0; i < length; i++) {
    const digit = <u32>load<u8>(from + i) - 48
    if (digit > 9) return -1
    value = value * 10 + digit
  }
  return value
}
