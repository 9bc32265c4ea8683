// Growing byte vectors of the compiler, in arena scratch: the reset at the end of a compile frees them.
// If there is no memory, a push records the failure and returns the start of the old buffer: callers
// write there without harm and check `errorCode` at the end.
import { arenaAlloc } from '../arena'
import { ERROR_MEMORY } from '../abi'
import { fail } from './codes'

@unmanaged
export class Vector {
  data: usize
  used: u32
  capacity: u32
}

const FIRST_BYTES: u32 = 4096
/** The address for pushes if there is no first buffer. */
const BLACK_HOLE: usize = memory.data(4096)

/** Makes an empty vector in new scratch memory. */
export function vectorStart(vector: Vector): void {
  vector.used = 0
  vector.capacity = FIRST_BYTES
  vector.data = arenaAlloc(FIRST_BYTES)
  if (vector.data != 0) return
  vector.data = BLACK_HOLE
  fail(ERROR_MEMORY, 0)
}

/** Returns the address of `bytes` (at most 4096) new bytes at the vector's end. */
export function vectorPush(vector: Vector, bytes: u32): usize {
  if (vector.used + bytes > vector.capacity) {
    const bigger = arenaAlloc(vector.capacity * 2)
    if (bigger == 0) {
      fail(ERROR_MEMORY, 0)
      vector.used = bytes
      return vector.data
    }
    memory.copy(bigger, vector.data, vector.used)
    vector.data = bigger
    vector.capacity *= 2
  }
  const at = vector.data + vector.used
  vector.used += bytes
  return at
}
