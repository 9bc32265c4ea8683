// Finds the texts in an event of a streamed answer of Messages.
import { isAscii } from './bytes'
import { hasType, maskAnswer, maskNested } from './content'
import { addEdit, EDIT_INDEX } from './edits'
import { CONTENT_BLOCK, DELTA, INDEX, MESSAGE, STOP_REASON, TEXT, TYPE } from './names'
import { openPart } from './runs'
import { isGuarded } from './state'
import { complete, current, end, indexOf, isType, needOnce, runOf, takePiece } from './stream'
import { countOf, isKind, KIND_NULL, KIND_OBJECT, KIND_STRING, member, memberOf, readText, textLength, textStart } from './tape'

export function readMessages(root: i32): void {
  if (!isKind(root, KIND_OBJECT)) return
  needOnce(root)
  const type = memberOf(root, TYPE, KIND_STRING)
  if (type == 0) return
  readText(type)
  placeBlock(root)
  if (isType('content_block_delta')) readBlock(root, memberOf(root, DELTA, KIND_OBJECT), 'text_delta')
  else if (isType('content_block_start')) {
    const block = memberOf(root, CONTENT_BLOCK, KIND_OBJECT)
    if (readBlock(root, block, 'text') && isGuarded()) current.begins = openPart(runOf(0, 0), indexOf(root, INDEX), 0)
  }
  else if (isType('content_block_stop')) end(indexOf(root, INDEX), -1)
  else if (isType('message_start')) maskAnswer(memberOf(root, MESSAGE, KIND_OBJECT))
  else if (isType('message_delta')) {
    const reason = member(memberOf(root, DELTA, KIND_OBJECT), STOP_REASON)
    if (reason != 0 && !isKind(reason, KIND_NULL)) complete(-1)
  } else if (isType('message_stop') || isType('error')) complete(-1)
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

/** Takes the text of a block, or of a delta of it; false if it is of another kind. */
function readBlock(root: i32, block: i32, type: string): bool {
  if (block == 0) return false
  needOnce(block)
  const text = memberOf(block, TEXT, KIND_STRING)
  if (text != 0 && hasType(block, type)) {
    takePiece(text, indexOf(root, INDEX), 0)
    return true
  }
  maskNested(block)
  return false
}
