// Reads server-sent events in pieces of any size and passes each to the stream. Only the names and data of events
// are written again; a block without data becomes an empty comment, which keeps the connection alive.
import { TEXTS_MALFORMED, TEXTS_TOO_LARGE } from './abi'
import { append, appendAscii, appendByte, Bytes, clear, failure, freeBytes, freeRecord, isAscii, newBytes, newRecord, setFailure } from './bytes'
import { readDetails } from './details'
import { takeEvent, takeKnown, takePlainEvent } from './events'
import { isGuarded, rw } from './state'
import { parseDocument } from './parse'
import { isKind, KIND_OBJECT } from './tape'

@unmanaged
export class Sse {
  line: Bytes
  data: Bytes
  name: Bytes
  /** Bytes of the block so far. */
  size: i32
  lines: i32
  isAfterReturn: bool
  /** Lines of data in the block. */
  dataLines: i32
  isPastMark: bool
}

export function newSse(): Sse {
  const sse = changetype<Sse>(newRecord(offsetof<Sse>()))
  sse.line = newBytes()
  sse.data = newBytes()
  sse.name = newBytes()
  return sse
}

export function freeSse(sse: Sse): void {
  freeBytes(sse.line)
  freeBytes(sse.data)
  freeBytes(sse.name)
  freeRecord(changetype<usize>(sse))
}

// @ts-ignore: decorator
@inline
function lineEnds(v: v128): i32 {
  return i8x16.bitmask(v128.or(i8x16.eq(v, i8x16.splat(10)), i8x16.eq(v, i8x16.splat(13))))
}

/** Address of the next CR or LF, or `end`. */
function findLineEnd(from: usize, end: usize): usize {
  for (let at = from; at < end; at += 16) {
    const found = lineEnds(v128.load(at))
    if (found != 0) return min(at + ctz(found), end)
  }
  return end
}

export function readEvents(sse: Sse, from: usize, length: i32): void {
  const end = from + length
  let at = from
  while (at < end && failure == 0) {
    if (sse.isAfterReturn && load<u8>(at) == 10) at++
    sse.isAfterReturn = false
    if (at == end) return
    const stop = findLineEnd(at, end)
    const size = <i32>(stop - at)
    if (size + 1 > rw.limit - sse.size) return setFailure(TEXTS_TOO_LARGE)
    sse.size += size + 1
    if (stop == end) return append(sse.line, at, size)
    sse.isAfterReturn = load<u8>(stop) == 13
    if (sse.line.used > 0) {
      append(sse.line, at, size)
      endLine(sse, sse.line.data, sse.line.used)
      clear(sse.line)
    } else endLine(sse, at, size)
    at = stop + 1
  }
}

function endLine(sse: Sse, start: usize, size: i32): void {
  let from = start
  let length = size
  if (!sse.isPastMark) {
    sse.isPastMark = true
    if (length >= 3 && (load<u32>(from) & 0xffffff) == 0xbfbbef) {
      from += 3
      length -= 3
    }
  }
  if (length == 0) return endBlock(sse)
  sse.lines++
  let colon = 0
  while (colon < length && load<u8>(from + colon) != 58) colon++
  if (colon == 0) return
  let value = min(colon + 1, length)
  if (value < length && load<u8>(from + value) == 32) value++
  if (isAscii(from, colon, 'data')) {
    if (sse.dataLines++ > 0) appendByte(sse.data, 10)
    append(sse.data, from + value, length - value)
  } else if (isAscii(from, colon, 'event')) {
    clear(sse.name)
    append(sse.name, from + value, length - value)
  }
}

function endBlock(sse: Sse): void {
  if (sse.dataLines > 0) takeData(sse)
  else if (sse.lines > 0 && isGuarded()) appendAscii(rw.out, ':\n\n')
  sse.size = 0
  sse.lines = 0
  sse.dataLines = 0
  clear(sse.name)
  clear(sse.data)
}

function isBlank(bytes: Bytes): bool {
  for (let i = 0; i < bytes.used; i++) {
    const byte = <u32>load<u8>(bytes.data + i)
    if (byte != 32 && byte != 10 && byte != 9) return false
  }
  return true
}

function takeData(sse: Sse): void {
  const data = sse.data
  const name = sse.name
  if (isAscii(data.data, data.used, '[DONE]') || isBlank(data)) {
    takePlainEvent(name.data, name.used, data.data, isBlank(data) ? 0 : data.used)
    return
  }
  if (sse.dataLines == 1 && isGuarded() && takeKnown(name, data)) return
  const root = parseDocument(data.data, data.used)
  if (failure != 0) return
  if (!isKind(root, KIND_OBJECT)) return setFailure(TEXTS_MALFORMED)
  // Line breaks in a document are white space; the event is written on one line.
  if (sse.dataLines > 1) {
    for (let i = 0; i < data.used; i++) if (load<u8>(data.data + i) == 10) store<u8>(data.data + i, 32)
  }
  readDetails(root)
  takeEvent(name.data, name.used, root)
}
