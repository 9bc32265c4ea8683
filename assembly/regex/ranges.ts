// Sets of code points as lists of ranges. A class is built at the end of one shared vector:
// items are appended as they are read, then sorted, merged, folded and complemented in place.
import { MAX_CODE_POINT } from './codes'
import { Vector, vectorPush, vectorStart } from './vector'
import { firstFold, foldEnd } from './fold-table'

const ranges = changetype<Vector>(memory.data(16))

export function rangesStart(): void {
  vectorStart(ranges)
}

/** Ranges in the vector; a class that begins now has this as its first index. */
export function rangeCount(): u32 {
  return ranges.used >> 3
}

export function rangeLow(index: u32): u32 {
  return load<u32>(ranges.data + (<usize>index << 3))
}

export function rangeHigh(index: u32): u32 {
  return load<u32>(ranges.data + (<usize>index << 3), 4)
}

export function addRange(low: u32, high: u32): void {
  const at = vectorPush(ranges, 8)
  store<u32>(at, low)
  store<u32>(at, high, 4)
}

/** Removes the ranges from `begin` on. */
export function dropRanges(begin: u32): void {
  ranges.used = begin << 3
}

// --- order -----------------------------------------------------------------------------------

function isSorted(begin: u32, end: u32): bool {
  for (let i = begin + 1; i < end; i++) if (rangeLow(i) < rangeLow(i - 1)) return false
  return true
}

/** Returns a range as a number that sorts by its low end. */
// @ts-ignore: decorator
@inline
function keyOf(base: usize, index: u32): u64 {
  return rotr(load<u64>(base + (<usize>index << 3)), 32)
}

function siftDown(base: usize, from: u32, count: u32): void {
  const value = load<u64>(base + (<usize>from << 3))
  const key = rotr(value, 32)
  let hole = from
  for (;;) {
    let child = hole * 2 + 1
    if (child >= count) break
    if (child + 1 < count && keyOf(base, child + 1) > keyOf(base, child)) child++
    if (keyOf(base, child) <= key) break
    store<u64>(base + (<usize>hole << 3), load<u64>(base + (<usize>child << 3)))
    hole = child
  }
  store<u64>(base + (<usize>hole << 3), value)
}

/** Heap sort, because no pattern can make it slower than n log n. */
function sort(begin: u32, end: u32): void {
  const base = ranges.data + (<usize>begin << 3)
  const count = end - begin
  for (let i = count / 2; i > 0; i--) siftDown(base, i - 1, count)
  for (let last = count - 1; last > 0; last--) {
    const top = load<u64>(base)
    store<u64>(base, load<u64>(base + (<usize>last << 3)))
    store<u64>(base + (<usize>last << 3), top)
    siftDown(base, 0, last)
  }
}

/** Sorts and merges the ranges from `begin` to the vector's end. */
export function canonicalize(begin: u32): void {
  const end = rangeCount()
  if (end - begin < 2) return
  if (!isSorted(begin, end)) sort(begin, end)
  let kept = begin
  for (let i = begin + 1; i < end; i++) {
    const at = ranges.data + (<usize>kept << 3)
    if (rangeLow(i) <= rangeHigh(kept) + 1) {
      if (rangeHigh(i) > rangeHigh(kept)) store<u32>(at, rangeHigh(i), 4)
    } else {
      kept++
      store<u64>(at + 8, load<u64>(ranges.data + (<usize>i << 3)))
    }
  }
  ranges.used = (kept + 1) << 3
}

/** Replaces the canonical ranges from `begin` on by their complement. */
export function complement(begin: u32): void {
  const end = rangeCount()
  let gapStart: u32 = 0
  let kept = begin
  for (let i = begin; i < end; i++) {
    const low = rangeLow(i)
    const high = rangeHigh(i)
    if (low > gapStart) {
      const at = ranges.data + (<usize>(kept++) << 3)
      store<u32>(at, gapStart)
      store<u32>(at, low - 1, 4)
    }
    gapStart = high + 1
  }
  ranges.used = kept << 3
  if (gapStart <= MAX_CODE_POINT) addRange(gapStart, MAX_CODE_POINT)
}

// --- tables ----------------------------------------------------------------------------------

/** Appends `count` ranges of u32 pairs, optionally folded and complemented. */
export function addTable(table: usize, count: u32, isFolded: bool, isNegated: bool): void {
  const begin = rangeCount()
  for (let i: u32 = 0; i < count; i++) {
    addRange(load<u32>(table + (<usize>i << 3)), load<u32>(table + (<usize>i << 3), 4))
  }
  finishItem(begin, isFolded, isNegated)
}

/** Folds and complements one item of a class. As in RE2, this is done for each item before they are joined. */
export function finishItem(begin: u32, isFolded: bool, isNegated: bool): void {
  if (isFolded) fold(begin)
  if (!isNegated) return
  canonicalize(begin)
  complement(begin)
}

// --- case ------------------------------------------------------------------------------------
//
// The fold table lists, sorted, runs of code points with other forms (simple case folding, Unicode
// CaseFolding.txt status C and S): low, high, stride, delta to the *next form in the cycle* of equal
// forms (K -> k -> KELVIN SIGN -> K). A cycle has at most four members, so three passes are enough.

function foldRun(run: usize, low: u32, high: u32): void {
  const stride = load<u32>(run, 8)
  const delta = load<i32>(run, 12)
  let from = load<u32>(run)
  if (low > from) from += (low - from + stride - 1) / stride * stride
  const to = min(high, load<u32>(run, 4))
  if (from > to) return
  if (stride == 1) {
    addRange(from + delta, to + delta)
    return
  }
  for (let point = from; point <= to; point += stride) addRange(point + delta, point + delta)
}

/** Adds every other case of the ranges from `begin` to the vector's end. */
export function fold(begin: u32): void {
  for (let pass = 0; pass < 3; pass++) {
    canonicalize(begin)
    const end = rangeCount()
    for (let i = begin; i < end; i++) {
      const low = rangeLow(i)
      const high = rangeHigh(i)
      for (let run = firstFold(low); run < foldEnd() && load<u32>(run) <= high; run += 16) foldRun(run, low, high)
    }
  }
  canonicalize(begin)
}
