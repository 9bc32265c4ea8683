// Texts of a streamed answer: a *run* is a text that guards read as one (a message, or a field of a choice);
// a *part* is a content block or content part of it.
//
// Parts of a run stand in a list in the order in which they began. Text enters the masks part by part: `incoming`
// is the part whose text enters now, `outgoing` the part whose text leaves now. Text of later parts waits.
import { TEXTS_TOO_MANY } from './abi'
import { append, Bytes, clear, freeBytes, freeRecord, newBytes, newRecord, push, setFailure } from './bytes'
import { guardCount } from './chain'
import { Masked, newMasked } from './masked'
import { endMasker, endPart, freeMasker, heldBytes, Masker, newMasker, pushMasker } from './masker'
import { rw } from './state'
import { endText, joinText } from './strings'


/** Parts of a run that are not done, at most: they are searched for each piece of text. */
const PART_LIMIT: i32 = 512

/** A document with its edits, and the name of its event. */
@unmanaged
export class Event {
  name: Bytes
  data: Bytes
  edits: Bytes
  side: Bytes
}

@unmanaged
export class Part {
  /** Masked text for the next event. The first field: see ReadyText. */
  ready: Bytes
  next: Part
  first: i32
  second: i32
  isEnded: bool
  isDone: bool
  /** It is no text of the message: see asides.ts. */
  isAside: bool
  /** The provider sent text; the masks have given out some. */
  hasText: bool
  hasMaskedText: bool
  /** Half of a surrogate pair at the end of `waiting`. */
  half: u32
  waiting: Bytes
  /** The whole text and its masked form; only in the Responses format, whose events repeat texts. */
  original: Bytes
  masked: Bytes
  /** An event that continues the part, or 0. */
  template: Event
}

@unmanaged
export class Run {
  next: Run
  first: i32
  second: i32
  chain: Masker
  sink: Masked
  last: Part
  incoming: Part
  outgoing: Part
  /** Half of a surrogate pair at the end of the text that has entered the masks. */
  half: u32
  /** Bytes that wait for the end of an earlier part. */
  waiting: i32
  hasParts: bool
  keepsTexts: bool
  /** It is no text of the message, but belongs to this content of the item. */
  isAside: bool
  content: i32
  /** Parts that are not done. */
  undone: i32
  /** Numbers of its last piece of text in the stream, and of the last event that stopped it. */
  lastPiece: i64
  stoppedBy: i64
}

export function newEvent(): Event {
  const event = changetype<Event>(newRecord(offsetof<Event>()))
  event.name = newBytes()
  event.data = newBytes()
  event.edits = newBytes()
  event.side = newBytes()
  return event
}

export function freeEvent(event: Event): void {
  if (changetype<usize>(event) == 0) return
  freeBytes(event.name)
  freeBytes(event.data)
  freeBytes(event.edits)
  freeBytes(event.side)
  freeRecord(changetype<usize>(event))
}

export function freePart(part: Part): void {
  freeBytes(part.ready)
  freeBytes(part.waiting)
  freeBytes(part.original)
  freeBytes(part.masked)
  freeEvent(part.template)
  freeRecord(changetype<usize>(part))
}

/** Frees a run whose parts were taken. */
export function freeRun(run: Run): void {
  for (let one = run.chain; changetype<usize>(one) != 0; ) {
    const next = one.next
    freeMasker(one)
    one = next
  }
  freeBytes(run.sink.text)
  freeBytes(run.sink.ends)
  freeRecord(changetype<usize>(run.sink))
  freeRecord(changetype<usize>(run))
}

export function newRun(first: i32, second: i32, hasParts: bool, keepsTexts: bool): Run {
  const run = changetype<Run>(newRecord(offsetof<Run>()))
  run.first = first
  run.second = second
  run.hasParts = hasParts
  run.keepsTexts = keepsTexts
  run.sink = newMasked()
  let chain = changetype<Masker>(0)
  for (let guard = guardCount(rw.guards) - 1; guard >= 0; guard--) {
    const masker = newMasker(guard, hasParts)
    masker.next = chain
    chain = masker
  }
  run.chain = chain
  return run
}

// @ts-ignore: decorator
@inline
export function isNone<T>(record: T): bool {
  return changetype<usize>(record) == 0
}

/** Bytes that are undecided or wait. */
export function heldByRun(run: Run): i32 {
  let most = 0
  for (let one = run.chain; !isNone(one); one = one.next) most = max(most, heldBytes(one))
  return most + run.waiting
}

/** May later text change what comes out for the text so far? */
export function hasUndecided(run: Run): bool {
  return run.half != 0 || heldByRun(run) > 0
}

/** Adds the parts that may have text to come out. */
export function addParts(run: Run, list: Bytes): void {
  for (let part = run.outgoing; !isNone(part); part = part.next) store<u32>(push(list, 4), <u32>changetype<usize>(part))
}

/** The open part with that name, which may begin now. */
export function openPart(run: Run, first: i32, second: i32): Part {
  for (let part = run.incoming; !isNone(part); part = part.next) {
    if (!part.isEnded && part.first == first && part.second == second) return part
  }
  if (++run.undone > PART_LIMIT) setFailure(TEXTS_TOO_MANY)
  const part = changetype<Part>(newRecord(offsetof<Part>()))
  part.first = first
  part.second = second
  part.ready = newBytes()
  part.waiting = newBytes()
  part.original = newBytes()
  part.masked = newBytes()
  // The last part may be freed already if it is done.
  if (!isNone(run.outgoing)) run.last.next = part
  run.last = part
  if (isNone(run.incoming)) run.incoming = part
  if (isNone(run.outgoing)) run.outgoing = part
  return part
}

const joined: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))

/** Takes a piece of a part's text. */
export function pushPiece(run: Run, part: Part, from: usize, length: i32): void {
  if (length > 0) part.hasText = true
  clear(joined)
  if (part == run.incoming) {
    run.half = joinText(joined, run.half, from, length)
    if (run.keepsTexts) append(part.original, joined.data, joined.used)
    pushMasker(run.chain, joined.data, joined.used, run.sink)
    deliver(run)
    return
  }
  part.half = joinText(joined, part.half, from, length)
  if (run.keepsTexts) append(part.original, joined.data, joined.used)
  append(part.waiting, joined.data, joined.used)
  run.waiting += joined.used
}

/** Ends the parts of the run whose name begins so (-1 for any), and notes them in `ended`. */
export function endParts(run: Run, first: i32, second: i32, ended: Bytes): void {
  for (let part = run.incoming; !isNone(part); part = part.next) {
    if (part.isEnded || (first >= 0 && part.first != first) || (second >= 0 && part.second != second)) continue
    part.isEnded = true
    store<u32>(push(ended, 4), <u32>changetype<usize>(part))
  }
  feed(run)
}

/** After each part that has ended, passes the waiting text of the next part to the masks. */
function feed(run: Run): void {
  while (!isNone(run.incoming) && run.incoming.isEnded) {
    const before = run.incoming
    flushHalf(run, before)
    endPart(run.chain, run.sink)
    deliver(run)
    const part = before.next
    run.incoming = part
    if (isNone(part)) return
    run.half = part.half
    run.waiting -= part.waiting.used
    pushMasker(run.chain, part.waiting.data, part.waiting.used, run.sink)
    clear(part.waiting)
    deliver(run)
  }
}

/** The other half of a pair cannot come any more. */
function flushHalf(run: Run, part: Part): void {
  if (run.half == 0) return
  clear(joined)
  endText(joined, run.half)
  run.half = 0
  if (run.keepsTexts) append(part.original, joined.data, joined.used)
  pushMasker(run.chain, joined.data, joined.used, run.sink)
}

/** Ends the text, and notes the parts that had not ended. */
export function completeRun(run: Run, ended: Bytes): void {
  endParts(run, -1, -1, ended)
  endMasker(run.chain, run.sink)
  deliver(run)
  for (let part = run.outgoing; !isNone(part); part = part.next) part.isDone = true
}

/** Gives the text that has left the masks to the parts that it belongs to. */
function deliver(run: Run): void {
  const text = run.sink.text
  const ends = run.sink.ends
  let from = 0
  for (let i = 0; i < ends.used; i += 4) {
    const stop = load<i32>(ends.data + i)
    give(run, text.data + from, stop - from)
    from = stop
    const part = run.outgoing
    if (isNone(part)) continue
    part.isDone = true
    run.undone--
    run.outgoing = part.next
  }
  give(run, text.data + from, text.used - from)
  clear(text)
  clear(ends)
}

function give(run: Run, from: usize, length: i32): void {
  const part = run.outgoing
  if (isNone(part) || length == 0) return
  append(part.ready, from, length)
  part.hasMaskedText = true
  if (run.keepsTexts) append(part.masked, from, length)
}
