// Finds the texts in an event of a streamed answer of Responses.
import { addItemParts, maskAnswer, maskItem, maskNested, textOf } from './content'
import { addEdit, EDIT_REPEAT } from './edits'
import { beginGroup, maskGroup } from './group'
import { CONTENT, CONTENT_INDEX, DELTA, ITEM, OUTPUT_INDEX, PART, REFUSAL, RESPONSE, TEXT, TRANSCRIPT, TYPE } from './names'
import { remembersItem } from './queue'
import { isNone } from './runs'
import { complete, current, end, indexOf, isType, needOnce, stream, takePiece } from './stream'
import { isKind, KIND_ARRAY, KIND_OBJECT, KIND_STRING, member, memberOf, node, readText } from './tape'

export function readResponses(root: i32): void {
  if (!isKind(root, KIND_OBJECT)) return
  needOnce(root)
  const type = memberOf(root, TYPE, KIND_STRING)
  if (type == 0) return readWhole(root)
  const item = indexOf(root, OUTPUT_INDEX)
  const content = indexOf(root, CONTENT_INDEX)
  readText(type)
  if (isType('response.output_text.delta') || isType('response.audio.transcript.delta') || isType('response.refusal.delta')) {
    const delta = memberOf(root, DELTA, KIND_STRING)
    if (delta != 0) takePiece(delta, item, content)
  } else if (isType('response.output_text.done')) endPartOf(root, TEXT, item, content)
  else if (isType('response.audio.transcript.done')) endPartOf(root, TRANSCRIPT, item, content)
  else if (isType('response.refusal.done')) endPartOf(root, REFUSAL, item, content)
  else if (isType('response.content_part.added')) repeatPart(member(root, PART))
  else if (isType('response.content_part.done')) {
    end(item, content)
    repeatPart(member(root, PART))
  } else if (isType('response.output_item.added')) repeatItem(member(root, ITEM), false)
  else if (isType('response.output_item.done')) {
    end(item, -1)
    repeatItem(member(root, ITEM), isStreamed(item))
  } else if (isType('error')) complete(-1)
  else readWhole(root)
}

/** Was a part of the item streamed? */
function isStreamed(item: i32): bool {
  if (!isNone(stream.runs)) {
    for (let part = stream.runs.outgoing; !isNone(part); part = part.next) if (part.first == item) return true
  }
  return remembersItem(stream.queue, item) || current.ends.used > 0
}

function endPartOf(root: i32, name: i32, item: i32, content: i32): void {
  end(item, content)
  const text = memberOf(root, name, KIND_STRING)
  if (text != 0) addEdit(text, EDIT_REPEAT)
}

function repeatPart(part: i32): void {
  const text = textOf(part)
  if (text != 0) addEdit(text, EDIT_REPEAT)
  else maskNested(part)
}

function repeatItem(item: i32, isRepeated: bool): void {
  if (!isKind(item, KIND_OBJECT)) return
  const content = memberOf(item, CONTENT, KIND_ARRAY)
  if (isRepeated) {
    for (let part = content == 0 ? 0 : node(content).child; part != 0; part = node(part).next) {
      const text = textOf(part)
      if (text != 0) addEdit(text, EDIT_REPEAT)
    }
  } else {
    beginGroup()
    addItemParts(item)
    maskGroup(false)
  }
  maskItem(item)
}

/** An event that contains the whole response. */
function readWhole(root: i32): void {
  const response = memberOf(root, RESPONSE, KIND_OBJECT)
  if (response == 0) return
  const type = memberOf(root, TYPE, KIND_STRING)
  let isLast = false
  if (type != 0) {
    readText(type)
    isLast = isType('response.completed') || isType('response.incomplete') || isType('response.failed')
  }
  maskAnswer(response)
  if (isLast) complete(-1)
}
