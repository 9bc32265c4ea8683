// Events of a streamed answer that are held until the text of the parts that they end is known.
import { TEXTS_RESPONSES, TEXTS_UNDECIDED } from './abi'
import { append, appendAscii, Bytes, clear, failure, freeBytes, freeRecord, newBytes, newRecord, push, setFailure, shift } from './bytes'
import {
  E_END, E_KIND, E_LENGTH, E_START, E_VALUE, EDIT_BYTES, EDIT_INDEX, EDIT_PART, EDIT_REPEAT, EDIT_TEXT, writeDocument,
} from './edits'
import { maskText } from './group'
import { countMatches } from './matches'
import { Event, freeEvent, freePart, isNone, newEvent, Part, Run } from './runs'
import { rw } from './state'
import { appendUnescaped, endText, joinText } from './strings'

@unmanaged
export class Waiting {
  next: Waiting
  /** Number of the event in the stream, from 1. */
  serial: i64
  event: Event
  /** The event is not JSON: it is written as it is. */
  isPlain: bool
  /** The sequence number, or -1. */
  number: i64
  /** The content block that the event belongs to, or -1; and its part if the block begins with this event, or 0. */
  block: i32
  begins: Part
  /** Addresses of the parts that the event ends, and of those that complete with it. */
  ends: Bytes
  completed: Bytes
  /** Addresses of the parts that the event stops if no text follows, and of their runs that are undecided. */
  stops: Bytes
  undecided: Bytes
  /** Indexes of the choices that it has. */
  choices: Bytes
  /** It stops all texts. */
  stopsAll: bool
  /** Pieces of text in the stream up to this event. */
  piece: i64
}

@unmanaged
export class Queue {
  first: Waiting
  last: Waiting
  /** Waiting events that can be used again. */
  spare: Waiting
  /** Bytes of the documents in the queue. */
  size: i32
  /** Events that were added to the stream. */
  added: i64
  /** Events and pieces of text so far. */
  events: i64
  pieces: i64
  /** The event that ends the stream has come. */
  isOver: bool
  /** Done parts, to be freed when no event waits; and parts whose texts later events may repeat. */
  done: Bytes
  remembered: Bytes
  rememberedSize: i32
  /** Indexes of choices with events in the queue. */
  choices: Bytes
  /** Indexes of content blocks that were removed because their text became empty, in ascending order. */
  removed: Bytes
}

export function newQueue(): Queue {
  const queue = changetype<Queue>(newRecord(offsetof<Queue>()))
  queue.done = newBytes()
  queue.remembered = newBytes()
  queue.removed = newBytes()
  queue.choices = newBytes()
  return queue
}

export function newWaiting(queue: Queue): Waiting {
  let waiting = queue.spare
  if (isNone(waiting)) {
    waiting = changetype<Waiting>(newRecord(offsetof<Waiting>()))
    waiting.event = newEvent()
    waiting.ends = newBytes()
    waiting.completed = newBytes()
    waiting.stops = newBytes()
    waiting.undecided = newBytes()
    waiting.choices = newBytes()
  } else queue.spare = waiting.next
  waiting.next = changetype<Waiting>(0)
  waiting.isPlain = false
  waiting.number = -1
  waiting.block = -1
  waiting.begins = changetype<Part>(0)
  clear(waiting.event.name)
  clear(waiting.event.data)
  clear(waiting.event.edits)
  clear(waiting.event.side)
  clear(waiting.ends)
  clear(waiting.completed)
  clear(waiting.stops)
  clear(waiting.undecided)
  clear(waiting.choices)
  waiting.serial = ++queue.events
  waiting.stopsAll = false
  return waiting
}

function freeWaiting(list: Waiting): void {
  for (let one = list; !isNone(one); ) {
    const next = one.next
    freeEvent(one.event)
    freeBytes(one.ends)
    freeBytes(one.completed)
    freeBytes(one.stops)
    freeBytes(one.undecided)
    freeBytes(one.choices)
    freeRecord(changetype<usize>(one))
    one = next
  }
}

function freeParts(list: Bytes): void {
  for (let i = list.head; i < list.used; i += 4) freePart(partAt(list, i))
  clear(list)
}

export function freeQueue(queue: Queue): void {
  for (let one = queue.first; !isNone(one); one = one.next) {
    freeParts(one.ends)
    freeParts(one.completed)
  }
  freeWaiting(queue.first)
  freeWaiting(queue.spare)
  freeParts(queue.done)
  freeParts(queue.remembered)
  freeBytes(queue.done)
  freeBytes(queue.remembered)
  freeBytes(queue.removed)
  freeBytes(queue.choices)
  freeRecord(changetype<usize>(queue))
}

function partAt(list: Bytes, offset: i32): Part {
  return changetype<Part>(<usize>load<u32>(list.data + offset))
}

export function enqueue(queue: Queue, waiting: Waiting): void {
  const choices = waiting.choices
  if (!isNone(queue.first) && overtakes(queue, waiting)) {
    write(queue, waiting)
    return giveBack(queue, waiting)
  }
  for (let i = 0; i < choices.used; i += 4) addChoice(queue.choices, load<i32>(choices.data + i))
  if (isNone(queue.first)) queue.first = waiting
  else queue.last.next = waiting
  queue.last = waiting
  queue.size += waiting.event.data.used
}

/** Writes the events before the first undecided one. */
export function release(queue: Queue): void {
  while (failure == 0 && !isNone(queue.first) && isDecided(queue, queue.first)) {
    const waiting = queue.first
    queue.first = waiting.next
    queue.size -= waiting.event.data.used
    write(queue, waiting)
    giveBack(queue, waiting)
  }
  if (queue.size > rw.heldLimit) setFailure(TEXTS_UNDECIDED)
  if (!isNone(queue.first)) return
  freeParts(queue.done)
  clear(queue.choices)
}

export function giveBack(queue: Queue, waiting: Waiting): void {
  waiting.next = queue.spare
  queue.spare = waiting
}

// --- choices ---------------------------------------------------------------------------------------

/** Maximum number of choices whose events may overtake each other. Events with more choices keep their order. */
const CHOICE_LIMIT: i32 = 64

/** Adds the index of a choice. */
export function addChoice(list: Bytes, index: i32): void {
  if (list.used <= CHOICE_LIMIT * 4 && !hasChoice(list, index)) store<i32>(push(list, 4), index)
}

function hasChoice(list: Bytes, index: i32): bool {
  for (let i = 0; i < list.used; i += 4) if (load<i32>(list.data + i) == index) return true
  return false
}

/** May the event come before those that wait, because its choices have none there? */
function overtakes(queue: Queue, waiting: Waiting): bool {
  const choices = waiting.choices
  if (choices.used == 0 || waiting.undecided.used > 0 || max(choices.used, queue.choices.used) > CHOICE_LIMIT * 4) return false
  for (let i = 0; i < choices.used; i += 4) if (hasChoice(queue.choices, load<i32>(choices.data + i))) return false
  return true
}

/** Is the text known of the parts that the event ends or stops, and whether the block that it begins has a text? */
function isDecided(queue: Queue, waiting: Waiting): bool {
  const begins = waiting.begins
  if (!isNone(begins) && begins.ready.used == 0 && !begins.isDone) return false
  return areDone(waiting.ends) && (waiting.undecided.used == 0 || queue.isOver || goesOn(queue, waiting))
}

/** Has a text gone on that the event has stopped? Runs are freed when the stream is over. */
function goesOn(queue: Queue, waiting: Waiting): bool {
  if (waiting.stopsAll) return queue.pieces > waiting.piece
  const runs = waiting.undecided
  for (let i = 0; i < runs.used; i += 4) {
    if (changetype<Run>(<usize>load<u32>(runs.data + i)).lastPiece > waiting.piece) return true
  }
  return false
}

function areDone(parts: Bytes): bool {
  for (let i = 0; i < parts.used; i += 4) if (!partAt(parts, i).isDone) return false
  return true
}

function write(queue: Queue, waiting: Waiting): void {
  writeRests(queue, waiting, waiting.ends)
  writeRests(queue, waiting, waiting.completed)
  writeRests(queue, waiting, waiting.stops)
  keepDone(queue, waiting.ends)
  keepDone(queue, waiting.completed)
  const event = waiting.event
  const begins = waiting.begins
  if (!isNone(begins) && begins.isDone && begins.hasText && !begins.hasMaskedText) removeBlock(queue, waiting.block)
  if (waiting.block >= 0 && isRemoved(queue, waiting.block)) return
  if (waiting.isPlain) {
    beginLines(event.name)
    append(rw.out, event.data.data, event.data.used)
    appendAscii(rw.out, '\n\n')
    return
  }
  resolveRepeats(queue, event)
  const number = waiting.number < 0 ? 0 : waiting.number + queue.added
  rw.nextNumber = number + 1
  writeEvent(queue, event, number)
}

/** Writes the text that is left of the parts, unless the event itself has a place for it. */
function writeRests(queue: Queue, waiting: Waiting, parts: Bytes): void {
  for (let i = 0; i < parts.used; i += 4) {
    const part = partAt(parts, i)
    if (hasPlace(waiting.event.edits, part)) continue
    if (writeRest(queue, part, waiting.number < 0 ? 0 : waiting.number + queue.added) && waiting.number >= 0) queue.added++
  }
}

function hasPlace(edits: Bytes, part: Part): bool {
  for (let i = 0; i < edits.used; i += EDIT_BYTES) {
    const edit = edits.data + i
    if (load<i32>(edit, E_KIND) == EDIT_PART && load<u32>(edit, E_VALUE) == <u32>changetype<usize>(part)) return true
  }
  return false
}

/** Writes an event with the text that a part has ready; false if there is none. */
export function writeRest(queue: Queue, part: Part, number: i64): bool {
  if (part.ready.used == 0 || isNone(part.template)) return false
  writeEvent(queue, part.template, number)
  return true
}

export function beginLines(name: Bytes): void {
  if (name.used > 0) {
    appendAscii(rw.out, 'event: ')
    append(rw.out, name.data, name.used)
    appendAscii(rw.out, '\n')
  }
  appendAscii(rw.out, 'data: ')
}

function writeEvent(queue: Queue, event: Event, number: i64): void {
  beginLines(event.name)
  if (queue.removed.used > 0) moveIndexes(queue, event.edits)
  writeDocument(rw.out, event.data.data, event.data.used, event.edits, event.side, number)
  appendAscii(rw.out, '\n\n')
}

// --- removed blocks ------------------------------------------------------------------------------

/** Number of removed blocks before this one. */
function removedBefore(queue: Queue, block: i32): i32 {
  let count = 0
  while (count < queue.removed.used / 4 && load<i32>(queue.removed.data + <usize>(count << 2)) < block) count++
  return count
}

function isRemoved(queue: Queue, block: i32): bool {
  const at = removedBefore(queue, block) << 2
  return at < queue.removed.used && load<i32>(queue.removed.data + at) == block
}

function removeBlock(queue: Queue, block: i32): void {
  if (isRemoved(queue, block)) return
  const at = removedBefore(queue, block) << 2
  push(queue.removed, 4)
  const place = queue.removed.data + at
  memory.copy(place + 4, place, queue.removed.used - 4 - at)
  store<i32>(place, block)
}

/** Gives blocks the indexes that they have for the client. */
function moveIndexes(queue: Queue, edits: Bytes): void {
  for (let i = 0; i < edits.used; i += EDIT_BYTES) {
    const edit = edits.data + i
    if (load<i32>(edit, E_KIND) != EDIT_INDEX) continue
    const block = load<i32>(edit, E_LENGTH)
    store<i32>(edit, block - removedBefore(queue, block), E_VALUE)
  }
}

/** Keeps parts that left the masks: to be freed, or because later events repeat their text. */
function keepDone(queue: Queue, parts: Bytes): void {
  for (let i = 0; i < parts.used; i += 4) {
    const part = partAt(parts, i)
    const isKept = rw.format == TEXTS_RESPONSES && !part.isAside
    store<u32>(push(isKept ? queue.remembered : queue.done, 4), <u32>changetype<usize>(part))
    if (isKept) queue.rememberedSize += part.original.used + part.masked.used + 64
  }
  const limit = rw.heldLimit < 1 << 29 ? rw.heldLimit * 2 : rw.heldLimit
  const list = queue.remembered
  while (queue.rememberedSize > limit && list.used - list.head > 4) {
    const oldest = partAt(list, list.head)
    queue.rememberedSize -= oldest.original.used + oldest.masked.used + 64
    store<u32>(push(queue.done, 4), <u32>changetype<usize>(oldest))
    shift(list, 4)
  }
}

// --- repeated texts ------------------------------------------------------------------------------

const source: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))
const raw: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))

/** Replaces texts that were streamed by their masked form, and masks others. */
function resolveRepeats(queue: Queue, event: Event): void {
  const edits = event.edits
  for (let i = 0; i < edits.used; i += EDIT_BYTES) {
    const edit = edits.data + i
    if (load<i32>(edit, E_KIND) != EDIT_REPEAT) continue
    readOriginal(event, edit)
    const start = event.side.used
    const known = sameText(queue, source)
    if (!isNone(known)) append(event.side, known.masked.data, known.masked.used)
    else {
      const before = rw.side.used
      countMatches(false)
      maskText(source.data, source.used)
      countMatches(true)
      append(event.side, rw.side.data + before, rw.side.used - before)
      rw.side.used = before
    }
    store<i32>(edit, EDIT_TEXT, E_KIND)
    store<i32>(edit, start, E_VALUE)
    store<i32>(edit, event.side.used - start, E_LENGTH)
  }
}

function readOriginal(event: Event, edit: usize): void {
  clear(raw)
  clear(source)
  const from = event.data.data + load<i32>(edit, E_START) + 1
  appendUnescaped(raw, from, event.data.data + load<i32>(edit, E_END) - 1)
  endText(source, joinText(source, 0, raw.data, raw.used))
}

/** Parts that are compared with a repeated text at most; usually the last one is it. */
const COMPARED: i32 = 256

/** The last part with that text, or 0. */
function sameText(queue: Queue, text: Bytes): Part {
  const list = queue.remembered
  const least = max(list.head, list.used - COMPARED * 4)
  for (let i = list.used - 4; i >= least; i -= 4) {
    const part = partAt(list, i)
    if (part.original.used != text.used) continue
    if (memory.compare(part.original.data, text.data, text.used) == 0) return part
  }
  return changetype<Part>(0)
}

/** Was a part of that output item streamed and does it count as ended? */
export function remembersItem(queue: Queue, item: i32): bool {
  const list = queue.remembered
  const least = max(list.head, list.used - COMPARED * 4)
  for (let i = list.used - 4; i >= least; i -= 4) if (partAt(list, i).first == item) return true
  return false
}
