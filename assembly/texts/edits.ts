// Edits of a document, in its order, and how it is written with them.
//
// Edit, 24 bytes: start | end | kind | value | length | group
import { append, appendAscii, appendNumber, Bytes, clear, push } from './bytes'
import { appendString } from './strings'
import { documentLength, documentStart, node, nodeCount } from './tape'

/** The value becomes the string [value, +length) of the side buffer. */
export const EDIT_TEXT: i32 = 1
/** The value becomes the text that the part (address in `value`) has ready. */
export const EDIT_PART: i32 = 2
/** The member or item goes, with its comma. */
export const EDIT_REMOVE: i32 = 3
export const EDIT_EMPTY_LIST: i32 = 4
export const EDIT_NULL: i32 = 5
/** The value becomes the next sequence number. */
export const EDIT_NUMBER: i32 = 6
/** A text that was streamed before; edits of one `group` are parts of one text. Becomes EDIT_TEXT. */
export const EDIT_REPEAT: i32 = 7
/** The index of a content block becomes `value`; `length` is the index that the provider gave it. */
export const EDIT_INDEX: i32 = 8

export const EDIT_BYTES: i32 = 24
export const E_START: usize = 0
export const E_END: usize = 4
export const E_KIND: usize = 8
export const E_VALUE: usize = 12
export const E_LENGTH: usize = 16
export const E_GROUP: usize = 20

/** Edits of the document on the tape, in the order in which they were found. */
let found: Bytes = changetype<Bytes>(0)

export function beginEdits(buffer: Bytes): void {
  found = buffer
  clear(found)
}

/** Notes an edit of a value; the first edit of a value stands. */
export function addEdit(index: i32, kind: i32, value: u32 = 0, length: i32 = 0, group: i32 = 0): void {
  const entry = node(index)
  if (entry.edit != 0) return
  entry.edit = found.used / EDIT_BYTES + 1
  const edit = push(found, EDIT_BYTES)
  store<i32>(edit, kind == EDIT_REMOVE ? entry.key : entry.start, E_START)
  store<i32>(edit, entry.end, E_END)
  store<i32>(edit, kind, E_KIND)
  store<u32>(edit, value, E_VALUE)
  store<i32>(edit, length, E_LENGTH)
  store<i32>(edit, group, E_GROUP)
}

/** The string whose place the part takes, or 0. */
export function nodeOfPart(part: u32): i32 {
  const count = nodeCount()
  for (let i = 1; i < count; i++) {
    const number = node(i).edit
    if (number == 0) continue
    const edit = found.data + <usize>((number - 1) * EDIT_BYTES)
    if (load<i32>(edit, E_KIND) == EDIT_PART && load<u32>(edit, E_VALUE) == part) return i
  }
  return 0
}

export function hasEdit(index: i32): bool {
  return node(index).edit != 0
}

/** Changes an edit of a value to another kind. */
export function changeEdit(index: i32, kind: i32): void {
  const edit = found.data + <usize>((node(index).edit - 1) * EDIT_BYTES)
  store<i32>(edit, kind, E_KIND)
  if (kind == EDIT_REMOVE) store<i32>(edit, node(index).key, E_START)
}

/** Copies the edits to `out` in the order of the document. */
export function sortEdits(out: Bytes): void {
  clear(out)
  let last = 0
  const count = nodeCount()
  for (let i = 1; i < count && found.used > 0; i++) {
    const number = node(i).edit
    if (number == 0) continue
    const edit = found.data + <usize>((number - 1) * EDIT_BYTES)
    // An edit inside a value that is replaced or removed has no effect.
    if (load<i32>(edit, E_START) < last) continue
    last = load<i32>(edit, E_END)
    append(out, edit, EDIT_BYTES)
  }
}

/** The ready text of a part begins with these two words: its address and its length. */
@unmanaged
export class ReadyText {
  ready: Bytes
}

/** Writes the document with its edits. `side` has the texts; the sequence number is `number`. */
export function writeDocument(out: Bytes, text: usize, length: i32, edits: Bytes, side: Bytes, number: i64): void {
  let at = 0
  for (let offset = 0; offset < edits.used; offset += EDIT_BYTES) {
    const edit = edits.data + offset
    const start = load<i32>(edit, E_START)
    append(out, text + at, start - at)
    at = load<i32>(edit, E_END)
    const kind = load<i32>(edit, E_KIND)
    if (kind == EDIT_TEXT) appendString(out, side.data + load<u32>(edit, E_VALUE), load<i32>(edit, E_LENGTH))
    else if (kind == EDIT_PART) writeReady(out, load<u32>(edit, E_VALUE))
    else if (kind == EDIT_EMPTY_LIST) appendAscii(out, '[]')
    else if (kind == EDIT_NULL) appendAscii(out, 'null')
    else if (kind == EDIT_NUMBER) appendNumber(out, number)
    else if (kind == EDIT_INDEX) appendNumber(out, load<i32>(edit, E_VALUE))
    else if (kind == EDIT_REMOVE) at = removeComma(out, text, length, at)
    else append(out, text + start, at - start)
  }
  append(out, text + at, length - at)
}

function writeReady(out: Bytes, part: u32): void {
  const ready = changetype<ReadyText>(part).ready
  appendString(out, ready.data, ready.used)
  clear(ready)
}

function isSpace(byte: u32): bool {
  return byte == 32 || byte == 10 || byte == 13 || byte == 9
}

/** Skips the comma behind the removed value; takes back the one before it if the value was the last. */
function removeComma(out: Bytes, text: usize, length: i32, from: i32): i32 {
  let at = from
  while (at < length && isSpace(load<u8>(text + at))) at++
  if (at < length && load<u8>(text + at) == 44) return at + 1
  let used = out.used
  while (used > 0 && isSpace(load<u8>(out.data + used - 1))) used--
  if (used > 0 && load<u8>(out.data + used - 1) == 44) out.used = used - 1
  return at
}

/** Writes the document on the tape. */
export function writeTape(out: Bytes, edits: Bytes, side: Bytes): void {
  writeDocument(out, documentStart(), documentLength(), edits, side, 0)
}
