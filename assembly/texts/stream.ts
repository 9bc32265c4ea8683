// A streamed answer: its runs of text, and the event that is being read.
import { TEXTS_COMPLETIONS, TEXTS_MALFORMED, TEXTS_MESSAGES, TEXTS_OVER, TEXTS_RESPONSES, TEXTS_TOO_MANY, TEXTS_UNDECIDED } from './abi'
import { append, Bytes, clear, failure, freeBytes, freeRecord, isAscii, newBytes, newRecord, push, setFailure } from './bytes'
import { checkNames } from './content'
import { addEdit, EDIT_PART } from './edits'
import { freeKnown, Known, newKnown } from './known'
import { freeQueue, newQueue, Queue, Waiting } from './queue'
import {
  addParts, completeRun, endParts, freePart, freeRun, hasUndecided, heldByRun, isNone, newRun, openPart, Part, pushPiece, Run,
} from './runs'
import { isGuarded, rw } from './state'
import {
  countOf, isKind, KIND_NUMBER, KIND_STRING, member, memberOf, node, NODE_FOLDED, readName, readText, textLength, textStart,
} from './tape'

/** State of a streamed answer. */
@unmanaged
export class Stream {
  queue: Queue
  known: Known
  runs: Run
  runCount: i32
  /** Indexes of content blocks whose asides have ended. */
  ended: Bytes
}

/** Runs at once, at most. */
const RUN_LIMIT: i32 = 1024

/** The answer whose event is being read. */
export let stream: Stream = changetype<Stream>(0)
/** The event that is being read. */
export let current: Waiting = changetype<Waiting>(0)

/** Makes the answer of the present rewriter the current one. */
export function selectStream(): void {
  stream = changetype<Stream>(rw.stream)
}

export function setCurrent(event: Waiting): void {
  current = event
}

export function newStream(): Stream {
  const made = changetype<Stream>(newRecord(offsetof<Stream>()))
  made.queue = newQueue()
  made.known = newKnown()
  made.ended = newBytes()
  return made
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
  freeBytes(made.ended)
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

/** A count that names a choice, block or item; 0 if it is absent. */
export function indexOf(object: i32, name: i32): i32 {
  const found = member(object, name)
  if (!isKind(found, KIND_NUMBER)) return 0
  const value = countOf(found)
  if (value < 0 || value > 0x7fffffff) setFailure(TEXTS_MALFORMED)
  return <i32>value
}

export function runOf(first: i32, second: i32): Run {
  for (let run = stream.runs; !isNone(run); run = run.next) {
    if (run.first == first && run.second == second) return run
  }
  return addRun(newRun(first, second, rw.format != TEXTS_COMPLETIONS, rw.format == TEXTS_RESPONSES))
}

function addRun(run: Run): Run {
  if (++stream.runCount > RUN_LIMIT) setFailure(TEXTS_TOO_MANY)
  run.next = stream.runs
  stream.runs = run
  return run
}

/** The run of an aside; `hash` is that of its path. */
export function asideRun(first: i32, content: i32, hash: u32): Run {
  // The bit tells it from the runs of fields.
  const second = <i32>(hash | 0x80000000)
  for (let run = stream.runs; !isNone(run); run = run.next) {
    if (run.isAside && run.first == first && run.content == content && run.second == second) return run
  }
  if (endedAt(first) >= 0) setFailure(TEXTS_OVER)
  const run = newRun(first, second, false, false)
  run.isAside = true
  run.content = content
  return addRun(run)
}

/** Content blocks with asides that have ended, at most: they are searched for each new aside. */
const ENDED_LIMIT: i32 = 4096

function endedAt(first: i32): i32 {
  const ended = stream.ended
  for (let i = 0; i < ended.used; i += 4) if (load<i32>(ended.data + i) == first) return i
  return -1
}

/** A content block begins, maybe with the index of an earlier one. */
export function begin(first: i32): void {
  const at = endedAt(first)
  if (at < 0) return
  const ended = stream.ended
  ended.used -= 4
  store<i32>(ended.data + at, load<i32>(ended.data + ended.used))
}

/** The run of the texts of a message, in formats whose events show where parts end; 0 if there is none yet. */
export function answerRun(): Run {
  let run = stream.runs
  while (!isNone(run) && run.isAside) run = run.next
  return run
}

const pieceText: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))

/** Takes the text of a string as the next piece of a part. `field` is 0 unless the format is Completions. */
export function takePiece(index: i32, first: i32, second: i32, field: i32 = 0): void {
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

export function countText(length: i32): void {
  rw.textBytes += <f64>length
  rw.uncounted += <f64>length
}

export function maskPiece(run: Run, part: Part, from: usize, length: i32): void {
  if (length > 0) {
    if (stream.queue.isOver) return setFailure(TEXTS_OVER)
    run.lastPiece = ++stream.queue.pieces
  }
  pushPiece(run, part, from, length)
  if (heldByRun(run) > rw.heldLimit) setFailure(TEXTS_UNDECIDED)
}

/** Ends the stream: no text may follow. */
export function finish(): void {
  completeRuns(-1, -1, false)
  stream.queue.isOver = true
}

/**
 * The texts of a choice (-1: all texts) end with the event, if none follows: some providers say so in each event. The
 * event waits while they are undecided, until the stream ends or they go on.
 */
export function stop(first: i32): void {
  if (failure != 0) return
  current.stopsAll = current.stopsAll || first < 0
  current.piece = stream.queue.pieces
  for (let run = stream.runs; !isNone(run); run = run.next) {
    if ((first >= 0 && run.first != first) || run.stoppedBy == current.serial) continue
    run.stoppedBy = current.serial
    addParts(run, current.stops)
    if (hasUndecided(run)) store<u32>(push(current.undecided, 4), <u32>changetype<usize>(run))
  }
}

function completeRuns(first: i32, content: i32, onlyAsides: bool): void {
  let before = changetype<Run>(0)
  for (let run = stream.runs; !isNone(run) && failure == 0; ) {
    const next = run.next
    const isMeant = !onlyAsides || (run.isAside && (content < 0 || run.content == content))
    if (isMeant && (first < 0 || run.first == first)) {
      completeRun(run, current.completed)
      freeRun(run)
      stream.runCount--
      if (isNone(before)) stream.runs = next
      else before.next = next
    } else before = run
    run = next
  }
}

/** Ends the parts of the answer with that name; -1 for any. */
export function end(first: i32, second: i32): void {
  if (failure != 0) return
  const before = stream.runCount
  completeRuns(first, second, true)
  // A content block that goes on after its end is no text of its own.
  if (rw.format == TEXTS_MESSAGES && stream.runCount < before && endedAt(first) < 0) {
    if (stream.ended.used >= ENDED_LIMIT * 4) setFailure(TEXTS_TOO_MANY)
    store<i32>(push(stream.ended, 4), first)
  }
  const run = answerRun()
  if (!isNone(run)) endParts(run, first, second, current.ends)
}

/** Refuses an object in which a name with a meaning occurs twice. */
export function needOnce(object: i32): void {
  checkNames(object)
}

/** Is the string not empty? */
export function isNonEmpty(index: i32): bool {
  return node(index).end - node(index).start > 2
}

/** Names without a number count from here, by a hash. */
export const OTHER_FIELD: i32 = 0x10000

/** The number of a member's name; a number that depends on it if it has none. */
export function fieldOf(index: i32): i32 {
  const entry = node(index)
  if (entry.name != 0 && !(entry.flags & NODE_FOLDED)) return <i32>entry.name
  readName(index)
  let hash: u32 = 0x811c9dc5
  for (let i = 0; i < textLength; i++) hash = (hash ^ load<u8>(textStart + i)) * 0x01000193
  return OTHER_FIELD | <i32>(hash >> 1)
}

/** The string if it is not empty, or 0. */
export function nonEmpty(object: i32, name: i32): i32 {
  const found = memberOf(object, name, KIND_STRING)
  return found != 0 && isNonEmpty(found) ? found : 0
}

export function isType(text: string): bool {
  return isAscii(textStart, textLength, text)
}
