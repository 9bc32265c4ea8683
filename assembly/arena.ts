/**
 * All memory of the core comes from here. The stub runtime's allocator is not used: nothing in this
 * module has a garbage-collected type.
 *
 *     0          __heap_base                                        memory.size()
 *     +-----------+-------+-------+-------+- - - - - - - - - -+------+
 *     | static    | chunk | slab  | chunk |   not yet given   | 16 B |
 *     +-----------+-------+-------+-------+- - - - - - - - - -+------+
 *                                         ^ brink, only moves up
 *
 * Two allocators take chunks at the brink and never give them back:
 *
 * - the *arena*: scratch, freed all at once by resetting to a mark (`alloc`, `mark`, `reset`);
 * - *blocks*: what lives until it is freed by name (tables, programs), from free lists by size
 *   class. Freed blocks are reused by their own class and never merged, so that alloc and free are
 *   constant time; a class is at most 25 % larger than what was asked for.
 *
 * The last 16 bytes of memory are never given out, so that every block has 16 readable bytes of
 * slack for vector loads. Blocks are 16-aligned. Out of memory is 0, never a trap.
 *
 * `seal()` forbids growth from then on: growing memory detaches every view the host holds. A host
 * with sockets reading straight into this memory reserves its budget at start, then seals.
 */

/** Readable bytes after every block. */
export const SLACK: usize = 16

const PAGE: usize = 65536
const LARGEST: usize = 1 << 30

let brink: usize = 0
let isSealed: bool = false

/** Takes `size` bytes (a multiple of 16) at the brink; 0 when there is no room. */
function take(size: usize): usize {
  if (brink == 0) brink = (__heap_base + 15) & ~15
  const start = brink
  const needed = start + size + SLACK
  const present = <usize>memory.size() * PAGE
  if (needed > present) {
    if (isSealed) return 0
    if (memory.grow(<i32>((needed - present + PAGE - 1) / PAGE)) < 0) return 0
  }
  brink = start + size
  return start
}

/** Grows memory to at least `pages` of 64 KiB; false when the engine refuses. */
export function reservePages(pages: i32): bool {
  const present = memory.size()
  if (pages <= present) return true
  if (isSealed) return false
  return memory.grow(pages - present) >= 0
}

/** From now on memory never grows; allocation beyond it gives 0. */
export function sealMemory(): void {
  isSealed = true
}

/** Can memory still grow? If not, caches that only save time stay small. */
export function isMemorySealed(): bool {
  return isSealed
}

/** Bytes never given out yet, without growing. */
export function untouchedBytes(): usize {
  const present = <usize>memory.size() * PAGE
  const start = brink == 0 ? (<usize>__heap_base + 15) & ~15 : brink
  return start + SLACK < present ? present - SLACK - start : 0
}

// --- arena -----------------------------------------------------------------------------------
//
//     chunk:  +0 previous chunk (u32)  +4 size with header (u32)  +8 unused  +16 bytes ...

const CHUNK_HEADER: usize = 16

let chunk: usize = 0
let top: usize = 0
let limit: usize = 0
let spare: usize = 0

/** A spare chunk of at least `size` bytes, or a new one; 0 when there is no room. */
function takeChunk(size: usize): usize {
  let before: usize = 0
  let candidate = spare
  while (candidate != 0) {
    const next = <usize>load<u32>(candidate)
    if (<usize>load<u32>(candidate, 4) >= size) {
      if (before == 0) spare = next
      else store<u32>(before, <u32>next)
      return candidate
    }
    before = candidate
    candidate = next
  }
  const fresh = take(size)
  if (fresh != 0) store<u32>(fresh, <u32>size, 4)
  return fresh
}

/** Scratch of `size` bytes, valid until a reset to an earlier mark; 0 when there is no room. */
export function arenaAlloc(size: usize): usize {
  if (size > LARGEST) return 0
  const rounded = (size + 15) & ~15
  if (chunk == 0 || limit - top < rounded) {
    const wanted = (rounded + CHUNK_HEADER + PAGE - 1) & ~(PAGE - 1)
    const fresh = takeChunk(wanted)
    if (fresh == 0) return 0
    store<u32>(fresh, <u32>chunk)
    chunk = fresh
    top = fresh + CHUNK_HEADER
    limit = fresh + <usize>load<u32>(fresh, 4)
  }
  const block = top
  top += rounded
  return block
}

/** The place to come back to with `arenaReset`. */
export function arenaMark(): usize {
  return top
}

/** Frees everything allocated since `place` was marked; 0 frees all. */
export function arenaReset(place: usize): void {
  while (chunk != 0) {
    const size = <usize>load<u32>(chunk, 4)
    if (place > chunk && place <= chunk + size) {
      top = place
      return
    }
    const previous = <usize>load<u32>(chunk)
    store<u32>(chunk, <u32>spare)
    spare = chunk
    chunk = previous
    limit = chunk == 0 ? 0 : chunk + <usize>load<u32>(chunk, 4)
  }
  top = 0
}

// --- blocks ----------------------------------------------------------------------------------
//
//     block:  -16 class (u32)  -12 state (u32)  -8 next free, only while free (u32)   +0 bytes ...

const BLOCK_HEADER: usize = 16
const USED: u32 = 0x44455355
const FREE: u32 = 0x45455246
const SLAB: usize = PAGE
/** One list head (u32) per size class. */
const FREE_LISTS: usize = memory.data(4 * 128)

let slabTop: usize = 0
let slabLimit: usize = 0

/** Sizes up to 128 go by 16; above, four classes to each power of two. */
// @ts-ignore: decorator
@inline
function classOf(size: usize): u32 {
  if (size <= 128) return <u32>((size + 15) >> 4)
  const log = <u32>(31 - clz(<u32>(size - 1)))
  return 9 + ((log - 7) << 2) + (<u32>((size - 1) >> (<usize>log - 2)) & 3)
}

// @ts-ignore: decorator
@inline
function sizeOfClass(index: u32): usize {
  if (index <= 8) return <usize>index << 4
  const log = <usize>((index - 9) >> 2) + 7
  return (<usize>((index - 9) & 3) + 5) << (log - 2)
}

/** A block of `size` bytes that lives until `blockFree`; not zeroed; 0 when there is no room. */
export function blockAlloc(size: usize): usize {
  if (size > LARGEST) return 0
  const index = classOf(size + BLOCK_HEADER)
  const list = FREE_LISTS + (<usize>index << 2)
  let block = <usize>load<u32>(list)
  if (block != 0) {
    store<u32>(list, load<u32>(block - 8))
  } else {
    const whole = sizeOfClass(index)
    const base = whole > SLAB / 2 ? take(whole) : carve(whole)
    if (base == 0) return 0
    block = base + BLOCK_HEADER
    store<u32>(block - 16, index)
  }
  store<u32>(block - 12, USED)
  return block
}

function carve(size: usize): usize {
  if (slabLimit - slabTop < size) {
    const slab = take(SLAB)
    if (slab == 0) return 0
    slabTop = slab
    slabLimit = slab + SLAB
  }
  const block = slabTop
  slabTop += size
  return block
}

/** Bytes that a block can hold, at least what was asked for. */
export function blockCapacity(block: usize): usize {
  return sizeOfClass(load<u32>(block - 16)) - BLOCK_HEADER
}

/** Gives a block back. 0 and a block that is already free are ignored. */
export function blockFree(block: usize): void {
  if (block == 0 || load<u32>(block - 12) != USED) return
  store<u32>(block - 12, FREE)
  const list = FREE_LISTS + (<usize>load<u32>(block - 16) << 2)
  store<u32>(block - 8, load<u32>(list))
  store<u32>(list, <u32>block)
}

/** Is there room for `size` bytes at `start`, slack included? Guards every span that a host gives. */
// @ts-ignore: decorator
@inline
export function isReadable(start: usize, size: usize): bool {
  const bytes = <u64>memory.size() * <u64>PAGE
  return <u64>start + <u64>size + <u64>SLACK <= bytes
}
