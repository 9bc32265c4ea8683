/**
 * Byte pair encoding of long pieces in fixed memory and linear time: window by window, each by vectors, or by a
 * list of parts and a heap of ranks where a window must be larger.
 *
 * What makes windows exact: tokens in a row are the encoding of their bytes if and only if each two
 * neighbours are the encoding of theirs. So a window begins with the bytes of the last few tokens found
 * so far; when its first token fits the last one kept, all before it stays as it is, else more are
 * taken back.
 */
import { ERROR_MEMORY } from '../abi'
import { blockAlloc, blockFree } from '../arena'
import { fail } from '../refusal'
import { addWork, mergeParts, PART_LIMIT, parts, splitParts } from './merge'
import { mergeOf, NONE, splits, tokenLength } from './tables'
import { coverTail, uncoverTail } from './text'

/** New bytes of a window, and most bytes taken back: few enough for merging by vectors. */
const WINDOW: usize = 64
/** New bytes of a window when the last tokens are longer than that. */
const HEAP_WINDOW: usize = 4096
/** Tokens taken back at first. */
const CARRY: u32 = 2
/** Bytes of a window at most. */
const LARGEST_WINDOW: usize = 65536
/** Tokens kept for taking back. */
const HISTORY: u32 = 4096

// --- do two tokens stay two? ------------------------------------------------------------------------

/**
 * Is (left, right) the encoding of its own bytes? Undoes the merges that made the two, last one first:
 * what met at the border meanwhile must not have merged before the merge that is undone.
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
      // Of two merges of one rank the left one came first.
      bound = y + 1
      y = load<u32>(splits + (<usize>y << 3))
    }
  }
}

// --- one window -------------------------------------------------------------------------------------
//
//     node: id u32, next u32, before u32, rank u32 of the merge with next; entries of the heap are
//     rank << 32 | node, and stale when the node's rank is another by now

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

/** Encodes `count` parts (ids) in place; how many tokens. */
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
//     workspace: history (u32 each, as many as HISTORY and a window have), ids, nodes, heap

let workspace: usize = 0
let history: usize = 0
let ids: usize = 0
/** Tokens in the history. */
let kept: u32 = 0

/** Where tokens go that are final: an address and how many more fit there. */
let out: usize = 0
let room: u32 = 0
let total: u32 = 0

/** From now on tokens are counted and as many as fit are written to `to`. */
export function startOutput(to: usize, limit: u32): void {
  out = to
  room = limit
  total = 0
}

export function outputTotal(): u32 {
  return total
}

/** Tokens that are final. */
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

/** A larger workspace with the same history; false without memory. */
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

/** A workspace for windows of `size` bytes; keeps the history. False without memory. */
function ready(size: usize): bool {
  const needed = (<usize>HISTORY << 2) + size * (4 + 4 + 16 + 24) + 64
  if (capacity < needed && !enlarge(needed)) return false
  history = workspace
  ids = (history + (<usize>HISTORY << 2) + size * 4 + 15) & ~15
  nodes = ids + ((size * 4 + 15) & ~15)
  heap = nodes + size * 16
  return true
}

/** Bytes of the last `count` tokens of the history. */
function bytesBack(count: u32): usize {
  let bytes: usize = 0
  for (let i = kept - count; i < kept; i++) bytes += tokenLength(load<u32>(history + (<usize>i << 2)))
  return bytes
}

/** Where the tokens of the last window are. */
let found: usize = 0

/** Encodes from the last `taken` tokens to `stop`; how many tokens are at `found`, or a code. */
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

/** Moves all but the last HISTORY / 2 tokens out when there are more than HISTORY. */
function settle(): void {
  if (kept <= HISTORY) return
  const old = kept - HISTORY / 2
  output(history, old)
  memory.copy(history, history + (<usize>old << 2), <usize>(HISTORY / 2) << 2)
  kept = HISTORY / 2
}

/** Takes the bytes up to `stop` in; 0 or a code. */
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
 * Encodes a piece of any length to the output: 0, or ERROR_MEMORY when there is no room for the
 * workspace or a vocabulary ties tokens together over more bytes than LARGEST_WINDOW (the known ones
 * do over a few).
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
