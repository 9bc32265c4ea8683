// The values of one JSON document in order, the *tape*, and how they are read. There is one tape; it holds
// the document that is being rewritten.
//
// Numbers, true, false and null that are items of an array get no entry of their own, because arrays
// of numbers can be long: the array has NODE_SCALARS instead.
import { Bytes, clear, failure, newBytes, push } from './bytes'
import { appendUnescaped } from './strings'

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
let docLength: i32 = 0
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
  return docLength
}

/** Forgets the document, and frees a large tape. */
export function forgetDocument(): void {
  clear(tape)
  clear(scratch)
}

/** Starts the tape of another document; its entry 0 stands for no value. False without memory. */
export function beginTape(from: usize, length: i32): bool {
  if (changetype<usize>(tape) == 0) {
    tape = newBytes()
    scratch = newBytes()
    if (failure != 0) return false
  }
  clear(tape)
  push(tape, NODE_BYTES)
  doc = from
  docLength = length
  return true
}

/** Adds a value that begins at an offset of the document. Returns its index. */
export function addNode(kind: u8, start: i32): i32 {
  const index = nodeCount()
  const entry = changetype<Node>(push(tape, NODE_BYTES))
  entry.kind = kind
  entry.start = start
  entry.key = start
  entry.keyEnd = start
  return index
}

/** The text between two addresses without its escapes, valid until the next call. */
export function unescape(from: usize, stop: usize): Bytes {
  clear(scratch)
  appendUnescaped(scratch, from, stop)
  return scratch
}

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
    const text = unescape(textStart, textStart + textLength)
    textStart = text.data
    textLength = text.used
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
