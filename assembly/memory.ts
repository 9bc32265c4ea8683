// Memory and failures: the part of the ABI that core.wasm and core-texts.wasm have in common.
import { ERROR_MEMORY } from './abi'
import { arenaAlloc, arenaMark, arenaReset, blockAlloc, blockFree, reservePages, sealMemory, untouchedBytes } from './arena'
import { lastCode, lastOffset } from './refusal'

/** Scratch of `size` bytes, 16-aligned, until `reset` to an earlier mark; 0 without room. */
export function alloc(size: i32): usize {
  return size < 0 ? 0 : arenaAlloc(<usize>size)
}

/** The place for `reset` to come back to. */
export function mark(): usize {
  return arenaMark()
}

/** Frees all scratch since `place` was marked; 0 frees all. */
export function reset(place: usize): void {
  arenaReset(place)
}

/** A block of `size` bytes, 16-aligned, that lives until `block_free`; 0 without room. */
export function block_new(size: i32): usize {
  return size < 0 ? 0 : blockAlloc(<usize>size)
}

/** Gives a block back. 0 is ignored; anything else must have come from `block_new`. */
export function block_free(block: usize): void {
  blockFree(block)
}

/** Copies `size` bytes to `to`; the two may overlap. */
export function copy(to: usize, from: usize, size: i32): void {
  memory.copy(to, from, <usize>size)
}

/** Grows memory to at least `pages` of 64 KiB: 0, or ERROR_MEMORY. */
export function reserve(pages: i32): i32 {
  return reservePages(pages) ? 0 : ERROR_MEMORY
}

/** From now on memory never grows. */
export function seal(): void {
  sealMemory()
}

/** Bytes of memory that nothing has asked for yet. */
export function untouched(): f64 {
  return <f64>untouchedBytes()
}

/** The code of the last call that was refused. */
export function last_error(): i32 {
  return lastCode()
}

/** Where in its input the last refused call gave up, in bytes; -1 when there is no place. */
export function last_error_offset(): i32 {
  return lastOffset()
}
