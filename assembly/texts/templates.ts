// Events that continue a part: how the provider writes them, so that held text can be sent in such an event.
import { TEXTS_COMPLETIONS, TEXTS_MESSAGES } from './abi'
import { append, appendAscii, appendNumber, clear, push } from './bytes'
import { E_END, E_KIND, E_LENGTH, E_START, E_VALUE, EDIT_BYTES, EDIT_INDEX, EDIT_PART, nodeOfPart } from './edits'
import { isLabel } from './content'
import { CONTENT, TEXT, TRANSCRIPT, USAGE } from './names'
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
    if (rw.format == TEXTS_COMPLETIONS) writeChoice(root, part)
    else if (rw.format == TEXTS_MESSAGES && part.second == 0) writeDelta(part)
    else {
      append(template.name, current.event.name.data, current.event.name.used)
      append(template.data, current.event.data.data, current.event.data.used)
      append(template.edits, edits.data, edits.used)
      append(template.side, current.event.side.data, current.event.side.used)
    }
  }
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
