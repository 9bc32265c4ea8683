// Events that continue a part: how the provider writes them, so that held text can be sent in such an event.
import { TEXTS_COMPLETIONS, TEXTS_MESSAGES } from './abi'
import { append, appendAscii, appendNumber, Bytes, clear, push } from './bytes'
import {
  E_END, E_KIND, E_LENGTH, E_START, E_VALUE, EDIT_BYTES, EDIT_INDEX, EDIT_NUMBER, EDIT_PART, EDIT_TEXT, nodeOfPart,
} from './edits'
import { isLabel } from './content'
import { CONTENT, FINISH_REASON, STOP_REASON, TEXT, TRANSCRIPT, USAGE } from './names'
import { isNone, newEvent, Part } from './runs'
import { rw } from './state'
import { current } from './stream'
import { documentStart, isKind, KIND_ARRAY, KIND_OBJECT, KIND_STRING, node } from './tape'

/** Keeps for each part with a piece in this event how an event looks that continues it. */
export function keepTemplates(root: i32): void {
  const edits = current.event.edits
  for (let i = 0; i < edits.used; i += EDIT_BYTES) {
    const edit = edits.data + i
    if (load<i32>(edit, E_KIND) != EDIT_PART) continue
    const part = changetype<Part>(<usize>load<u32>(edit, E_VALUE))
    if (isNone(part.template)) part.template = newEvent()
    else if (rw.format == TEXTS_MESSAGES) continue
    const template = part.template
    clear(template.name)
    clear(template.data)
    clear(template.edits)
    clear(template.side)
    if (part.isAside) {
      append(template.name, current.event.name.data, current.event.name.used)
      writeSkeleton(root, nodeOfPart(<u32>changetype<usize>(part)), part)
    } else if (rw.format == TEXTS_COMPLETIONS) writeChoice(root, part)
    else if (rw.format == TEXTS_MESSAGES && part.second == 0) writeDelta(part)
    else {
      append(template.name, current.event.name.data, current.event.name.used)
      append(template.data, current.event.data.data, current.event.data.used)
      copyEdits(edits, part)
      append(template.side, current.event.side.data, current.event.side.used)
    }
  }
}

/** Copies the edits of the event; the pieces of other parts become empty. */
function copyEdits(edits: Bytes, part: Part): void {
  const copy = part.template.edits
  append(copy, edits.data, edits.used)
  for (let i = 0; i < copy.used; i += EDIT_BYTES) {
    const edit = copy.data + i
    if (load<i32>(edit, E_KIND) != EDIT_PART || load<u32>(edit, E_VALUE) == <u32>changetype<usize>(part)) continue
    store<i32>(edit, EDIT_TEXT, E_KIND)
    store<i32>(edit, 0, E_VALUE)
    store<i32>(edit, 0, E_LENGTH)
  }
}

/** Writes what the event needs so that the string `target` continues in it: no other texts, lists or objects. */
function writeSkeleton(value: i32, target: i32, part: Part): void {
  if (value == target) return putPlace(part)
  const data = part.template.data
  const isObject = isKind(value, KIND_OBJECT)
  const start = documentStart()
  let isFirst = true
  appendAscii(data, isObject ? '{' : '[')
  for (let i = node(value).child; i != 0; i = node(i).next) {
    const holds = node(i).start <= node(target).start && node(target).end <= node(i).end
    if (!holds && (!isObject || !isKept(value, i))) continue
    if (!isFirst) appendAscii(data, ',')
    isFirst = false
    if (isObject) {
      append(data, start + node(i).key, node(i).keyEnd - node(i).key)
      appendAscii(data, ':')
    }
    if (holds) writeSkeleton(i, target, part)
    else copyScalar(i, part)
  }
  appendAscii(data, isObject ? '}' : ']')
}

/** Is it no text and no end of a text? */
function isKept(object: i32, index: i32): bool {
  const name = node(index).name
  if (name == USAGE || isKind(index, KIND_OBJECT) || isKind(index, KIND_ARRAY)) return false
  return !isKind(index, KIND_STRING) || (name != FINISH_REASON && name != STOP_REASON && isLabel(object, index))
}

/** Copies a value, with its index or number that is replaced. */
function copyScalar(index: i32, part: Part): void {
  const template = part.template
  const from = node(index).start
  const edits = current.event.edits
  for (let i = 0; i < edits.used; i += EDIT_BYTES) {
    const kind = load<i32>(edits.data + i, E_KIND)
    if (load<i32>(edits.data + i, E_START) != from || (kind != EDIT_INDEX && kind != EDIT_NUMBER)) continue
    append(template.edits, edits.data + i, EDIT_BYTES)
    const copy = template.edits.data + template.edits.used - EDIT_BYTES
    store<i32>(copy, template.data.used, E_START)
    store<i32>(copy, template.data.used + node(index).end - from, E_END)
  }
  append(template.data, documentStart() + from, node(index).end - from)
}

/** Notes that the part's text comes at the end of the template so far. */
function putPlace(part: Part): void {
  const edit = push(part.template.edits, EDIT_BYTES)
  store<i32>(edit, part.template.data.used, E_START)
  store<i32>(edit, part.template.data.used, E_END)
  store<i32>(edit, EDIT_PART, E_KIND)
  store<u32>(edit, <u32>changetype<usize>(part), E_VALUE)
}

function writeDelta(part: Part): void {
  const template = part.template
  if (current.event.name.used > 0) appendAscii(template.name, 'content_block_delta')
  appendAscii(template.data, '{"type":"content_block_delta","index":')
  const edit = push(template.edits, EDIT_BYTES)
  store<i32>(edit, template.data.used, E_START)
  store<i32>(edit, template.data.used, E_END)
  store<i32>(edit, EDIT_INDEX, E_KIND)
  store<i32>(edit, part.first, E_VALUE)
  store<i32>(edit, part.first, E_LENGTH)
  appendAscii(template.data, ',"delta":{"type":"text_delta","text":')
  putPlace(part)
  appendAscii(template.data, '}}')
}

function writeChoice(root: i32, part: Part): void {
  const data = part.template.data
  const start = documentStart()
  append(part.template.name, current.event.name.data, current.event.name.used)
  appendAscii(data, '{')
  for (let i = node(root).child; i != 0; i = node(i).next) {
    if (node(i).name == USAGE) continue
    // Other texts of the event were in the event itself.
    if (isKind(i, KIND_OBJECT) || isKind(i, KIND_ARRAY) || (isKind(i, KIND_STRING) && !isLabel(root, i))) continue
    append(data, start + node(i).key, node(i).end - node(i).key)
    appendAscii(data, ',')
  }
  appendAscii(data, '"choices":[{"index":')
  appendNumber(data, part.first)
  if (part.second == TEXT) appendAscii(data, ',"text":')
  else if (part.second == TRANSCRIPT) appendAscii(data, ',"delta":{"audio":{"transcript":')
  else if (part.second == CONTENT) appendAscii(data, ',"delta":{"content":')
  else {
    const piece = nodeOfPart(<u32>changetype<usize>(part))
    appendAscii(data, ',"delta":{')
    append(data, start + node(piece).key, node(piece).keyEnd - node(piece).key)
    appendAscii(data, ':')
  }
  putPlace(part)
  if (part.second == TRANSCRIPT) appendAscii(data, '}}')
  else if (part.second != TEXT) appendAscii(data, '}')
  appendAscii(data, ',"logprobs":null,"finish_reason":null}]}')
}
