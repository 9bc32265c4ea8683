/**
 * Byte pair encoding of long pieces in fixed memory and linear time, window by window. A window is merged with
 * vectors or, if it must be larger, with a list of parts and a heap of ranks.
 *
 * Windows give exact results because a sequence of tokens is the encoding of its bytes if and only if every
 * two adjacent tokens are the encoding of theirs. A window begins with the bytes of the last few tokens found
 * so far. If its first token is compatible with the last token before the window, all earlier tokens are
 * final; otherwise the window begins earlier.
 */
import { ERROR_MEMORY } from '../abi'
import { blockAlloc, blockFree } from '../arena'
import { fail } from '../refusal'
import { addWork, mergeParts, PART_LIMIT, parts, splitParts } from './merge'
import { mergeOf, NONE, splits, tokenLength } from './tables'
import { coverTail, uncoverTail } from './text'

/** New bytes of a window, and maximum of repeated bytes: few enough for merging with vectors. */
const WINDOW: usize = 64
/** New bytes of a window if the last tokens are longer than that. */
const HEAP_WINDOW: usize = 4096
/** Number of earlier tokens that a window repeats at first. */
const CARRY: u32 = 2
/** Maximum bytes of a window. */
const LARGEST_WINDOW: usize = 65536
/** Number of tokens that a window may repeat. */
const HISTORY: u32 = 4096

// --- stability of two adjacent tokens ---------------------------------------------------------------

/**
 * Returns true if (left, right) is the encoding of its own bytes. Undoes the merges that made the two tokens,
 * the last one first. The parts at the border must not have merged before the merge that is undone.
 */
function isStable(left: u32, right: u32): bool {
  let x = left
  let y = right
  let bound = NONE
  while (true) {
    if (mergeOf(x, y) < bound) return false
    if (x < 256 && y < 256) return true
    if (x > y) {
      bound = x
      x = load<u32>(splits + (<usize>x << 3), 4)
    } else {
      // If two merges have the same rank, the left one came first.
      bound = y + 1
      y = load<u32>(splits + (<usize>y << 3))
    }
  }
}

// --- one window -------------------------------------------------------------------------------------
//
//     node: id u32, next u32, before u32, rank u32 of the merge with next; entries of the heap are
//     rank << 32 | node, and stale if the node's rank has changed since

let nodes: usize = 0
let heap: usize = 0
let heapSize: u32 = 0

function push(value: u64): void {
  let i = heapSize++
  let steps: u32 = 1
  while (i > 0) {
    const parent = (i - 1) >> 1
    const other = load<u64>(heap + (<usize>parent << 3))
    if (other <= value) break
    store<u64>(heap + (<usize>i << 3), other)
    i = parent
    steps++
  }
  store<u64>(heap + (<usize>i << 3), value)
  addWork(steps)
}

function pop(): u64 {
  const top = load<u64>(heap)
  const size = --heapSize
  const value = load<u64>(heap + (<usize>size << 3))
  let i: u32 = 0
  let steps: u32 = 1
  while (true) {
    let child = i * 2 + 1
    if (child >= size) break
    let least = load<u64>(heap + (<usize>child << 3))
    if (child + 1 < size) {
      const other = load<u64>(heap + (<usize>child << 3), 8)
      if (other < least) {
        least = other
        child++
      }
    }
    if (least >= value) break
    store<u64>(heap + (<usize>i << 3), least)
    i = child
    steps++
  }
  store<u64>(heap + (<usize>i << 3), value)
  addWork(steps)
  return top
}

// @ts-ignore: decorator
@inline
function nodeAt(index: u32): usize {
  return nodes + (<usize>index << 4)
}

/** Sets the rank of a node's merge with the next one. */
// @ts-ignore: decorator
@inline
function setRank(index: u32, rank: u32): void {
  store<u32>(nodeAt(index), rank, 12)
  if (rank != NONE) push((<u64>rank << 32) | index)
}

function listParts(ids: usize, count: u32): void {
  heapSize = 0
  for (let i: u32 = 0; i < count; i++) {
    const node = nodeAt(i)
    const id = load<u32>(ids + (<usize>i << 2))
    store<u32>(node, id)
    store<u32>(node, i + 1, 4)
    store<u32>(node, i - 1, 8)
    setRank(i, i + 1 < count ? mergeOf(id, load<u32>(ids + (<usize>i << 2), 4)) : NONE)
  }
}

/** Merges node `i` with the next one to `id`. */
function joinNext(i: u32, id: u32, count: u32): void {
  const node = nodeAt(i)
  const gone = nodeAt(load<u32>(node, 4))
  const next = load<u32>(gone, 4)
  store<u32>(gone, NONE, 12)
  store<u32>(node, id)
  store<u32>(node, next, 4)
  if (next < count) {
    store<u32>(nodeAt(next), i, 8)
    setRank(i, mergeOf(id, load<u32>(nodeAt(next))))
  } else {
    store<u32>(node, NONE, 12)
  }
  const before = load<u32>(node, 8)
  if (before != NONE) setRank(before, mergeOf(load<u32>(nodeAt(before)), id))
}

/** Encodes `count` parts (ids) in place. Returns the number of tokens. */
function mergeList(ids: usize, count: u32): u32 {
  listParts(ids, count)
  while (heapSize > 0) {
    const top = pop()
    const i = <u32>top
    const rank = <u32>(top >> 32)
    if (load<u32>(nodeAt(i), 12) == rank) joinNext(i, rank, count)
  }
  let tokens: u32 = 0
  for (let i: u32 = 0; i < count; i = load<u32>(nodeAt(i), 4)) {
    store<u32>(ids + (<usize>tokens << 2), load<u32>(nodeAt(i)))
    tokens++
  }
  return tokens
}

// --- window by window ---------------------------------------------------------------------------------
//
//     workspace: history (u32 each, with room for HISTORY tokens and a window), ids, nodes, heap

let workspace: usize = 0
let history: usize = 0
let ids: usize = 0
/** Tokens in the history. */
let kept: u32 = 0

/** The output for final tokens: an address, and the number of ids that still fit. */
let out: usize = 0
let room: u32 = 0
let total: u32 = 0

/** Starts to count tokens, and to write as many as fit to `to`. */
export function startOutput(to: usize, limit: u32): void {
  out = to
  room = limit
  total = 0
}

export function outputTotal(): u32 {
  return total
}

/** Number of final tokens. */
export function output(from: usize, count: u32): void {
  total += count
  const some = min(count, room)
  if (some == 0) return
  memory.copy(out, from, <usize>some << 2)
  out += <usize>some << 2
  room -= some
}

/** Bytes of the workspace. */
let capacity: usize = 0

/** Replaces the workspace with a larger one with the same history. Returns false if there is no memory. */
function enlarge(needed: usize): bool {
  const end = uncoverTail()
  const fresh = blockAlloc(needed)
  if (fresh != 0) {
    memory.copy(fresh, history, <usize>kept << 2)
    blockFree(workspace)
    workspace = fresh
    capacity = needed
  }
  coverTail(end)
  return fresh != 0
}

/** Provides a workspace for windows of `size` bytes, with the same history. Returns false if there is no memory. */
function ready(size: usize): bool {
  const needed = (<usize>HISTORY << 2) + size * (4 + 4 + 16 + 24) + 64
  if (capacity < needed && !enlarge(needed)) return false
  history = workspace
  ids = (history + (<usize>HISTORY << 2) + size * 4 + 15) & ~15
  nodes = ids + ((size * 4 + 15) & ~15)
  heap = nodes + size * 16
  return true
}

/** Returns the length in bytes of the last `count` tokens of the history. */
function bytesBack(count: u32): usize {
  let bytes: usize = 0
  for (let i = kept - count; i < kept; i++) bytes += tokenLength(load<u32>(history + (<usize>i << 2)))
  return bytes
}

/** Address of the tokens of the last window. */
let found: usize = 0

/** Encodes from the last `taken` tokens to `stop`. Returns the number of tokens at `found`, or a code. */
function encodeWindow(from: usize, stop: usize, taken: u32): i32 {
  const start = from - bytesBack(taken)
  const size = stop - start
  addWork(size)
  if (size <= PART_LIMIT) {
    found = parts
    return <i32>mergeParts(splitParts(start, stop, parts))
  }
  if (size > LARGEST_WINDOW || !ready(size)) return fail(ERROR_MEMORY)
  found = ids
  return <i32>mergeList(ids, splitParts(start, stop, ids))
}

/** Writes all but the last HISTORY / 2 tokens to the output if there are more than HISTORY. */
function settle(): void {
  if (kept <= HISTORY) return
  const old = kept - HISTORY / 2
  output(history, old)
  memory.copy(history, history + (<usize>old << 2), <usize>(HISTORY / 2) << 2)
  kept = HISTORY / 2
}

/** Encodes the bytes up to `stop`. Returns 0 or a code. */
function takeWindow(from: usize, stop: usize): i32 {
  let taken = min(CARRY, kept)
  while (true) {
    const count = encodeWindow(from, stop, taken)
    if (count < 0) return count
    const before = history + (<usize>(kept - taken) << 2)
    const isFirst = taken == kept && total == totalBefore
    if (isFirst || (taken < kept && isStable(load<u32>(before - 4), load<u32>(found)))) {
      memory.copy(before, found, <usize>count << 2)
      kept = kept - taken + <u32>count
      return 0
    }
    if (taken == kept) return fail(ERROR_MEMORY)
    taken = min(taken << 1, kept)
  }
}

/** Tokens that were final before this piece. */
let totalBefore: u32 = 0

/**
 * Encodes a piece of any length to the output. Returns 0, or ERROR_MEMORY if there is no room for the
 * workspace, or if tokens of the vocabulary depend on each other over more bytes than LARGEST_WINDOW (those
 * of the known vocabularies do over a few bytes).
 */
export function encodeLong(start: usize, end: usize): i32 {
  kept = 0
  totalBefore = total
  if (!ready(PART_LIMIT)) return fail(ERROR_MEMORY)
  for (let from = start; from < end; ) {
    const isShort = bytesBack(min(CARRY, kept)) <= WINDOW
    const stop = min(from + (isShort ? WINDOW : HEAP_WINDOW), end)
    const code = takeWindow(from, stop)
    if (code < 0) return code
    settle()
    from = stop
  }
  output(history, kept)
  return 0
}
