// Masks whole texts of the document on the tape. The parts of one text are masked as one.
import { pushText } from '../regex/mask'
import { newStreamRecord, resetStream, S_OUT } from '../regex/stream'
import { ERROR_MEMORY } from '../abi'
import { append, Bytes, clear, failure, push, setFailure } from './bytes'
import { guardCount, guardSet } from './chain'
import { addEdit, EDIT_REMOVE, EDIT_TEXT, hasEdit } from './edits'
import { endMasker, endPart, freeMasker, Masker, newMasker, pushMasker } from './masker'
import { noteEdits } from './matches'
import { rw } from './state'
import { endText, joinText } from './strings'
import { readText, textLength, textStart } from './tape'

function wholeStream(guard: i32): usize {
  const place = rw.streams + (<usize>guard << 2)
  let stream = <usize>load<u32>(place)
  if (stream == 0) {
    stream = newStreamRecord(guardSet(rw.guards, guard))
    if (stream == 0) setFailure(ERROR_MEMORY)
    store<u32>(place, <u32>stream)
  } else resetStream(stream)
  return stream
}

/** Masks [from, +length) and appends the result to the side buffer; replacements made. */
export function maskText(from: usize, length: i32): i32 {
  let at = from
  let size = length
  let made = 0
  for (let guard = 0; guard < guardCount(rw.guards) && failure == 0; guard++) {
    const stream = wholeStream(guard)
    if (stream == 0) return 0
    size = pushText(stream, at, size, true)
    if (size < 0) {
      setFailure(size)
      return 0
    }
    at = load<u32>(stream, S_OUT)
    made += noteEdits(guard, stream)
  }
  append(rw.side, at, size)
  return made
}

export function beginGroup(): void {
  clear(rw.group)
}

export function addToGroup(index: i32): void {
  store<i32>(push(rw.group, 4), index)
}

/** A text of one string. */
export function maskOne(index: i32): void {
  // An error is masked before the object that contains it.
  if (hasEdit(index)) return
  readJoined(index)
  const start = rw.side.used
  const source = rw.masked.text
  rw.textBytes += <f64>source.used
  if (guardCount(rw.guards) == 0) return
  const made = maskText(source.data, source.used)
  if (made == 0) rw.side.used = start
  else addEdit(index, EDIT_TEXT, <u32>start, rw.side.used - start)
}

/** `owner` is the part to remove if its text becomes empty, or 0. */
function place(index: i32, start: i32, length: i32, before: i32, owner: i32): void {
  if (owner != 0 && length == 0 && before > 0) addEdit(owner, EDIT_REMOVE)
  else addEdit(index, EDIT_TEXT, <u32>start, length)
}

/** Puts the text of a string into `rw.masked.text`. */
export function readJoined(index: i32): void {
  const text = rw.masked.text
  clear(text)
  readText(index)
  endText(text, joinText(text, 0, textStart, textLength))
}

/**
 * Masks the strings of the group as the parts of one text. If `removesEmpty`, a part whose text becomes empty
 * is removed: entries of the group are then pairs of the string and of its part.
 */
export function maskGroup(removesEmpty: bool): void {
  const step = removesEmpty ? 8 : 4
  const count = rw.group.used / step
  if (count == 0) return
  if (guardCount(rw.guards) == 0) {
    for (let i = 0; i < count; i++) maskOne(load<i32>(rw.group.data + <usize>(i * step)))
  } else if (count == 1) maskOnlyPart(removesEmpty)
  else maskParts(step, count, removesEmpty)
  clear(rw.group)
}

function maskOnlyPart(removesEmpty: bool): void {
  const index = load<i32>(rw.group.data)
  readJoined(index)
  const source = rw.masked.text
  const start = rw.side.used
  rw.textBytes += <f64>source.used
  if (maskText(source.data, source.used) == 0) {
    rw.side.used = start
    return
  }
  place(index, start, rw.side.used - start, source.used, removesEmpty ? load<i32>(rw.group.data, 4) : 0)
}

function newChain(): Masker {
  let chain = changetype<Masker>(0)
  for (let guard = guardCount(rw.guards) - 1; guard >= 0; guard--) {
    const masker = newMasker(guard, true)
    masker.next = chain
    chain = masker
  }
  return chain
}

function maskParts(step: i32, count: i32, removesEmpty: bool): void {
  const chain = newChain()
  const sink = rw.masked
  const lengths = rw.edits
  clear(sink.ends)
  clear(lengths)
  const source = rw.joined
  clear(source)
  for (let i = 0; i < count; i++) {
    readJoined(load<i32>(rw.group.data + <usize>(i * step)))
    append(source, sink.text.data, sink.text.used)
    store<i32>(push(lengths, 4), sink.text.used)
  }
  clear(sink.text)
  let at = source.data
  for (let i = 0; i < count && failure == 0; i++) {
    const length = load<i32>(lengths.data + <usize>(i << 2))
    if (i > 0) endPart(chain, sink)
    pushMasker(chain, at, length, sink)
    at += length
    rw.textBytes += <f64>length
  }
  endMasker(chain, sink)
  let made = 0
  for (let one = chain; changetype<usize>(one) != 0; one = one.next) made += one.count
  if (made > 0 && failure == 0) placeParts(step, count, removesEmpty, lengths)
  for (let one = chain; changetype<usize>(one) != 0; ) {
    const next = one.next
    freeMasker(one)
    one = next
  }
}

function placeParts(step: i32, count: i32, removesEmpty: bool, lengths: Bytes): void {
  const sink = rw.masked
  const base = rw.side.used
  append(rw.side, sink.text.data, sink.text.used)
  let from = 0
  for (let i = 0; i < count; i++) {
    const stop = i < count - 1 ? load<i32>(sink.ends.data + <usize>(i << 2)) : sink.text.used
    const entry = rw.group.data + <usize>(i * step)
    const owner = removesEmpty ? load<i32>(entry, 4) : 0
    place(load<i32>(entry), base + from, stop - from, load<i32>(lengths.data + <usize>(i << 2)), owner)
    from = stop
  }
}
