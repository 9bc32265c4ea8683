// Processes the events of a streamed answer, in the client's format.
import { TEXTS_COMPLETIONS, TEXTS_MESSAGES, TEXTS_RESPONSES } from './abi'
import { append, Bytes, clear, failure, isAscii, push } from './bytes'
import { addEdit, beginEdits, E_KIND, E_LENGTH, E_VALUE, EDIT_BYTES, EDIT_NUMBER, EDIT_PART, EDIT_TEXT, sortEdits } from './edits'
import { maskError, needEvent } from './forms'
import { isKnown, knownLength, knownText, learn, writeKnown } from './known'
import { SEQUENCE_NUMBER, TYPE } from './names'
import { enqueue, giveBack, newWaiting, release, writeRest } from './queue'
import { maskRepeated } from './repeated'
import { isNone, openPart, Part } from './runs'
import { isGuarded, rw } from './state'
import { countText, current, finish, maskPiece, runOf, selectStream, setCurrent, stop, stream } from './stream'
import { readCompletions } from './stream-completions'
import { readMessages } from './stream-messages'
import { readResponses } from './stream-responses'
import { countOf, documentLength, documentStart, KIND_STRING, member, memberOf, readText, textLength, textStart } from './tape'
import { keepTemplates } from './templates'

/** Processes an event that differs from an earlier one only in its text; false if it must be read. */
export function takeKnown(name: Bytes, data: Bytes): bool {
  selectStream()
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

/** Processes the event on the tape; `name` is the name of the event. */
export function takeEvent(name: usize, nameLength: i32, root: i32): void {
  selectStream()
  clear(rw.side)
  beginEdits(rw.found)
  setCurrent(newWaiting(stream.queue))
  if (!isGuarded() || isPlainName(name, nameLength, root)) append(current.event.name, name, nameLength)
  if (!isGuarded() || needEvent(root)) readEvent(root)
  else stop(-1)
  if (failure == 0 && isGuarded()) {
    numberEvent(root)
    sortEdits(current.event.edits)
    append(current.event.data, documentStart(), documentLength())
    append(current.event.side, rw.side.data, rw.side.used)
    keepTemplates(root)
    if (!isNone(current.begins)) beginEmpty()
    else if (current.ends.used == 0 && current.completed.used == 0 && current.stops.used == 0) learn(stream.known, current.event, root, rw.format == TEXTS_COMPLETIONS)
    enqueue(stream.queue, current)
    release(stream.queue)
  } else if (failure == 0) giveBack(stream.queue, current)
  else enqueue(stream.queue, current)
}

/** Is the name of the event its type, or one that is known? Any other could be a text. */
function isPlainName(name: usize, length: i32, root: i32): bool {
  const type = memberOf(root, TYPE, KIND_STRING)
  if (type != 0) {
    readText(type)
    if (textLength == length && memory.compare(textStart, name, length) == 0) return true
  }
  return isAscii(name, length, 'message') || isAscii(name, length, 'error') || isAscii(name, length, 'ping') || isAscii(name, length, 'done')
}

function readEvent(root: i32): void {
  if (isGuarded()) {
    maskRepeated(root)
    maskError(root)
  }
  if (rw.format == TEXTS_COMPLETIONS) readCompletions(root)
  else if (rw.format == TEXTS_MESSAGES) readMessages(root)
  else if (rw.format == TEXTS_RESPONSES) readResponses(root)
}

/** Processes an event that is not JSON: `[DONE]` or without content. */
export function takePlainEvent(name: usize, nameLength: i32, data: usize, length: i32): void {
  selectStream()
  setCurrent(newWaiting(stream.queue))
  current.isPlain = true
  if (!isGuarded()) append(current.event.name, name, nameLength)
  append(current.event.data, data, length)
  if (length > 0) finish()
  enqueue(stream.queue, current)
  release(stream.queue)
}

/** The stream ends: gives out everything that is held. */
export function finishStream(): void {
  selectStream()
  setCurrent(newWaiting(stream.queue))
  finish()
  release(stream.queue)
  for (let i = 0; i < current.completed.used && failure == 0; i += 4) {
    const part = changetype<Part>(<usize>load<u32>(current.completed.data + i))
    writeRest(stream.queue, part, stream.queue.added)
    store<u32>(push(stream.queue.done, 4), <u32>changetype<usize>(part))
  }
  giveBack(stream.queue, current)
}

function numberEvent(root: i32): void {
  const found = member(root, SEQUENCE_NUMBER)
  const number = countOf(found)
  if (number < 0) return
  current.number = number
  addEdit(found, EDIT_NUMBER)
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
