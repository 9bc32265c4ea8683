// One step of the automaton: from the ordered list of the threads' instructions (a *kernel*) and
// the next byte's class to the list after that byte. Both engines use this step: the DFA caches its
// results, the simulation does not. Its cost is at most the program's size, for any text.
import { blockAlloc, blockFree } from '../arena'
import { ASSERT_CHARACTER, ASSERT_LINE_END, ASSERT_LINE_START, ASSERT_TEXT_END, ASSERT_TEXT_START, ASSERT_WORD } from './node'
import { FACT_CONTINUATION, FACT_NEWLINE, FACT_WORD, KIND_LAZY, OP_ASSERT, OP_ENTER, OP_JUMP, OP_LOOP, OP_MATCH, OP_RANGE, OP_SPARSE, OP_SPLIT, P_BITS, P_CLASSES, P_COUNT, P_ENTRIES, P_FACTS, P_INSTRUCTIONS, PROGRAM_LINES, PROGRAM_NESTED, PROGRAM_WORDS } from './program'

/** Facts about the byte before the position; BEFORE_NOTHING at the text's edge. */
export const BEFORE_NOTHING: u32 = 4

/** Number of instructions for which there is scratch memory, and the scratch: one block, its parts by size. */
let scratchSize: u32 = 0
let marks: usize = 0
let stack: usize = 0
let list: usize = 0
/** The list after the step, `kernelCount` instructions. */
export let kernel: usize = 0
/** The list before the step, if the engine does not store it elsewhere. */
export let kernelBefore: usize = 0
export let kernelCount: u32 = 0
let generation: u32 = 0
/** For exploreNested: how often an instruction is being explored, and must not be explored again. */
let active: usize = 0
let blocked: usize = 0

/** Visits of instructions since the module started; tests of linear time use this unit. */
export let work: u64 = 0

/** Bytes that automata have read, including repeated reads. */
export let bytesRead: u64 = 0

/** Counts bytes read by stored transitions, each one unit of work. */
export function addWork(units: i32): void {
  work += <u64>units
  bytesRead += <u64>units
}

/** Allocates scratch for programs of `count` instructions, before matching. Returns false if there is no room. */
export function ensureScratch(count: u32): bool {
  if (count <= scratchSize) return true
  let size: u32 = max(scratchSize, 256)
  while (size < count) size <<= 1
  // Every visited instruction leaves at most one entry on the stack and adds two (nested: four and one).
  const bytes = <usize>size * 4
  const block = blockAlloc(bytes * 12 + 64)
  if (block == 0) return false
  blockFree(marks)
  marks = block
  memory.fill(marks, 0, bytes * 3)
  generation = 0
  active = marks + bytes
  blocked = active + bytes
  list = blocked + bytes
  kernel = list + bytes
  kernelBefore = kernel + bytes
  stack = kernelBefore + bytes
  scratchSize = size
  return true
}

/** Starts a new set of visited instructions. */
function nextGeneration(): u32 {
  if (++generation == 0) {
    memory.fill(marks, 0, <usize>scratchSize * 4)
    generation = 1
  }
  return generation
}

/** Returns the facts about a byte of class `c` that the program's assertions can use afterwards. */
export function factsKept(program: usize, c: u32): u32 {
  const bits = load<u32>(program, P_BITS)
  const kept: u32 = (bits & PROGRAM_WORDS ? FACT_WORD : 0) | (bits & PROGRAM_LINES ? FACT_NEWLINE : 0)
  return <u32>load<u8>(program + c, P_FACTS) & kept
}

function holds(kind: u32, before: u32, after: u32, isEnd: bool): bool {
  if (kind == ASSERT_TEXT_START) return (before & BEFORE_NOTHING) != 0
  if (kind == ASSERT_TEXT_END) return isEnd
  if (kind == ASSERT_LINE_START) return (before & (BEFORE_NOTHING | FACT_NEWLINE)) != 0
  if (kind == ASSERT_LINE_END) return isEnd || (after & FACT_NEWLINE) != 0
  if (kind == ASSERT_CHARACTER) return (after & FACT_CONTINUATION) == 0
  return ((before & FACT_WORD) != (after & FACT_WORD)) == (kind == ASSERT_WORD)
}

/** True if the exploration from one thread reached the match instruction. */
let sawMatch: bool = false
let listCount: u32 = 0

/** Appends the consuming instructions that are reachable from `start` to `list`, in order of preference. */
function explore(program: usize, start: u32, before: u32, c: u32, isCut: bool): void {
  const code = <usize>load<u32>(program, P_INSTRUCTIONS)
  const after = <u32>load<u8>(program + c, P_FACTS)
  const isEnd = c == load<u32>(program, P_CLASSES)
  const seen = generation
  let depth: usize = 4
  store<u32>(stack, start)
  while (depth > 0) {
    depth -= 4
    const pc = load<u32>(stack + depth)
    const mark = marks + (<usize>pc << 2)
    if (load<u32>(mark) == seen) continue
    store<u32>(mark, seen)
    work++
    const at = code + (<usize>pc << 4)
    const op = <u32>load<u8>(at)
    if (op <= OP_SPARSE) {
      store<u32>(list + (<usize>(listCount++) << 2), pc)
    } else if (op == OP_SPLIT || op == OP_LOOP || op == OP_ENTER) {
      if (op == OP_ENTER) store<u32>(marks + (<usize>load<u32>(at, 12) << 2), seen)
      store<u32>(stack + depth, load<u32>(at, 8))
      store<u32>(stack + depth, load<u32>(at, 4), 4)
      depth += 8
    } else if (op == OP_JUMP || (op == OP_ASSERT && holds(load<u8>(at, 3), before, after, isEnd))) {
      store<u32>(stack + depth, load<u32>(at, 4))
      depth += 4
    } else if (op == OP_MATCH) {
      sawMatch = true
      if (isCut) return
    }
  }
}

// --- repetitions of nothing within repetitions of nothing ----------------------------------------
//
// Visiting each instruction once differs from JavaScript if such repetitions are nested: an iteration of the outer one
// may return to an inner one that is still being explored since before that iteration, and then the inner
// one's remaining alternatives come first there, not later. Therefore an instruction that is being explored
// may be explored again, unless the iteration of its loop would be empty: entering a
// loop's body blocks the return to its head. A completely explored instruction is not explored again.
// The number of visits is limited to a multiple of the program's size, so that a step stays linear.

const VISIT: u32 = 0
const LEAVE: u32 = 1 << 30
const UNBLOCK: u32 = 2 << 30
const BLOCK: u32 = 3 << 30
const AGAIN_LIMIT: u32 = 16

let nestedDepth: u32 = 0

// @ts-ignore: decorator
@inline
function pushNested(entry: u32): void {
  store<u32>(stack + (<usize>(nestedDepth++) << 2), entry)
}

// @ts-ignore: decorator
@inline
function count(counters: usize, pc: u32, change: i32): void {
  const at = counters + (<usize>pc << 2)
  store<u32>(at, load<u32>(at) + change)
}

/** Like `explore`, but stops at a match. */
function exploreNested(program: usize, start: u32, before: u32, c: u32): void {
  const code = <usize>load<u32>(program, P_INSTRUCTIONS)
  const after = <u32>load<u8>(program + c, P_FACTS)
  const isEnd = c == load<u32>(program, P_CLASSES)
  const size = load<u32>(program, P_COUNT)
  let visits: u32 = 0
  nestedDepth = 0
  pushNested(start)
  while (nestedDepth > 0) {
    const entry = load<u32>(stack + (<usize>(--nestedDepth) << 2))
    const tag = entry & BLOCK
    const pc = entry & ~BLOCK
    if (tag == LEAVE) count(active, pc, -1)
    else if (tag == UNBLOCK) count(blocked, pc, -1)
    else if (tag == BLOCK) count(blocked, pc, 1)
    if (tag != VISIT || sawMatch || load<u32>(blocked + (<usize>pc << 2)) != 0) continue
    const mark = marks + (<usize>pc << 2)
    if (load<u32>(mark) == generation) {
      if (load<u32>(active + (<usize>pc << 2)) == 0 || nestedDepth > size || visits > size * AGAIN_LIMIT) continue
    }
    store<u32>(mark, generation)
    visits++
    work++
    visitNested(code + (<usize>pc << 4), pc, before, after, isEnd)
  }
}

function visitNested(at: usize, pc: u32, before: u32, after: u32, isEnd: bool): void {
  const op = <u32>load<u8>(at)
  if (op <= OP_SPARSE) {
    store<u32>(list + (<usize>(listCount++) << 2), pc)
    return
  }
  if (op == OP_MATCH) {
    sawMatch = true
    return
  }
  if (op == OP_ASSERT && !holds(load<u8>(at, 3), before, after, isEnd)) return
  const x = load<u32>(at, 4)
  const y = load<u32>(at, 8)
  count(active, pc, 1)
  pushNested(LEAVE | pc)
  if (op == OP_JUMP || op == OP_ASSERT) {
    pushNested(x)
  } else if (op == OP_SPLIT) {
    pushNested(y)
    pushNested(x)
  } else {
    const head = op == OP_LOOP ? pc : load<u32>(at, 12)
    if (load<u32>(at) & KIND_LAZY) {
      pushNested(UNBLOCK | head)
      pushNested(y)
      pushNested(BLOCK | head)
      pushNested(x)
    } else {
      pushNested(y)
      pushNested(UNBLOCK | head)
      pushNested(x)
      count(blocked, head, 1)
    }
  }
}

/** Appends `pc` to the new kernel unless the kernel has it. */
// @ts-ignore: decorator
@inline
function addToKernel(pc: u32): void {
  const mark = marks + (<usize>pc << 2)
  if (load<u32>(mark) == generation) return
  store<u32>(mark, generation)
  store<u32>(kernel + (<usize>(kernelCount++) << 2), pc)
}

function consume(program: usize, c: u32): void {
  const code = <usize>load<u32>(program, P_INSTRUCTIONS)
  const entries = <usize>load<u32>(program, P_ENTRIES)
  for (let i: u32 = 0; i < listCount; i++) {
    const at = code + (<usize>load<u32>(list + (<usize>i << 2)) << 4)
    if (load<u8>(at) == OP_RANGE) {
      if (c >= <u32>load<u8>(at, 1) && c <= <u32>load<u8>(at, 2)) addToKernel(load<u32>(at, 4))
      continue
    }
    let entry = entries + (<usize>load<u32>(at, 12) << 3)
    const end = entry + (<usize>load<u32>(at, 8) << 3)
    work += <u64>(end - entry) >> 3
    for (; entry < end; entry += 8) {
      if (c >= <u32>load<u8>(entry) && c <= <u32>load<u8>(entry, 1)) addToKernel(load<u32>(entry, 4))
    }
  }
}

/**
 * Steps the `count` threads at `threads` over a byte of class `c` (the class count: the text's edge);
 * `before` has the facts about the previous byte. The next threads are in `kernel`, `kernelCount`. Returns whether
 * a match ends at the position *before* the byte. With `isCut`, threads after a match are dropped, because a
 * preferred thread has matched.
 */
export function stepThreads(program: usize, threads: usize, count: u32, before: u32, c: u32, isCut: bool): bool {
  bytesRead++
  nextGeneration()
  sawMatch = false
  listCount = 0
  const isNested = isCut && (load<u32>(program, P_BITS) & PROGRAM_NESTED) != 0
  for (let i: u32 = 0; i < count; i++) {
    const start = load<u32>(threads + (<usize>i << 2))
    if (isNested) exploreNested(program, start, before, c)
    else explore(program, start, before, c, isCut)
    if (sawMatch && isCut) break
  }
  nextGeneration()
  kernelCount = 0
  if (c != load<u32>(program, P_CLASSES)) consume(program, c)
  return sawMatch
}

/** Makes the kernel after the last step the input of the next step. */
export function swapKernels(): void {
  const after = kernel
  kernel = kernelBefore
  kernelBefore = after
}

/** Starts a kernel of one thread in `kernelBefore`. */
export function seedKernel(pc: u32): void {
  store<u32>(kernelBefore, pc)
}

/** Sets the instruction at which `nextClasses` begins. */
export function beginClasses(start: u32): void {
  seedKernel(start)
  kernelCount = 1
}

/**
 * Marks in `classes` (a byte each) every class that the next byte of a match can have, assertions taken as
 * true, and continues after that byte. Returns false if a match may end before it.
 */
export function nextClasses(program: usize, classes: usize): bool {
  const code = <usize>load<u32>(program, P_INSTRUCTIONS)
  const seen = nextGeneration()
  listCount = 0
  let depth = <usize>kernelCount << 2
  memory.copy(stack, kernelBefore, depth)
  while (depth > 0) {
    depth -= 4
    const pc = load<u32>(stack + depth)
    if (load<u32>(marks + (<usize>pc << 2)) == seen) continue
    store<u32>(marks + (<usize>pc << 2), seen)
    const at = code + (<usize>pc << 4)
    const op = <u32>load<u8>(at)
    if (op == OP_MATCH) return false
    if (op <= OP_SPARSE) {
      store<u32>(list + (<usize>(listCount++) << 2), pc)
      continue
    }
    store<u32>(stack + depth, load<u32>(at, 4))
    depth += 4
    if (op == OP_SPLIT || op == OP_LOOP || op == OP_ENTER) {
      store<u32>(stack + depth, load<u32>(at, 8))
      depth += 4
    }
  }
  passClasses(program, classes)
  return true
}

/** Marks the classes that the instructions in `list` consume, and stores their next instructions in `kernelBefore`. */
function passClasses(program: usize, classes: usize): void {
  const code = <usize>load<u32>(program, P_INSTRUCTIONS)
  nextGeneration()
  kernelCount = 0
  for (let i: u32 = 0; i < listCount; i++) {
    const at = code + (<usize>load<u32>(list + (<usize>i << 2)) << 4)
    if (load<u8>(at) == OP_RANGE) {
      markClasses(classes, at + 1)
      addToKernel(load<u32>(at, 4))
      continue
    }
    const first = <usize>load<u32>(program, P_ENTRIES) + (<usize>load<u32>(at, 12) << 3)
    for (let entry = first; entry < first + (<usize>load<u32>(at, 8) << 3); entry += 8) {
      markClasses(classes, entry)
      addToKernel(load<u32>(entry, 4))
    }
  }
  swapKernels()
}

/** Marks the classes of the range at `place`: low u8, high u8. */
function markClasses(classes: usize, place: usize): void {
  for (let c = <u32>load<u8>(place); c <= <u32>load<u8>(place, 1); c++) store<u8>(classes + c, 1)
}
