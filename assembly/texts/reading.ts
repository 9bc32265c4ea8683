// One way to read the parts of a text: joined, each alone, or joined with a space. Offsets of matches count
// in the joined text.
import { pushText } from '../regex/mask'
import { freeStreamRecord, newStreamRecord, resetStream, S_EDIT_COUNT, S_EDITS } from '../regex/stream'
import { Bytes, first, freeBytes, freeRecord, newBytes, newRecord, push, setFailure, shift } from './bytes'

export const READ_JOINED: i32 = 0
export const READ_ALONE: i32 = 1
export const READ_SPACED: i32 = 2

/** Bytes of a match: start | end | rule, -1 if it continues the match before. */
export const MATCH_BYTES: i32 = 12
const SPACE: usize = memory.data(32)

@unmanaged
export class Reading {
  kind: i32
  stream: usize
  matches: Bytes
  /** Positions in the stream of spaces that were put between parts, and how many of them were passed. */
  spaces: Bytes
  passed: i32
  /** All matches that begin before this offset are known. */
  settled: i32
  /** Bytes of the stream that are settled, and that were pushed; both with added spaces. */
  at: i32
  pushed: i32
  wantsSpace: bool
  /** The rule of a match that covers only an added space so far, or -1. */
  begun: i32
}

export function newReading(kind: i32, set: usize): Reading {
  const reading = changetype<Reading>(newRecord(offsetof<Reading>()))
  reading.kind = kind
  reading.begun = -1
  reading.matches = newBytes()
  reading.spaces = newBytes()
  reading.stream = newStreamRecord(set)
  if (reading.stream == 0) setFailure(-2)
  return reading
}

export function freeReading(reading: Reading): void {
  if (reading.stream != 0) freeStreamRecord(reading.stream)
  freeBytes(reading.matches)
  freeBytes(reading.spaces)
  freeRecord(changetype<usize>(reading))
}

export function readBytes(reading: Reading, from: usize, length: i32): void {
  if (reading.wantsSpace) {
    reading.wantsSpace = false
    store<i32>(push(reading.spaces, 4), reading.pushed)
    store<u8>(SPACE, 32)
    take(reading, SPACE, 1, false)
  }
  take(reading, from, length, false)
}

export function readPartEnd(reading: Reading): void {
  if (reading.kind == READ_SPACED) reading.wantsSpace = reading.pushed > 0
  if (reading.kind != READ_ALONE) return
  take(reading, SPACE, 0, true)
  if (reading.stream != 0) resetStream(reading.stream)
}

export function readEnd(reading: Reading): void {
  take(reading, SPACE, 0, true)
}

function take(reading: Reading, from: usize, length: i32, isEnd: bool): void {
  const stream = reading.stream
  if (stream == 0) return
  reading.pushed += length
  const code = pushText(stream, from, length, isEnd)
  if (code < 0) return setFailure(code)
  const count = load<i32>(stream, S_EDIT_COUNT)
  for (let i = 0; i < count; i++) {
    const edit = <usize>load<u32>(stream, S_EDITS) + <usize>(i * 12)
    note(reading, load<i32>(edit), load<i32>(edit, 4), load<i32>(edit, 8))
  }
  reading.settled = offsetOf(reading, reading.at)
}

function note(reading: Reading, plain: i32, masked: i32, rule: i32): void {
  if (plain > 0) reading.begun = -1
  const start = offsetOf(reading, reading.at + plain)
  reading.at += plain + masked
  if (masked == 0) return
  const stop = offsetOf(reading, reading.at)
  const found = rule < 0 ? reading.begun : rule
  reading.begun = stop == start ? found : -1
  if (stop <= start) return
  const match = push(reading.matches, MATCH_BYTES)
  store<i32>(match, start)
  store<i32>(match, stop, 4)
  store<i32>(match, found, 8)
}

/** The offset in the joined text of a position in the stream. Positions must not fall between calls. */
function offsetOf(reading: Reading, position: i32): i32 {
  for (let space = first(reading.spaces); space != 0 && load<i32>(space) < position; space = first(reading.spaces)) {
    shift(reading.spaces, 4)
    reading.passed++
  }
  return position - reading.passed
}
