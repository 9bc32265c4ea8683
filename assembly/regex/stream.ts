// Masks a text at once or as it arrives. Each member of a set finds its own matches, as if it were
// the only one. The matches are then joined: spans that overlap become one, replaced by the text of the one
// that begins first (of those, the member that comes first in the set). Empty matches mask nothing.
// The output does not depend on where the text is split.
//
// A stream's window has the undecided text, after one decided byte, which assertions can read, or as many as builtins
// look back to (`lookbackOf`):
//
//       decided, written          held back             not arrived
//     ---------------------|---|----------------------|- - - - - -
//                          0   emitted              length         offsets in the window
//
// Record:
//   +0  set          +4  window      +8  capacity    +12 length      +16 emitted    +20 masked until
//   +24 output       +28 capacity    +32 length      +36 replacements made
//   +40 found spans  +44 count       +48 capacity    +52 failure code
//   +56 detectors' position          +60 their hold  +64 their resume positions (24)
//   +160 bytes read (u64)            +168 bytes taken (u64)
//   +176 edits      +180 count      +184 capacity
//   +192 members, 32 bytes each: from | position | idle | last | start | meta | threads | hold
import { blockAlloc, blockFree } from '../arena'
import { ERROR_ARGUMENT, ERROR_MEMORY } from '../abi'
import { dropHandle, HANDLE_STREAM, newHandle, recordOf } from './handles'
import { P_COUNT } from './program'
import { R_FORWARD } from './run'
import { MEMBER_DETECT, MEMBER_REGEX, memberOf, releaseSet, retainSet, SET_MEMBERS, setOf, WORDS } from './set'

export const S_SET: usize = 0
export const S_WINDOW: usize = 4
const S_CAPACITY: usize = 8
export const S_LENGTH: usize = 12
export const S_EMITTED: usize = 16
export const S_MASKED: usize = 20
export const S_OUT: usize = 24
const S_OUT_CAPACITY: usize = 28
export const S_OUT_LENGTH: usize = 32
export const S_COUNT: usize = 36
export const S_FOUND: usize = 40
export const S_FOUND_COUNT: usize = 44
const S_FOUND_CAPACITY: usize = 48
export const S_FAILURE: usize = 52
export const S_DETECT_AT: usize = 56
export const S_DETECT_HOLD: usize = 60
export const S_RESUME: usize = 64
export const S_READ: usize = 160
export const S_TAKEN: usize = 168
export const S_EDITS: usize = 176
export const S_EDIT_COUNT: usize = 180
const S_EDIT_CAPACITY: usize = 184
const S_HEAD: usize = 192
export const M_FROM: usize = 0
export const M_POSITION: usize = 4
export const M_IDLE: usize = 8
export const M_LAST: usize = 12
export const M_START: usize = 16
export const M_META: usize = 20
export const M_THREADS: usize = 24
export const M_HOLD: usize = 28

/** Size of a found span: start, end, member. */
export const FOUND_BYTES: i32 = 12
/** Size of an edit: plain bytes, masked bytes after them, member. */
const EDIT_BYTES: i32 = 12

export function streamOf(handle: i32): usize {
  return recordOf(handle, HANDLE_STREAM)
}

/** Returns the stream's record for the set's member `index`. */
// @ts-ignore: decorator
@inline
export function progressOf(stream: usize, index: i32): usize {
  return stream + S_HEAD + (<usize>index << 5)
}

function threadBytes(set: usize, index: i32): u32 {
  const member = memberOf(set, index)
  const regex = <usize>load<u32>(member, MEMBER_REGEX)
  return regex == 0 || load<i32>(member, MEMBER_DETECT) == WORDS ? 0 : load<u32>(load<u32>(regex, R_FORWARD), P_COUNT) * 4
}

/** Makes a stream over a set, to which no more members can be added. Returns a handle, or a code. */
export function newStream(setHandle: i32): i32 {
  const set = setOf(setHandle)
  if (set == 0) return ERROR_ARGUMENT
  const stream = newStreamRecord(set)
  if (stream == 0) return ERROR_MEMORY
  const handle = newHandle(stream, HANDLE_STREAM)
  if (handle < 0) freeStreamRecord(stream)
  return handle
}

/** Makes a stream without a handle. Returns its record, or 0 if there is no memory. */
export function newStreamRecord(set: usize): usize {
  const count = load<i32>(set, SET_MEMBERS)
  const head = S_HEAD + (<usize>count << 5)
  let size = head
  for (let i = 0; i < count; i++) size += threadBytes(set, i)
  const stream = blockAlloc(size)
  if (stream == 0) return 0
  memory.fill(stream, 0, S_HEAD)
  store<u32>(stream, <u32>set, S_SET)
  let threads = stream + head
  for (let i = 0; i < count; i++) {
    store<u32>(progressOf(stream, i), <u32>threads, M_THREADS)
    threads += threadBytes(set, i)
  }
  resetStream(stream)
  retainSet(set)
  return stream
}

/** Begins a new text; buffers are kept. */
export function resetStream(stream: usize): void {
  store<u32>(stream, 0, S_LENGTH)
  store<u32>(stream, 0, S_EMITTED)
  store<u32>(stream, 0, S_MASKED)
  store<u32>(stream, 0, S_OUT_LENGTH)
  store<u32>(stream, 0, S_COUNT)
  store<u32>(stream, 0, S_FOUND_COUNT)
  store<u32>(stream, 0, S_FAILURE)
  store<u32>(stream, 0, S_EDIT_COUNT)
  memory.fill(stream + S_DETECT_AT, 0, S_EDITS - S_DETECT_AT)
  for (let i = 0; i < load<i32>(load<u32>(stream), SET_MEMBERS); i++) {
    const progress = progressOf(stream, i)
    memory.fill(progress, 0, M_THREADS)
    store<i32>(progress, -1, M_LAST)
    store<i32>(progress, -1, M_START)
    store<i32>(progress, 0, M_HOLD)
  }
}

export function freeStream(handle: i32): void {
  const stream = streamOf(handle)
  if (stream == 0) return
  dropHandle(handle)
  freeStreamRecord(stream)
}

export function freeStreamRecord(stream: usize): void {
  releaseSet(load<u32>(stream, S_SET))
  blockFree(load<u32>(stream, S_WINDOW))
  blockFree(load<u32>(stream, S_OUT))
  blockFree(load<u32>(stream, S_FOUND))
  blockFree(load<u32>(stream, S_EDITS))
  blockFree(stream)
}

// --- buffers -----------------------------------------------------------------------------------
//
// Each is three words: address, capacity (bytes) and, in another place, the used size.

/** Grows the buffer at `address` to `needed` bytes and keeps the first `used`. Returns false if memory is full. */
function ensure(address: usize, capacity: usize, used: i32, needed: i32): bool {
  const present = load<i32>(capacity)
  if (needed <= present && load<u32>(address) != 0) return true
  const size = max(max(needed, present + (present >> 1)), 512)
  const bigger: usize = needed < 0 ? 0 : blockAlloc(<usize>size)
  if (bigger == 0) return false
  memory.copy(bigger, load<u32>(address), used)
  blockFree(load<u32>(address))
  store<u32>(address, <u32>bigger)
  store<i32>(capacity, size)
  return true
}

/** From now on all calls return this code, because text may have been lost. */
export function failStream(stream: usize, code: i32 = ERROR_MEMORY): void {
  store<i32>(stream, code, S_FAILURE)
}

/** Appends arrived text to the window. */
export function appendToWindow(stream: usize, text: usize, length: i32): void {
  const used = load<i32>(stream, S_LENGTH)
  if (!ensure(stream + S_WINDOW, stream + S_CAPACITY, used, used + length)) {
    failStream(stream)
    return
  }
  memory.copy(load<u32>(stream, S_WINDOW) + used, text, length)
  store<i32>(stream, used + length, S_LENGTH)
}

/** Appends to the output that the host reads next. */
export function output(stream: usize, from: usize, length: i32): void {
  const used = load<i32>(stream, S_OUT_LENGTH)
  if (!ensure(stream + S_OUT, stream + S_OUT_CAPACITY, used, used + length)) {
    failStream(stream)
    return
  }
  memory.copy(load<u32>(stream, S_OUT) + used, from, length)
  store<i32>(stream, used + length, S_OUT_LENGTH)
}

/**
 * Records an edit: `plain` unchanged bytes, then `masked` bytes of a span that is replaced by
 * the member's text; -1: no span begins, but the last one may continue.
 */
export function addEdit(stream: usize, plain: i32, masked: i32, member: i32): void {
  const count = load<i32>(stream, S_EDIT_COUNT)
  if (!ensure(stream + S_EDITS, stream + S_EDIT_CAPACITY, count * EDIT_BYTES, (count + 1) * EDIT_BYTES)) {
    failStream(stream)
    return
  }
  const edit = <usize>load<u32>(stream, S_EDITS) + <usize>(count * EDIT_BYTES)
  store<i32>(edit, plain)
  store<i32>(edit, masked, 4)
  store<i32>(edit, member, 8)
  store<i32>(stream, count + 1, S_EDIT_COUNT)
}

/** Records a found span. */
export function addFound(stream: usize, start: i32, end: i32, member: i32): void {
  const count = load<i32>(stream, S_FOUND_COUNT)
  if (!ensure(stream + S_FOUND, stream + S_FOUND_CAPACITY, count * FOUND_BYTES, (count + 1) * FOUND_BYTES)) {
    failStream(stream)
    return
  }
  writeFound(foundAt(stream, count), keyOf(start, member), end)
  store<i32>(stream, count + 1, S_FOUND_COUNT)
}

// --- found spans, in order ---------------------------------------------------------------------
//
// Spans are found one member after the other. They are sorted by start, then by member, when
// text is written. Usually there are few; for a text full of matches, sorting takes n log n (heap sort).

/** Returns the found span with an index: member u32 | start u32 | end u32. */
// @ts-ignore: decorator
@inline
export function foundAt(stream: usize, index: i32): usize {
  return <usize>load<u32>(stream, S_FOUND) + <usize>(index * FOUND_BYTES)
}

// @ts-ignore: decorator
@inline
function keyOf(start: i32, member: i32): u64 {
  return (<u64>start << 32) | <u64>member
}

// @ts-ignore: decorator
@inline
function writeFound(at: usize, key: u64, end: i32): void {
  store<u64>(at, key)
  store<i32>(at, end, 8)
}

function siftDown(stream: usize, from: i32, count: i32, key: u64, end: i32): void {
  let hole = from
  for (;;) {
    let child = hole * 2 + 1
    if (child >= count) break
    if (child + 1 < count && load<u64>(foundAt(stream, child + 1)) > load<u64>(foundAt(stream, child))) child++
    const at = foundAt(stream, child)
    if (load<u64>(at) <= key) break
    writeFound(foundAt(stream, hole), load<u64>(at), load<i32>(at, 8))
    hole = child
  }
  writeFound(foundAt(stream, hole), key, end)
}

/** Sorts the found spans. */
export function sortFound(stream: usize): void {
  const count = load<i32>(stream, S_FOUND_COUNT)
  let sorted = 1
  while (sorted < count && load<u64>(foundAt(stream, sorted - 1)) <= load<u64>(foundAt(stream, sorted))) sorted++
  if (sorted >= count) return
  for (let i = count >> 1; i > 0; i--) {
    const at = foundAt(stream, i - 1)
    siftDown(stream, i - 1, count, load<u64>(at), load<i32>(at, 8))
  }
  for (let last = count - 1; last > 0; last--) {
    const at = foundAt(stream, last)
    const key = load<u64>(at)
    const end = load<i32>(at, 8)
    writeFound(at, load<u64>(foundAt(stream, 0)), load<i32>(foundAt(stream, 0), 8))
    siftDown(stream, 0, last, key, end)
  }
}
