// Texts inside objects and lists of a delta, and those of a delta of an unknown kind: *asides*. Each continues at the
// same path of later events of its type, as a run of its own. The gateway has the same rules in
// src/engines/messages/mask/delta-texts.ts.
import { append, Bytes, clear, failure } from './bytes'
import { isLabel, isSkipped } from './content'
import { addEdit, EDIT_PART, hasEdit } from './edits'
import { ENCODED_BINARY, ENCODED_NONE, encodedKind, maskEncoded } from './encoded'
import { VARIABLES } from './names'
import { openPart } from './runs'
import { isGuarded, rw } from './state'
import { asideRun, isNonEmpty, maskPiece, needOnce } from './stream'
import {
  isKind, KIND_ARRAY, KIND_OBJECT, KIND_STRING, node, NODE_FOLDED, readName, readText, textLength, textStart,
} from './tape'

/** The choice, block or item whose event is read, and its content. */
let first: i32 = 0
let content: i32 = 0

/** Begins the asides of an event; `type` is the string with its type, or 0. The hash to begin with. */
export function beginAsides(item: i32, second: i32 = 0, type: i32 = 0): u32 {
  first = item
  content = second
  if (type == 0) return 0x811c9dc5
  readText(type)
  return mixText(mix(0x811c9dc5, second))
}

// @ts-ignore: decorator
@inline
function mix(hash: u32, value: u32): u32 {
  return (hash ^ value) * 0x01000193
}

/** Mixes the text that was read. */
function mixText(hash: u32): u32 {
  let mixed = mix(hash, 0x100)
  for (let i = 0; i < textLength; i++) mixed = mix(mixed, load<u8>(textStart + i))
  return mixed
}

/** Takes the asides of an object except the member `skipped`. `key` is the name of the member with it. */
export function takeAsidesOf(object: i32, key: i32, hash: u32, skipped: i32 = 0): void {
  if (!isKind(object, KIND_OBJECT)) return
  needOnce(object)
  for (let i = node(object).child; i != 0 && failure == 0; i = node(i).next) {
    if (i != skipped) takeAsides(object, key, i, hash)
  }
}

/** Takes the asides in a member of an object; `hash` is that of the path of the object. */
export function takeAsides(holder: i32, key: i32, index: i32, hash: u32): void {
  const kind = node(index).kind
  if (kind != KIND_STRING && kind != KIND_ARRAY && kind != KIND_OBJECT) return
  if (hasEdit(index) || isSkipped(holder, key, index)) return
  const name = node(index).flags & NODE_FOLDED ? 0 : <i32>node(index).name
  readName(index)
  const here = mixText(hash)
  if (kind == KIND_STRING) {
    const encoded = encodedKind(holder, index, name)
    if (encoded == ENCODED_BINARY) return
    if (encoded != ENCODED_NONE) maskEncoded(index)
    else if (!isLabel(holder, index)) takeAside(index, here)
  } else if (kind == KIND_ARRAY) takeItems(index, name, here, isLabel(holder, index))
  else if (name != VARIABLES) takeAsidesOf(index, name, here)
  else {
    // Variables of a template have names of their own.
    for (let i = node(index).child; i != 0 && failure == 0; i = node(i).next) {
      readName(i)
      takeItem(i, 0, mixText(here))
    }
  }
}

export function takeItems(list: i32, key: i32, hash: u32, areLabels: bool = false): void {
  let at = 0
  for (let i = node(list).child; i != 0 && failure == 0; i = node(i).next) {
    if (!areLabels || isKind(i, KIND_OBJECT)) takeItem(i, key, itemHash(hash, at))
    at++
  }
}

export function itemHash(hash: u32, at: i32): u32 {
  return mix(mix(hash, 0x101), at)
}

function takeItem(item: i32, key: i32, hash: u32): void {
  if (isKind(item, KIND_STRING)) takeAside(item, hash)
  else if (isKind(item, KIND_ARRAY)) takeItems(item, key, hash)
  else takeAsidesOf(item, key, hash)
}

const piece: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))

function takeAside(index: i32, hash: u32): void {
  if (!isNonEmpty(index) || hasEdit(index)) return
  readText(index)
  rw.textBytes += <f64>textLength
  if (!isGuarded()) return
  clear(piece)
  append(piece, textStart, textLength)
  const run = asideRun(first, content, hash)
  const part = openPart(run, first, 0)
  part.isAside = true
  maskPiece(run, part, piece.data, piece.used)
  addEdit(index, EDIT_PART, <u32>changetype<usize>(part))
}
