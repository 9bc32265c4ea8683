// Growing byte buffers in blocks, and the failure of the call in progress.
import { blockAlloc, blockFree } from '../arena'
import { ERROR_MEMORY } from '../abi'

/** The first failure of the call in progress, or 0. A call that fails gives out nothing more. */
export let failure: i32 = 0

export function clearFailure(): void {
  failure = 0
}

export function setFailure(code: i32): void {
  if (failure == 0) failure = code
}

@unmanaged
export class Bytes {
  data: usize
  used: i32
  /** Bytes at the front that were taken. */
  head: i32
  capacity: i32
}

/** Used in place of a record or buffer for which there is no memory; its content is never read. */
const SPILL: usize = memory.data(256)
/** Buffers that are larger than this are freed when they are cleared. */
const LARGEST_KEPT: i32 = 1 << 18

/** A cleared record of `size` bytes (at most 256). */
export function newRecord(size: usize): usize {
  const record = blockAlloc(size)
  if (record == 0) setFailure(ERROR_MEMORY)
  const start = record == 0 ? SPILL : record
  memory.fill(start, 0, size)
  return start
}

export function freeRecord(record: usize): void {
  if (record != SPILL) blockFree(record)
}

export function newBytes(): Bytes {
  return changetype<Bytes>(newRecord(offsetof<Bytes>()))
}

export function freeBytes(bytes: Bytes): void {
  blockFree(bytes.data)
  freeRecord(changetype<usize>(bytes))
}

/** Empties a buffer; frees it if it is large. */
export function clear(bytes: Bytes): void {
  bytes.used = 0
  bytes.head = 0
  if (bytes.capacity <= LARGEST_KEPT) return
  blockFree(bytes.data)
  bytes.data = 0
  bytes.capacity = 0
}

/** Makes room for `extra` more bytes; false if there is no memory. */
export function reserve(bytes: Bytes, extra: i32): bool {
  const needed = bytes.used + extra
  if (needed <= bytes.capacity && needed >= 0) return true
  const size = max(max(needed, bytes.capacity + (bytes.capacity >> 1)), 64)
  const bigger: usize = needed < 0 ? 0 : blockAlloc(<usize>size)
  if (bigger == 0) {
    setFailure(ERROR_MEMORY)
    return false
  }
  memory.copy(bigger, bytes.data, bytes.used)
  blockFree(bytes.data)
  bytes.data = bigger
  bytes.capacity = size
  return true
}

export function append(bytes: Bytes, from: usize, length: i32): void {
  if (length <= 0 || !reserve(bytes, length)) return
  memory.copy(bytes.data + bytes.used, from, length)
  bytes.used += length
}

export function appendByte(bytes: Bytes, byte: u32): void {
  if (!reserve(bytes, 1)) return
  store<u8>(bytes.data + bytes.used, byte)
  bytes.used++
}

/** Appends a text of ASCII characters. */
export function appendAscii(bytes: Bytes, text: string): void {
  const length = text.length
  if (!reserve(bytes, length)) return
  const from = changetype<usize>(text)
  for (let i = 0; i < length; i++) store<u8>(bytes.data + bytes.used + i, load<u8>(from + (<usize>i << 1)))
  bytes.used += length
}

export function appendNumber(bytes: Bytes, value: i64): void {
  if (value >= 10) appendNumber(bytes, value / 10)
  appendByte(bytes, 48 + <u32>(value % 10))
}

/** Appends `size` cleared bytes (at most 256); their address. */
export function push(bytes: Bytes, size: i32): usize {
  if (!reserve(bytes, size)) return SPILL
  const place = bytes.data + bytes.used
  memory.fill(place, 0, size)
  bytes.used += size
  return place
}

/** Address of the first entry that was not taken, or 0. */
// @ts-ignore: decorator
@inline
export function first(bytes: Bytes): usize {
  return bytes.head < bytes.used ? bytes.data + bytes.head : 0
}

/** Takes the first entry. Taken bytes are dropped once they are half of the buffer. */
export function shift(bytes: Bytes, size: i32): void {
  bytes.head += size
  if (bytes.head * 2 < bytes.used) return
  bytes.used -= bytes.head
  memory.copy(bytes.data, bytes.data + bytes.head, bytes.used)
  bytes.head = 0
}

/** Are the bytes this ASCII text? */
export function isAscii(from: usize, length: i32, text: string): bool {
  if (length != text.length) return false
  const other = changetype<usize>(text)
  for (let i = 0; i < length; i++) {
    if (load<u8>(from + i) != load<u8>(other + (<usize>i << 1))) return false
  }
  return true
}
