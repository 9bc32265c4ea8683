// Finds the texts in an event of a streamed answer of Responses.
import { beginAsides, takeAsides, takeAsidesOf } from './asides'
import { isAscii } from './bytes'
import { addItemParts, isLabel, isSkipped, maskAnswer, maskItem, maskMember, maskObject, maskRest, textOf } from './content'
import { addEdit, EDIT_REPEAT } from './edits'
import { beginGroup, maskGroup } from './group'
import { ARGUMENTS, CONTENT, CONTENT_INDEX, DELTA, INPUT, ITEM, OUTPUT_INDEX, PART, RESPONSE, TEXT, TYPE } from './names'
import { remembersItem } from './queue'
import { isNone } from './runs'
import { answerRun, current, end, finish, indexOf, isType, needOnce, stop, stream, takePiece } from './stream'
import {
  isKind, KIND_ARRAY, KIND_OBJECT, KIND_STRING, member, memberOf, node, NODE_FOLDED, readName, readText, textLength, textStart,
} from './tape'

export function readResponses(root: i32): void {
  if (!isKind(root, KIND_OBJECT)) return
  needOnce(root)
  const type = memberOf(root, TYPE, KIND_STRING)
  if (type == 0) return readWhole(root)
  const item = indexOf(root, OUTPUT_INDEX)
  const content = indexOf(root, CONTENT_INDEX)
  const delta = memberOf(root, DELTA, KIND_STRING)
  readText(type)
  if (isUnread()) maskRead(root)
  else if (isType('response.content_part.added')) readPart(root)
  else if (isType('response.content_part.done')) {
    end(item, content)
    readPart(root)
  } else if (isType('response.output_item.added')) readItem(root, false)
  else if (isType('response.output_item.done')) {
    end(item, -1)
    readItem(root, isStreamed(item))
  } else if (isType('error')) {
    maskObject(root)
    stop(-1)
  } else if (delta != 0 && endsWith('.delta')) {
    maskObject(root, 0, delta)
    takePiece(delta, item, content)
  } else if (endsWith('.done')) {
    end(item, content)
    readEnd(root)
  } else if (memberOf(root, RESPONSE, KIND_OBJECT) != 0) readWhole(root)
  else readOther(root, item, content)
}

/** An event whose texts continue in later ones, or one that is complete. `textStart` is the type. */
function readOther(root: i32, item: i32, content: i32): void {
  const delta = member(root, DELTA)
  if (delta == 0 && !endsWith('.delta') && !endsWith('_delta')) return readWhole(root)
  const hash = beginAsides(item, content, memberOf(root, TYPE, KIND_STRING))
  if (delta == 0) return takeAsidesOf(root, 0, hash)
  maskObject(root, 0, delta)
  takeAsides(root, 0, delta, hash)
}

function startsWith(text: string): bool {
  return textLength >= text.length && isAscii(textStart, text.length, text)
}

function endsWith(text: string): bool {
  return textLength >= text.length && isAscii(textStart + textLength - text.length, text.length, text)
}

/** Is the type that of an event with arguments of calls, reasoning or audio? */
function isUnread(): bool {
  if (!startsWith('response.') || !(endsWith('.delta') || endsWith('.done'))) return false
  return startsWith('response.reasoning') || isType('response.audio.delta') || isType('response.audio.done') || hasArguments()
}

function hasArguments(): bool {
  return (
    endsWith('arguments.delta') || endsWith('arguments.done') || endsWith('call_input.delta') || endsWith('call_input.done') ||
    endsWith('call_command.delta') || endsWith('call_command.done') || endsWith('operation_diff.delta') ||
    endsWith('operation_diff.done')
  )
}

/** Masks everything except the fields with arguments, reasoning or audio. */
function maskRead(root: i32): void {
  for (let i = node(root).child; i != 0; i = node(i).next) {
    const name = node(i).flags & NODE_FOLDED ? 0 : <i32>node(i).name
    if (name == DELTA || name == TEXT || name == ARGUMENTS || name == INPUT) continue
    readName(i)
    if (isType('command') || isType('diff')) continue
    maskMember(root, 0, i)
  }
}

/** Was a part of the item streamed? */
function isStreamed(item: i32): bool {
  const run = answerRun()
  if (!isNone(run)) {
    for (let part = run.outgoing; !isNone(part); part = part.next) if (part.first == item) return true
  }
  return remembersItem(stream.queue, item) || current.ends.used > 0
}

/** The end of a part, which usually repeats its text. */
function readEnd(root: i32): void {
  if (memberOf(root, RESPONSE, KIND_OBJECT) != 0) return readWhole(root)
  for (let i = node(root).child; i != 0; i = node(i).next) {
    if (isKind(i, KIND_STRING) && !isSkipped(root, 0, i) && !isLabel(root, i)) addEdit(i, EDIT_REPEAT)
    else maskMember(root, 0, i)
  }
}

function readPart(root: i32): void {
  const part = member(root, PART)
  maskObject(root, 0, part)
  const text = textOf(part)
  if (text != 0) addEdit(text, EDIT_REPEAT)
  maskRest(part, CONTENT)
}

function readItem(root: i32, isRepeated: bool): void {
  const item = member(root, ITEM)
  maskObject(root, 0, item)
  if (item == 0) return
  if (isRepeated) {
    const content = memberOf(item, CONTENT, KIND_ARRAY)
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

/** An event that contains the whole response, or one without text that continues. */
function readWhole(root: i32): void {
  const response = memberOf(root, RESPONSE, KIND_OBJECT)
  maskObject(root, 0, response)
  if (response == 0) return
  const type = memberOf(root, TYPE, KIND_STRING)
  let isLast = false
  if (type != 0) {
    readText(type)
    isLast = isType('response.completed') || isType('response.incomplete') || isType('response.failed')
  }
  maskAnswer(response)
  if (isLast) finish()
}
