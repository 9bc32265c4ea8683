// Finds the texts in an event of a streamed answer of Messages.
import { beginAsides, takeAsides } from './asides'
import { failure, isAscii } from './bytes'
import { hasType, isLabel, isSkipped, maskAnswer, maskObject } from './content'
import { addEdit, EDIT_INDEX } from './edits'
import { CONTENT_BLOCK, DELTA, INDEX, MESSAGE, STOP_REASON, TEXT, TYPE } from './names'
import { openPart } from './runs'
import { isGuarded } from './state'
import { begin, current, end, fieldOf, finish, indexOf, isType, needOnce, runOf, stop, takePiece } from './stream'
import {
  countOf, isKind, KIND_NULL, KIND_OBJECT, KIND_STRING, member, memberOf, node, readText, textLength, textStart,
} from './tape'

export function readMessages(root: i32): void {
  if (!isKind(root, KIND_OBJECT)) return
  needOnce(root)
  const type = memberOf(root, TYPE, KIND_STRING)
  if (type == 0) return maskObject(root)
  readText(type)
  placeBlock(root)
  if (isType('content_block_delta')) {
    const delta = memberOf(root, DELTA, KIND_OBJECT)
    maskObject(root, 0, delta)
    readDelta(root, delta)
  } else if (isType('content_block_start')) readStart(root, memberOf(root, CONTENT_BLOCK, KIND_OBJECT))
  else if (isType('message_start')) {
    const message = memberOf(root, MESSAGE, KIND_OBJECT)
    maskObject(root, 0, message)
    maskAnswer(message)
  } else readOther(root)
}

/** `textStart` is the type. */
function readOther(root: i32): void {
  const endsBlock = isType('content_block_stop')
  const isLast = isType('message_stop')
  let stops = isType('error')
  if (isType('message_delta')) {
    const reason = member(memberOf(root, DELTA, KIND_OBJECT), STOP_REASON)
    stops = reason != 0 && !isKind(reason, KIND_NULL)
  }
  readTexts(root)
  if (endsBlock) end(indexOf(root, INDEX), -1)
  if (isLast) finish()
  else if (stops) stop(-1)
}

/** Masks the texts of an event; those of a delta continue in later events. `textStart` is the type. */
function readTexts(root: i32): void {
  const delta = isType('message_delta') ? member(root, DELTA) : 0
  maskObject(root, 0, delta)
  if (delta != 0) takeAsides(root, 0, delta, beginAsides(-1, 0, memberOf(root, TYPE, KIND_STRING)))
}

/** Notes the index of a content block: blocks before it may be removed, or the block itself. */
function placeBlock(root: i32): void {
  if (!isGuarded()) return
  if (textLength > BLOCK.length && isAscii(textStart, BLOCK.length, BLOCK)) current.block = indexOf(root, INDEX)
  const index = member(root, INDEX)
  if (countOf(index) < 0) return
  const value = <i32>countOf(index)
  addEdit(index, EDIT_INDEX, value, value)
}

const BLOCK: string = 'content_block_'

/** A block of text begins with a text that is usually empty; the rest follows in deltas. */
function readStart(root: i32, block: i32): void {
  maskObject(root, 0, block)
  const index = indexOf(root, INDEX)
  begin(index)
  if (block == 0) return
  const text = hasType(block, 'text') ? memberOf(block, TEXT, KIND_STRING) : 0
  maskObject(block, CONTENT_BLOCK, text)
  if (text == 0) return
  takePiece(text, index, 0)
  if (isGuarded()) current.begins = openPart(runOf(0, 0), index, 0)
}

/** Each string of a delta is a piece of the message's text, unless it is no text; other texts are asides. */
function readDelta(root: i32, delta: i32): void {
  if (delta == 0) return
  needOnce(delta)
  const isCompaction = hasType(delta, 'compaction_delta')
  const isText = hasType(delta, 'text_delta')
  const index = indexOf(root, INDEX)
  const hash = beginAsides(index, 0, memberOf(root, TYPE, KIND_STRING))
  for (let i = node(delta).child; i != 0 && failure == 0; i = node(i).next) {
    const isPiece = !isCompaction && isKind(i, KIND_STRING) && !isSkipped(delta, DELTA, i) && !isLabel(delta, i)
    const field = fieldOf(i)
    if (isPiece) takePiece(i, index, isText && field == TEXT ? 0 : field)
    else takeAsides(delta, DELTA, i, hash)
  }
}
