// Recognizes events that differ from an earlier one only in their text, as most do. Such an event is not read into
// the tape: its text enters the masks, and its other bytes come out as they are.
//
//   {"id":"1","choices":[{"delta":{"content":" gateway"}}],"usage":null,"obfuscation":"x7"}
//   |            fixed                      | text  |   fixed                       |any|fx
import { append, Bytes, clear, freeBytes, freeRecord, isAscii, newBytes, newRecord, push } from './bytes'
import { E_END, E_KIND, E_START, E_VALUE, EDIT_BYTES, EDIT_INDEX, EDIT_NUMBER, EDIT_PART } from './edits'
import { MESSAGE, RESPONSE, USAGE } from './names'
import { beginLines } from './queue'
import { Event, isNone, Part } from './runs'
import { rw } from './state'
import { appendString } from './strings'
import { plainEnd } from './parse'
import { KIND_OBJECT, KIND_STRING, isKind, member, memberOf, node, readName, textLength, textStart } from './tape'

/** What may stand in a gap between fixed bytes: the text, any other string, or a sequence number. */
const GAP_TEXT: i32 = 0
const GAP_STRING: i32 = 1
const GAP_NUMBER: i32 = 2
/** Gap, 12 bytes: start | end | GAP_*. */
const GAP_BYTES: i32 = 12

@unmanaged
export class Known {
  name: Bytes
  data: Bytes
  /** Empty if no event was learned. */
  gaps: Bytes
  /** The part that the text belongs to. */
  first: i32
  second: i32
  field: i32
}

/** Where the text of the last event that matched is. */
export let knownText: usize = 0
export let knownLength: i32 = 0
let number: i64 = -1

export function newKnown(): Known {
  const known = changetype<Known>(newRecord(offsetof<Known>()))
  known.name = newBytes()
  known.data = newBytes()
  known.gaps = newBytes()
  return known
}

export function freeKnown(known: Known): void {
  freeBytes(known.name)
  freeBytes(known.data)
  freeBytes(known.gaps)
  freeRecord(changetype<usize>(known))
}

/** Learns the event on the tape if its only text is one piece of a part. `field` is 0 unless the format is Completions. */
export function learn(known: Known, event: Event, root: i32, hasFields: bool): void {
  clear(known.gaps)
  const edits = event.edits
  let part = changetype<Part>(0)
  for (let i = 0; i < edits.used; i += EDIT_BYTES) {
    const edit = edits.data + i
    const kind = load<i32>(edit, E_KIND)
    if (kind == EDIT_INDEX) continue
    if (kind != EDIT_NUMBER && (kind != EDIT_PART || !isNone(part))) return clear(known.gaps)
    if (kind == EDIT_PART) part = changetype<Part>(<usize>load<u32>(edit, E_VALUE))
    addGap(known, load<i32>(edit, E_START), load<i32>(edit, E_END), kind == EDIT_PART ? GAP_TEXT : GAP_NUMBER)
  }
  if (isNone(part) || part.isAside || reportsDetails(root)) return clear(known.gaps)
  clear(known.name)
  clear(known.data)
  append(known.name, event.name.data, event.name.used)
  append(known.data, event.data.data, event.data.used)
  known.first = part.first
  known.second = part.second
  known.field = hasFields ? part.second : 0
  addPadding(known, root)
}

/** Such events change what is known of the message. */
function reportsDetails(root: i32): bool {
  return memberOf(root, USAGE, KIND_OBJECT) != 0 || member(root, MESSAGE) != 0 || member(root, RESPONSE) != 0
}

/** Providers pad events with a text that differs in each. */
function addPadding(known: Known, root: i32): void {
  for (let i = node(root).child; i != 0; i = node(i).next) {
    if (!isKind(i, KIND_STRING) || node(i).name != 0) continue
    readName(i)
    if (isAscii(textStart, textLength, 'obfuscation')) return addGap(known, node(i).start, node(i).end, GAP_STRING)
  }
}

/** Adds a gap in the order of the document. Quotes belong to the fixed bytes. */
function addGap(known: Known, start: i32, end: i32, kind: i32): void {
  const quote = kind == GAP_NUMBER ? 0 : 1
  push(known.gaps, GAP_BYTES)
  let at = known.gaps.used - GAP_BYTES
  const data = known.gaps.data
  for (; at > 0 && load<i32>(data + at - GAP_BYTES) > start; at -= GAP_BYTES) memory.copy(data + at, data + at - GAP_BYTES, GAP_BYTES)
  store<i32>(data + at, start + quote)
  store<i32>(data + at, end - quote, 4)
  store<i32>(data + at, kind, 8)
}

/** Is this an event that differs from the learned one in its gaps only? */
export function isKnown(known: Known, name: Bytes, data: Bytes): bool {
  const gaps = known.gaps
  if (gaps.used == 0 || name.used != known.name.used || memory.compare(name.data, known.name.data, name.used) != 0) return false
  let at = data.data
  const end = at + data.used
  let from = 0
  number = -1
  for (let i = 0; i < gaps.used; i += GAP_BYTES) {
    const gap = gaps.data + i
    const fixed = load<i32>(gap) - from
    if (<i32>(end - at) < fixed || memory.compare(known.data.data + from, at, fixed) != 0) return false
    at += fixed
    const kind = load<i32>(gap, 8)
    const stop = kind == GAP_NUMBER ? numberEnd(at, end) : plainEnd(at, end)
    if (stop == 0) return false
    if (kind == GAP_TEXT) {
      knownText = at
      knownLength = <i32>(stop - at)
    }
    at = stop
    from = load<i32>(gap, 4)
  }
  const rest = known.data.used - from
  return <i32>(end - at) == rest && memory.compare(known.data.data + from, at, rest) == 0
}

/** Reads a count into `number`; the address behind it, or 0 if it is none. */
function numberEnd(from: usize, end: usize): usize {
  let at = from
  number = 0
  while (at < end && <u32>load<u8>(at) - 48 < 10) {
    number = number * 10 + (load<u8>(at) - 48)
    at++
  }
  const length = <i32>(at - from)
  return length == 0 || length > 15 || (length > 1 && load<u8>(from) == 48) ? 0 : at
}

/** Writes the event that matched, with the text that its part has ready. */
export function writeKnown(name: Bytes, data: Bytes, part: Part): void {
  const ready = part.ready
  const before = <i32>(knownText - data.data) - 1
  const behind = knownText + knownLength + 1
  beginLines(name)
  append(rw.out, data.data, before)
  appendString(rw.out, ready.data, ready.used)
  clear(ready)
  append(rw.out, behind, <i32>(data.data + data.used - behind))
  append(rw.out, LINES, 2)
  if (number >= 0) rw.nextNumber = number + 1
}

const LINES: usize = memory.data<u8>([10, 10])
