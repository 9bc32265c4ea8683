// Handles of regexes, mask sets, streams, guards and rewriters of texts: indices into one table, so that a wrong handle is an error and
// never a wild read.
//
//   entry, u32:  record address (16-aligned) | kind << 1      or, free:  next free index << 1 | 1
import { blockAlloc, blockFree } from '../arena'
import { ERROR_MEMORY } from '../abi'

export const HANDLE_REGEX: u32 = 0
export const HANDLE_SET: u32 = 2
export const HANDLE_STREAM: u32 = 4
export const HANDLE_GUARDS: u32 = 6
export const HANDLE_TEXTS: u32 = 8

let table: usize = 0
let tableSize: i32 = 0
let tableUsed: i32 = 0
let freeSlot: i32 = -1

/** Returns the record of a handle of that kind, or 0. */
export function recordOf(handle: i32, kind: u32): usize {
  if (handle <= 0 || handle > tableUsed) return 0
  const entry = load<u32>(table + (<usize>(handle - 1) << 2))
  return (entry & 15) == kind ? <usize>(entry & ~15) : 0
}

function growTable(): bool {
  const size = tableSize == 0 ? 64 : tableSize * 2
  const bigger = blockAlloc(<usize>size << 2)
  if (bigger == 0) return false
  memory.copy(bigger, table, <usize>tableUsed << 2)
  blockFree(table)
  table = bigger
  tableSize = size
  return true
}

/** Makes a handle for a record. Returns the handle, or ERROR_MEMORY. */
export function newHandle(record: usize, kind: u32): i32 {
  let index = freeSlot
  if (index >= 0) {
    freeSlot = <i32>load<u32>(table + (<usize>index << 2)) >> 1
  } else {
    if (tableUsed == tableSize && !growTable()) return ERROR_MEMORY
    index = tableUsed++
  }
  store<u32>(table + (<usize>index << 2), <u32>record | kind)
  return index + 1
}

/** Releases a handle that is in use; it may be reused. */
export function dropHandle(handle: i32): void {
  store<u32>(table + (<usize>(handle - 1) << 2), <u32>((freeSlot << 1) | 1))
  freeSlot = handle - 1
}
