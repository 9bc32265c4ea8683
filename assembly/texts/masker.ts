// Masks a text that consists of parts, such as the blocks of a message. A match may lie within one part or
// span several, so parts are read in three ways. Overlapping matches become one, whose replacement is put
// where the first match begins. The result does not depend on how the text was cut into pieces.
import { pushText } from '../regex/mask'
import { S_OUT } from '../regex/stream'
import { MEMBER_TEXT, MEMBER_TEXT_LENGTH, memberOf } from '../regex/set'
import { heldBack } from '../regex/mask'
import { append, Bytes, failure, first, freeBytes, freeRecord, newBytes, newRecord, push, setFailure, shift } from './bytes'
import { guardSet } from './chain'
import { Masked } from './masked'
import { noteEdits, noteMatch } from './matches'
import { freeReading, MATCH_BYTES, newReading, READ_ALONE, READ_JOINED, READ_SPACED, readBytes, readEnd, Reading, readPartEnd } from './reading'
import { rw } from './state'
import { TEXTS_TOO_LARGE } from './abi'

/** Bytes of one text at most, so that offsets fit. */
const TEXT_LIMIT: i32 = 1 << 30

@unmanaged
export class Masker {
  /** The guard behind this one, or 0. */
  next: Masker
  /** Index of the guard, and its mask set. */
  guard: i32
  set: usize
  joined: Reading
  /** 0 if the text has one part only: then there is one reading, whose output is passed on. */
  alone: Reading
  spaced: Reading
  /** The text from `windowStart` on; offsets count from the start of the text. */
  window: Bytes
  windowStart: i32
  end: i32
  /** Offsets of the ends of parts that were not passed on. */
  partEnds: Bytes
  /** Everything before this offset was passed on. */
  at: i32
  maskedUntil: i32
  /** Replacements made. */
  count: i32
}

export function newMasker(guard: i32, hasParts: bool): Masker {
  const set = guardSet(rw.guards, guard)
  const masker = changetype<Masker>(newRecord(offsetof<Masker>()))
  masker.guard = guard
  masker.set = set
  masker.joined = newReading(READ_JOINED, set)
  masker.window = newBytes()
  masker.partEnds = newBytes()
  if (!hasParts) return masker
  masker.alone = newReading(READ_ALONE, set)
  masker.spaced = newReading(READ_SPACED, set)
  return masker
}

export function freeMasker(masker: Masker): void {
  freeReading(masker.joined)
  if (hasParts(masker)) {
    freeReading(masker.alone)
    freeReading(masker.spaced)
  }
  freeBytes(masker.window)
  freeBytes(masker.partEnds)
  freeRecord(changetype<usize>(masker))
}

// @ts-ignore: decorator
@inline
function hasParts(masker: Masker): bool {
  return changetype<usize>(masker.alone) != 0
}

/** Bytes that are undecided. */
export function heldBytes(masker: Masker): i32 {
  return hasParts(masker) ? masker.end - masker.at : heldBack(masker.joined.stream)
}

export function pushMasker(masker: Masker, from: usize, length: i32, sink: Masked): void {
  if (failure != 0 || length == 0) return
  if (!hasParts(masker)) return pushPlain(masker, from, length, false, sink)
  if (length > TEXT_LIMIT - masker.end) return setFailure(TEXTS_TOO_LARGE)
  append(masker.window, from, length)
  masker.end += length
  readBytes(masker.joined, from, length)
  readBytes(masker.alone, from, length)
  readBytes(masker.spaced, from, length)
  settle(masker, sink)
}

export function endPart(masker: Masker, sink: Masked): void {
  if (failure != 0 || !hasParts(masker)) return
  readPartEnd(masker.joined)
  readPartEnd(masker.alone)
  readPartEnd(masker.spaced)
  store<i32>(push(masker.partEnds, 4), masker.end)
  settle(masker, sink)
}

/** Ends the text, in this masker and in those behind it. */
export function endMasker(masker: Masker, sink: Masked): void {
  if (failure != 0) return
  if (hasParts(masker)) {
    readEnd(masker.joined)
    readEnd(masker.alone)
    readEnd(masker.spaced)
    settle(masker, sink)
  } else pushPlain(masker, 0, 0, true, sink)
  if (changetype<usize>(masker.next) != 0) endMasker(masker.next, sink)
}

function pushPlain(masker: Masker, from: usize, length: i32, isEnd: bool, sink: Masked): void {
  const stream = masker.joined.stream
  if (stream == 0) return
  const size = pushText(stream, from, length, isEnd)
  if (size < 0) return setFailure(size)
  masker.count += noteEdits(masker.guard, stream)
  passText(masker, load<u32>(stream, S_OUT), size, sink)
}

function passText(masker: Masker, from: usize, length: i32, sink: Masked): void {
  if (changetype<usize>(masker.next) != 0) pushMasker(masker.next, from, length, sink)
  else append(sink.text, from, length)
}

function passEnd(masker: Masker, sink: Masked): void {
  if (changetype<usize>(masker.next) != 0) endPart(masker.next, sink)
  else store<i32>(push(sink.ends, 4), sink.text.used)
}

/** Passes on the text that all readings have settled. */
function settle(masker: Masker, sink: Masked): void {
  if (failure != 0) return
  const limit = min(min(masker.joined.settled, masker.alone.settled), masker.spaced.settled)
  for (let from = nextMatch(masker, limit); from != 0; from = nextMatch(masker, limit)) {
    const match = first(changetype<Reading>(from).matches)
    const start = load<i32>(match)
    const stop = load<i32>(match, 4)
    const rule = load<i32>(match, 8)
    shift(changetype<Reading>(from).matches, MATCH_BYTES)
    if (rule >= 0 && start >= masker.maskedUntil) {
      advance(masker, masker.maskedUntil, true, sink)
      advance(masker, start, false, sink)
      const member = memberOf(masker.set, rule)
      passText(masker, load<u32>(member, MEMBER_TEXT), load<i32>(member, MEMBER_TEXT_LENGTH), sink)
      noteMatch(masker.guard, rule)
      masker.count++
    }
    masker.maskedUntil = max(masker.maskedUntil, stop)
  }
  advance(masker, min(masker.maskedUntil, limit), true, sink)
  advance(masker, limit, false, sink)
  dropWindow(masker)
}

/** The reading with the next match before the limit, or 0. At one offset, a continuation comes first. */
function nextMatch(masker: Masker, limit: i32): usize {
  let best: usize = 0
  best = betterOf(best, masker.joined, limit)
  best = betterOf(best, masker.alone, limit)
  return betterOf(best, masker.spaced, limit)
}

function betterOf(best: usize, reading: Reading, limit: i32): usize {
  const match = first(reading.matches)
  if (match == 0 || load<i32>(match) >= limit) return best
  if (best == 0) return changetype<usize>(reading)
  const other = first(changetype<Reading>(best).matches)
  const isBefore = load<i32>(match) < load<i32>(other)
  const goesOn = load<i32>(match) == load<i32>(other) && load<i32>(match, 8) < 0 && load<i32>(other, 8) >= 0
  return isBefore || goesOn ? changetype<usize>(reading) : best
}

/** Passes on everything before an offset: the ends of parts, and the text unless it is masked. */
function advance(masker: Masker, to: i32, isMasked: bool, sink: Masked): void {
  for (let stop = first(masker.partEnds); stop != 0 && load<i32>(stop) <= to; stop = first(masker.partEnds)) {
    const offset = load<i32>(stop)
    shift(masker.partEnds, 4)
    pass(masker, offset, isMasked, sink)
    passEnd(masker, sink)
  }
  pass(masker, to, isMasked, sink)
}

function pass(masker: Masker, to: i32, isMasked: bool, sink: Masked): void {
  if (to <= masker.at) return
  if (!isMasked) passText(masker, masker.window.data + (masker.at - masker.windowStart), to - masker.at, sink)
  masker.at = to
}

/** Drops the bytes that were passed on if they are at least half of the window. */
function dropWindow(masker: Masker): void {
  const gone = masker.at - masker.windowStart
  const window = masker.window
  if (gone * 2 < window.used) return
  window.used -= gone
  memory.copy(window.data, window.data + gone, window.used)
  masker.windowStart = masker.at
}
