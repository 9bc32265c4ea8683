// A compiled pattern: one block, immutable, and the builder that fills it.
//
//   +0   instruction count   +4  anchored start   +8  search start   +12 class count
//   +16  PROGRAM_* bits      +20 instructions     +24 entries        +28 bytes of the block
//   +32  class of each byte (256)
//   +288 FACT_* bits of each class, the end of the text being the last class (2 to 257 bytes)
//   then instructions, 16 bytes:  op u8 | low u8 | high u8 | kind u8 | x u32 | y u32 | arg u32
//        entries, 8 bytes:        low u8 | high u8 | unused u16 | target u32
//
// Bytes that no instruction and no assertion distinguishes form a class, and classes are numbered in the
// order of their bytes, so that a byte range is a class range. While a program is being built, `low`
// and `high` are bytes; in the finished one they are classes.
import { blockAlloc } from '../arena'
import { ERROR_MEMORY, REGEX_PROGRAM_TOO_LARGE } from '../abi'
import { isWord } from './ascii'
import { errorCode, fail, MAX_INSTRUCTIONS } from './codes'
import { Vector, vectorPush, vectorStart } from './vector'

/** Consumes a byte of low...high, then continues at x. */
export const OP_RANGE: u32 = 0
/** Consumes a byte of one of y entries from arg on, then continues at the entry's target. */
export const OP_SPARSE: u32 = 1
/** Tries x, then y. */
export const OP_SPLIT: u32 = 2
/** Continues at x. */
export const OP_JUMP: u32 = 3
/** Like SPLIT, but x may not reach the jump `arg` without consuming a byte: see compile.ts. */
export const OP_ENTER: u32 = 4
/** Continues at x if the assertion ASSERT_* `kind` is true. */
export const OP_ASSERT: u32 = 5
export const OP_MATCH: u32 = 6
/** A SPLIT at the start of an unbounded repetition whose body may match nothing; see exploreNested. */
export const OP_LOOP: u32 = 7
/** `kind` of OP_LOOP and OP_ENTER if leaving (x) is preferred to the body (y). */
export const KIND_LAZY: u32 = 1 << 24

export const PROGRAM_REVERSE: u32 = 1
export const PROGRAM_WORDS: u32 = 2
export const PROGRAM_LINES: u32 = 4
/** Repetitions that may match nothing are nested, so exploreNested is used. */
export const PROGRAM_NESTED: u32 = 8

export const FACT_WORD: u32 = 1
export const FACT_NEWLINE: u32 = 2
export const FACT_CONTINUATION: u32 = 4

export const P_COUNT: usize = 0
export const P_ANCHORED: usize = 4
export const P_SEARCH: usize = 8
export const P_CLASSES: usize = 12
export const P_BITS: usize = 16
export const P_INSTRUCTIONS: usize = 20
export const P_ENTRIES: usize = 24
export const P_SIZE: usize = 28
export const P_CLASS_OF: usize = 32
export const P_FACTS: usize = 288

/** Not an instruction. */
export const NOWHERE: u32 = 0xffffffff

const instructions = changetype<Vector>(memory.data(16))
const entries = changetype<Vector>(memory.data(16))
/** Recent consuming instructions by content, so that equal tails are shared: 1 + index, or 0. */
const RECENT_SLOTS: u32 = 1024
const RECENT = memory.data(4096)

export function builderStart(): void {
  vectorStart(instructions)
  vectorStart(entries)
  memory.fill(RECENT, 0, RECENT_SLOTS * 4)
}

export function instructionCount(): u32 {
  return instructions.used >> 4
}

function at(index: u32): usize {
  return instructions.data + (<usize>index << 4)
}

/** Appends an instruction. Returns its index. */
export function emit(op: u32, x: u32, y: u32 = 0, argument: u32 = 0): u32 {
  const index = instructionCount()
  if (index >= MAX_INSTRUCTIONS) {
    fail(REGEX_PROGRAM_TOO_LARGE, 0)
    return 0
  }
  const place = vectorPush(instructions, 16)
  store<u32>(place, op)
  store<u32>(place, x, 4)
  store<u32>(place, y, 8)
  store<u32>(place, argument, 12)
  return index
}

/** Sets the targets of an instruction that was emitted before they were known. */
export function patch(index: u32, x: u32, y: u32): void {
  store<u32>(at(index), x, 4)
  store<u32>(at(index), y, 8)
}

export function emitAssert(kind: u32, x: u32): u32 {
  return emit(OP_ASSERT | (kind << 24), x)
}

/** Consumes a byte of low...high, then continues at x. Reuses an equal recent instruction. */
export function emitRange(low: u32, high: u32, x: u32): u32 {
  const head = OP_RANGE | (low << 8) | (high << 16)
  const slot = RECENT + <usize>((((head * 0x9e3779b1) ^ (x * 0x85ebca6b)) >> 22) << 2)
  const known = load<u32>(slot)
  if (known != 0 && known <= instructionCount()) {
    const place = at(known - 1)
    if (load<u32>(place) == head && load<u32>(place, 4) == x) return known - 1
  }
  const index = emit(head, x)
  store<u32>(slot, index + 1)
  return index
}

/** Consumes one of `count` entries at `list`. A single entry becomes a range, and equal lists are shared. */
export function emitSparse(list: usize, count: u32): u32 {
  if (count == 1) return emitRange(load<u8>(list), load<u8>(list, 1), load<u32>(list, 4))
  let hash: u32 = count
  for (let i: u32 = 0; i < count * 2; i++) hash = (hash ^ load<u32>(list + (<usize>i << 2))) * 0x9e3779b1
  const slot = RECENT + <usize>((hash >> 22) << 2)
  const known = load<u32>(slot)
  if (known != 0 && known <= instructionCount()) {
    const place = at(known - 1)
    if (load<u32>(place) == OP_SPARSE && load<u32>(place, 8) == count) {
      if (memory.compare(entries.data + (<usize>load<u32>(place, 12) << 3), list, count << 3) == 0) return known - 1
    }
  }
  const first = entries.used >> 3
  if (first + count > MAX_INSTRUCTIONS * 2) {
    fail(REGEX_PROGRAM_TOO_LARGE, 0)
    return 0
  }
  for (let i: u32 = 0; i < count; i++) store<u64>(vectorPush(entries, 8), load<u64>(list + (<usize>i << 3)))
  const index = emit(OP_SPARSE, 0, count, first)
  store<u32>(slot, index + 1)
  return index
}

// --- finishing -------------------------------------------------------------------------------

/** 1 if a class begins here. */
const CUTS = memory.data(272)

function cut(low: u32, high: u32): void {
  store<u8>(CUTS + low, 1)
  store<u8>(CUTS + high + 1, 1)
}

function findCuts(bits: u32, isSearch: bool): void {
  memory.fill(CUTS, 0, 272)
  for (let i: u32 = 0; i < instructionCount(); i++) {
    const place = at(i)
    if (load<u8>(place) == OP_RANGE) cut(load<u8>(place, 1), load<u8>(place, 2))
  }
  for (let place = entries.data; place < entries.data + entries.used; place += 8) cut(load<u8>(place), load<u8>(place, 1))
  if (bits & PROGRAM_WORDS) {
    cut(48, 57)
    cut(65, 90)
    cut(95, 95)
    cut(97, 122)
  }
  if (bits & PROGRAM_LINES) cut(10, 10)
  if (isSearch) cut(0x80, 0xbf)
}

/** Returns the number of classes. */
function countClasses(): u32 {
  let count: u32 = 1
  for (let byte: u32 = 1; byte < 256; byte++) count += load<u8>(CUTS + byte)
  return count
}

/** Numbers the classes into `program`. */
function numberClasses(program: usize): void {
  let current: u32 = 0
  for (let byte: u32 = 0; byte < 256; byte++) {
    if (byte > 0 && load<u8>(CUTS + byte)) current++
    store<u8>(program + byte, current, P_CLASS_OF)
    let facts: u32 = isWord(byte) ? FACT_WORD : 0
    if (byte == 10) facts |= FACT_NEWLINE
    if ((byte & 0xc0) == 0x80) facts |= FACT_CONTINUATION
    store<u8>(program + current, facts, P_FACTS)
  }
  store<u8>(program + current + 1, 0, P_FACTS)
}

/** Turns the byte range at `place` into a class range. */
function toClasses(program: usize, place: usize): void {
  store<u8>(place, load<u8>(program + load<u8>(place), P_CLASS_OF))
  store<u8>(place, load<u8>(program + load<u8>(place, 1), P_CLASS_OF), 1)
}

/** Returns the finished program in a separate block; 0 after a failure. */
export function finishProgram(anchored: u32, search: u32, bits: u32): usize {
  if (errorCode != 0) return 0
  findCuts(bits, search != NOWHERE)
  const classes = countClasses()
  const head = (P_FACTS + classes + 1 + 7) & ~7
  const bytes = head + instructions.used + entries.used
  const program = blockAlloc(bytes)
  if (program == 0) return fail(ERROR_MEMORY, 0)
  const body = program + head
  store<u32>(program, instructionCount(), P_COUNT)
  store<u32>(program, anchored, P_ANCHORED)
  store<u32>(program, search, P_SEARCH)
  store<u32>(program, bits, P_BITS)
  store<u32>(program, <u32>body, P_INSTRUCTIONS)
  store<u32>(program, <u32>body + instructions.used, P_ENTRIES)
  store<u32>(program, <u32>bytes, P_SIZE)
  memory.copy(body, instructions.data, instructions.used)
  memory.copy(body + instructions.used, entries.data, entries.used)
  numberClasses(program)
  store<u32>(program, classes, P_CLASSES)
  const split = body + instructions.used
  for (let place = body; place < split; place += 16) if (load<u8>(place) == OP_RANGE) toClasses(program, place + 1)
  for (let place = split; place < split + entries.used; place += 8) toClasses(program, place)
  return program
}
