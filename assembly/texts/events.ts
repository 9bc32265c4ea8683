// Finds the texts in the events of a streamed answer, in the client's format.
import {
  TEXTS_COMPLETIONS, TEXTS_HIDDEN, TEXTS_MALFORMED, TEXTS_MESSAGES, TEXTS_RESPONSES, TEXTS_TOO_MANY, TEXTS_UNDECIDED,
} from './abi'
import { append, appendAscii, appendNumber, Bytes, clear, failure, freeRecord, isAscii, newRecord, push, setFailure } from './bytes'
import { addItemParts, hasType, maskAnswer, maskItem, maskNested, maskOutput, textOf } from './content'
import { addEdit, beginEdits, E_END, E_KIND, E_START, E_VALUE, E_LENGTH, EDIT_BYTES, EDIT_INDEX, EDIT_NUMBER, EDIT_PART, EDIT_REPEAT, EDIT_TEXT, sortEdits } from './edits'
import { beginGroup, maskGroup } from './group'
import {
  AUDIO, CHOICES, CONTENT, CONTENT_BLOCK, CONTENT_INDEX, DELTA, ERROR, FINISH_REASON, INDEX, ITEM, MESSAGE, OUTPUT_INDEX, PART, REFUSAL,
  RESPONSE, SEQUENCE_NUMBER, STOP_REASON, TEXT, TRANSCRIPT, TYPE, USAGE,
} from './names'
import { enqueue, freeQueue, newQueue, newWaiting, Queue, release, remembersItem, Waiting, writeRest } from './queue'
import { freeKnown, isKnown, Known, knownLength, knownText, learn, newKnown, writeKnown } from './known'
import { maskRepeated } from './repeated'
import { completeRun, endParts, freePart, freeRun, heldByRun, isNone, newEvent, newRun, openPart, Part, pushPiece, Run } from './runs'
import { isGuarded, rw } from './state'
import {
  countOf, documentLength, documentStart, isKind, KIND_ARRAY, KIND_NULL, KIND_NUMBER, KIND_OBJECT, KIND_STRING, member, memberOf, node, NODE_FOLDED, readText,
  textLength, textStart,
} from './tape'

/** State of a streamed answer. */
@unmanaged
export class Stream {
  queue: Queue
  known: Known
  runs: Run
  runCount: i32
}

/** Runs at once, at most. */
const RUN_LIMIT: i32 = 1024

let stream: Stream = changetype<Stream>(0)
let current: Waiting = changetype<Waiting>(0)

export function newStream(): Stream {
  const made = changetype<Stream>(newRecord(offsetof<Stream>()))
  made.queue = newQueue()
  made.known = newKnown()
  return made
}

/** A count that names a choice, block or item; 0 if it is absent. */
function indexOf(object: i32, name: i32): i32 {
  const found = member(object, name)
  if (!isKind(found, KIND_NUMBER)) return 0
  const value = countOf(found)
  if (value < 0 || value > 0x7fffffff) setFailure(TEXTS_MALFORMED)
  return <i32>value
}

function runOf(first: i32, second: i32): Run {
  for (let run = stream.runs; !isNone(run); run = run.next) {
    if (run.first == first && run.second == second) return run
  }
  if (++stream.runCount > RUN_LIMIT) setFailure(TEXTS_TOO_MANY)
  const run = newRun(first, second, rw.format != TEXTS_COMPLETIONS, rw.format == TEXTS_RESPONSES)
  run.next = stream.runs
  stream.runs = run
  return run
}

const pieceText: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))

/** Takes the text of a string as the next piece of a part. `field` is 0 unless the format is Completions. */
function takePiece(index: i32, first: i32, second: i32, field: i32 = 0): void {
  if (failure != 0) return
  readText(index)
  countText(textLength)
  if (!isGuarded()) return
  clear(pieceText)
  append(pieceText, textStart, textLength)
  const run = field == 0 ? runOf(0, 0) : runOf(first, field)
  const part = openPart(run, first, second)
  maskPiece(run, part, pieceText.data, pieceText.used)
  addEdit(index, EDIT_PART, <u32>changetype<usize>(part))
}

function countText(length: i32): void {
  rw.textBytes += <f64>length
  rw.uncounted += <f64>length
}

function maskPiece(run: Run, part: Part, from: usize, length: i32): void {
  pushPiece(run, part, from, length)
  if (heldByRun(run) > rw.heldLimit) setFailure(TEXTS_UNDECIDED)
}

/** Processes an event that differs from an earlier one only in its text; false if it must be read. */
export function takeKnown(name: Bytes, data: Bytes): bool {
  stream = changetype<Stream>(rw.stream)
  const queue = stream.queue
  const known = stream.known
  if (!isNone(queue.first) || queue.added > 0 || queue.removed.used > 0 || !isKnown(known, name, data)) return false
  const run = known.field == 0 ? runOf(0, 0) : runOf(known.first, known.field)
  const part = openPart(run, known.first, known.second)
  if (isNone(part.template)) return false
  countText(knownLength)
  maskPiece(run, part, knownText, knownLength)
  if (failure == 0) writeKnown(name, data, part)
  return true
}

/** Ends the texts of a choice (-1: all texts). */
function complete(first: i32): void {
  let before = changetype<Run>(0)
  for (let run = stream.runs; !isNone(run) && failure == 0; ) {
    const next = run.next
    if (first < 0 || run.first == first) {
      completeRun(run, current.completed)
      freeRun(run)
      stream.runCount--
      if (isNone(before)) stream.runs = next
      else before.next = next
    } else before = run
    run = next
  }
}

/** Processes the event on the tape; `name` is the name of the event. */
export function takeEvent(name: usize, nameLength: i32, root: i32): void {
  stream = changetype<Stream>(rw.stream)
  clear(rw.side)
  beginEdits(rw.found)
  current = newWaiting(stream.queue)
  append(current.event.name, name, nameLength)
  if (isGuarded()) maskRepeated(root)
  if (rw.format == TEXTS_COMPLETIONS) readCompletions(root)
  else if (rw.format == TEXTS_MESSAGES) readMessages(root)
  else if (rw.format == TEXTS_RESPONSES) readResponses(root)
  if (failure == 0 && isGuarded()) {
    numberEvent(root)
    sortEdits(current.event.edits)
    append(current.event.data, documentStart(), documentLength())
    append(current.event.side, rw.side.data, rw.side.used)
    keepTemplates(root)
    if (!isNone(current.begins)) beginEmpty()
    else if (current.ends.used == 0 && current.completed.used == 0) learn(stream.known, current.event, root, rw.format == TEXTS_COMPLETIONS)
    enqueue(stream.queue, current)
    release(stream.queue)
  } else if (failure == 0) giveBack(current)
  else enqueue(stream.queue, current)
}

function giveBack(waiting: Waiting): void {
  waiting.next = stream.queue.spare
  stream.queue.spare = waiting
}

/** Processes an event that is not JSON: `[DONE]` or without content. */
export function takePlainEvent(name: usize, nameLength: i32, data: usize, length: i32): void {
  stream = changetype<Stream>(rw.stream)
  current = newWaiting(stream.queue)
  current.isPlain = true
  append(current.event.name, name, nameLength)
  append(current.event.data, data, length)
  complete(-1)
  enqueue(stream.queue, current)
  release(stream.queue)
}

/** The stream ends: gives out everything that is held. */
export function finishStream(): void {
  stream = changetype<Stream>(rw.stream)
  current = newWaiting(stream.queue)
  complete(-1)
  release(stream.queue)
  for (let i = 0; i < current.completed.used && failure == 0; i += 4) {
    const part = changetype<Part>(<usize>load<u32>(current.completed.data + i))
    writeRest(stream.queue, part, stream.queue.added)
    store<u32>(push(stream.queue.done, 4), <u32>changetype<usize>(part))
  }
  giveBack(current)
}

export function freeStream(): void {
  const made = changetype<Stream>(rw.stream)
  if (isNone(made)) return
  for (let run = made.runs; !isNone(run); ) {
    const next = run.next
    freeRunWithParts(run)
    run = next
  }
  freeQueue(made.queue)
  freeKnown(made.known)
  freeRecord(changetype<usize>(made))
  rw.stream = 0
}

/** Frees a run that did not complete, with the parts that no event ends. */
function freeRunWithParts(run: Run): void {
  for (let part = run.incoming; !isNone(part); ) {
    const next = part.next
    if (!part.isEnded) freePart(part)
    part = next
  }
  freeRun(run)
}

function numberEvent(root: i32): void {
  const found = member(root, SEQUENCE_NUMBER)
  const number = countOf(found)
  if (number < 0) return
  current.number = number
  addEdit(found, EDIT_NUMBER)
}

// --- completions -------------------------------------------------------------------------------

function readCompletions(root: i32): void {
  const choices = memberOf(root, CHOICES, KIND_ARRAY)
  for (let choice = choices == 0 ? 0 : node(choices).child; choice != 0 && failure == 0; choice = node(choice).next) {
    if (!isKind(choice, KIND_OBJECT)) continue
    needOnce(choice)
    const index = indexOf(choice, INDEX)
    const text = nonEmpty(choice, TEXT)
    if (text != 0) takePiece(text, index, TEXT, TEXT)
    const delta = memberOf(choice, DELTA, KIND_OBJECT)
    if (delta != 0) readDelta(delta, index)
  }
  const error = member(root, ERROR)
  if (error != 0 && !isKind(error, KIND_NULL)) return complete(-1)
  for (let choice = choices == 0 ? 0 : node(choices).child; choice != 0 && failure == 0; choice = node(choice).next) {
    const reason = member(choice, FINISH_REASON)
    if (reason != 0 && !isKind(reason, KIND_NULL)) complete(indexOf(choice, INDEX))
  }
}

/** Refuses an object in which a name with a meaning occurs twice. */
function needOnce(object: i32): void {
  if (!isGuarded()) return
  let seen: u64 = 0
  for (let i = node(object).child; i != 0; i = node(i).next) {
    const name = <u64>node(i).name
    if (name == 0 || node(i).flags & NODE_FOLDED) continue
    if ((seen >> name) & 1) return setFailure(TEXTS_HIDDEN)
    seen |= (<u64>1) << name
  }
}

/** The string if it is not empty, or 0. */
function nonEmpty(object: i32, name: i32): i32 {
  const found = memberOf(object, name, KIND_STRING)
  return found != 0 && node(found).end - node(found).start > 2 ? found : 0
}

function readDelta(delta: i32, index: i32): void {
  needOnce(delta)
  const content = nonEmpty(delta, CONTENT)
  if (content != 0) takePiece(content, index, CONTENT, CONTENT)
  const refusal = nonEmpty(delta, REFUSAL)
  if (refusal != 0) takePiece(refusal, index, REFUSAL, REFUSAL)
  const transcript = nonEmpty(memberOf(delta, AUDIO, KIND_OBJECT), TRANSCRIPT)
  if (transcript != 0) takePiece(transcript, index, TRANSCRIPT, TRANSCRIPT)
  const parts = memberOf(delta, CONTENT, KIND_ARRAY)
  for (let part = parts == 0 ? 0 : node(parts).child; part != 0; part = node(part).next) {
    const text = textOf(part)
    if (text != 0 && node(text).end - node(text).start > 2) takePiece(text, index, CONTENT, CONTENT)
  }
}

// --- messages ----------------------------------------------------------------------------------

function readMessages(root: i32): void {
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

function isType(text: string): bool {
  return isAscii(textStart, textLength, text)
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

/** A block begins empty; its text follows in deltas. */
function beginEmpty(): void {
  const edits = current.event.edits
  for (let i = 0; i < edits.used; i += EDIT_BYTES) {
    if (load<i32>(edits.data + i, E_KIND) != EDIT_PART) continue
    store<i32>(edits.data + i, EDIT_TEXT, E_KIND)
    store<i32>(edits.data + i, 0, E_VALUE)
    store<i32>(edits.data + i, 0, E_LENGTH)
  }
}

/** Ends the parts of the answer with that name; -1 for any. */
function end(first: i32, second: i32): void {
  if (isNone(stream.runs) || failure != 0) return
  endParts(stream.runs, first, second, current.ends)
}

// --- responses ---------------------------------------------------------------------------------

function readResponses(root: i32): void {
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

// --- events that continue a part -----------------------------------------------------------------

/** Keeps for each part with a piece in this event how an event looks that continues it. */
function keepTemplates(root: i32): void {
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
    else if (rw.format == TEXTS_MESSAGES) writeDelta(part)
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
    if (node(i).name == CHOICES || node(i).name == USAGE) continue
    append(data, start + node(i).key, node(i).end - node(i).key)
    appendAscii(data, ',')
  }
  appendAscii(data, '"choices":[{"index":')
  appendNumber(data, part.first)
  if (part.second == TEXT) appendAscii(data, ',"text":')
  else if (part.second == TRANSCRIPT) appendAscii(data, ',"delta":{"audio":{"transcript":')
  else appendAscii(data, part.second == REFUSAL ? ',"delta":{"refusal":' : ',"delta":{"content":')
  putPlace(part)
  if (part.second == TRANSCRIPT) appendAscii(data, '}}')
  else if (part.second != TEXT) appendAscii(data, '}')
  appendAscii(data, ',"logprobs":null,"finish_reason":null}]}')
}
