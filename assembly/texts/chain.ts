// Guards in order: each is a mask set, and masks or rejects.
//
//   +0 users   +4 count   +8 entries, 8 bytes each: set record | 1 if it rejects
import { blockAlloc, blockFree } from '../arena'
import { ERROR_ARGUMENT, ERROR_MEMORY } from '../abi'
import { dropHandle, HANDLE_GUARDS, newHandle, recordOf } from '../regex/handles'
import { retainSet, releaseSet, setOf } from '../regex/set'

/** Most guards of a chain. */
export const GUARD_LIMIT: i32 = 64

export function guardsOf(handle: i32): usize {
  return recordOf(handle, HANDLE_GUARDS)
}

export function newGuards(): i32 {
  const record = blockAlloc(8 + (<usize>GUARD_LIMIT << 3))
  if (record == 0) return ERROR_MEMORY
  store<u32>(record, 1)
  store<i32>(record, 0, 4)
  const handle = newHandle(record, HANDLE_GUARDS)
  if (handle < 0) blockFree(record)
  return handle
}

export function guardCount(guards: usize): i32 {
  return guards == 0 ? 0 : load<i32>(guards, 4)
}

export function addGuard(handle: i32, set: i32, rejects: bool): i32 {
  const guards = guardsOf(handle)
  const count = guardCount(guards)
  const record = setOf(set)
  if (guards == 0 || record == 0 || count >= GUARD_LIMIT || load<u32>(guards) > 1) return ERROR_ARGUMENT
  const entry = guards + 8 + (<usize>count << 3)
  store<u32>(entry, <u32>record)
  store<i32>(entry, rejects ? 1 : 0, 4)
  store<i32>(guards, count + 1, 4)
  retainSet(record)
  return 0
}

/** Record of the mask set of a guard. */
export function guardSet(guards: usize, index: i32): usize {
  return load<u32>(guards + 8 + (<usize>index << 3))
}

export function guardRejects(guards: usize, index: i32): bool {
  return load<i32>(guards + 8 + (<usize>index << 3), 4) != 0
}

export function retainGuards(guards: usize): void {
  if (guards != 0) store<u32>(guards, load<u32>(guards) + 1)
}

export function releaseGuards(guards: usize): void {
  if (guards == 0) return
  const users = load<u32>(guards) - 1
  store<u32>(guards, users)
  if (users > 0) return
  for (let i = 0; i < guardCount(guards); i++) releaseSet(guardSet(guards, i))
  blockFree(guards)
}

export function freeGuards(handle: i32): void {
  const guards = guardsOf(handle)
  if (guards == 0) return
  dropHandle(handle)
  releaseGuards(guards)
}
