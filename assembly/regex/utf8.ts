// Classes of code points as automata over UTF-8 bytes.
//
// Forwards, a class becomes the minimal deterministic automaton of its sequences: `block` returns the
// instruction for 'k continuation bytes that encode base ... base + 64^k', built from the right so that
// equal blocks become one instruction. Backwards, the bytes come last first, which has no such
// tree: there every sequence range is a chain, chains share their ends, and one instruction lists all
// first steps, which may overlap (the reverse automaton finds every match, so their order does not matter).
import { emitRange, emitSparse, NOWHERE } from './program'
import { rangeHigh, rangeLow } from './ranges'
import { Vector, vectorPush, vectorStart } from './vector'

/** Entry lists under construction: one for each depth, 64 entries at most, and the root's. */
const LISTS = memory.data(4 * 2048)
const rootList = changetype<Vector>(memory.data(16))

let cursor: u32 = 0
let last: u32 = 0
let following: u32 = 0
/** Lowest code point of the current sequence length; overlong forms are malformed. */
let floor: u32 = 0

function addEntry(list: usize, count: u32, low: u32, high: u32, target: u32): u32 {
  if (count > 0) {
    const previous = list + (<usize>(count - 1) << 3)
    if (load<u32>(previous, 4) == target && <u32>load<u8>(previous, 1) + 1 == low) {
      store<u8>(previous, high, 1)
      return count
    }
  }
  const place = list + (<usize>count << 3)
  store<u32>(place, low | (high << 8))
  store<u32>(place, target, 4)
  return count + 1
}

/** Moves the cursor to the first range that ends at `base` or later. */
function advance(base: u32): void {
  while (cursor < last && rangeHigh(cursor) < base) cursor++
}

function isSurrogateBlock(base: u32): bool {
  return base >= 0xd800 && base < 0xe000
}

/** Returns true if every code point of the block is in the class, and well formed. */
function isFull(k: u32, base: u32, size: u32): bool {
  if (base < floor || (k == 2 && base == 0xd000)) return false
  return rangeLow(cursor) <= base && rangeHigh(cursor) >= base + size - 1
}

/** Consumes any k continuation bytes, then continues after the class. */
function fullBlock(k: u32): u32 {
  let target = following
  for (let i: u32 = 0; i < k; i++) target = emitRange(0x80, 0xbf, target)
  return target
}

function block(k: u32, base: u32): u32 {
  const size = <u32>1 << (6 * k)
  advance(base)
  if (cursor >= last || rangeLow(cursor) >= base + size || isSurrogateBlock(base)) return NOWHERE
  if (isFull(k, base, size)) return fullBlock(k)
  const list = LISTS + (<usize>k << 11)
  let count: u32 = 0
  if (k == 1) {
    for (let i = cursor; i < last && rangeLow(i) < base + 64; i++) {
      const low = max(rangeLow(i), base) - base
      const high = min(rangeHigh(i), base + 63) - base
      count = addEntry(list, count, 0x80 + low, 0x80 + high, following)
    }
    return emitSparse(list, count)
  }
  const step = size >> 6
  for (let i: u32 = 0; i < 64; i++) {
    if (base + i * step < floor) continue
    const target = block(k - 1, base + i * step)
    if (target != NOWHERE) count = addEntry(list, count, 0x80 + i, 0x80 + i, target)
  }
  return count == 0 ? NOWHERE : emitSparse(list, count)
}

/** Appends the entries of all sequences with k continuation bytes to the root's list. */
function forwardLeads(count: u32, k: u32): u32 {
  const shift = 6 * k
  const lead: u32 = k == 1 ? 0xc0 : k == 2 ? 0xe0 : 0xf0
  const leads: u32 = k == 1 ? 32 : k == 2 ? 16 : 5
  floor = k == 1 ? 0x80 : k == 2 ? 0x800 : 0x10000
  for (let i: u32 = k == 1 ? 2 : 0; i < leads; i++) {
    const target = block(k, i << shift)
    if (target != NOWHERE) count = addEntry(LISTS, count, lead + i, lead + i, target)
  }
  return count
}

/** Returns the instruction that consumes one code point of the ranges [first, first + count), then continues at `next`. */
export function emitClass(first: u32, count: u32, next: u32): u32 {
  cursor = first
  last = first + count
  following = next
  let entries: u32 = 0
  for (let i = first; i < last && rangeLow(i) < 0x80; i++) {
    entries = addEntry(LISTS, entries, rangeLow(i), min(rangeHigh(i), 0x7f), next)
  }
  for (let k: u32 = 1; k <= 3; k++) entries = forwardLeads(entries, k)
  return emitSparse(LISTS, entries)
}

// --- backwards -------------------------------------------------------------------------------

function addRoot(low: u32, high: u32, target: u32): void {
  const place = vectorPush(rootList, 8)
  store<u32>(place, low | (high << 8))
  store<u32>(place, target, 4)
}

/** Consumes any k continuation bytes, then continues at `after`. */
function reverseFull(k: u32, after: u32): void {
  let target = after
  for (let i: u32 = 1; i < k; i++) target = emitRange(0x80, 0xbf, target)
  addRoot(0x80, 0xbf, target)
}

/** Adds the block's sequences backwards; `after` consumes the bytes before the block. */
function reverseBlock(k: u32, base: u32, after: u32): void {
  if (k == 1) {
    for (let i = cursor; i < last && rangeLow(i) < base + 64; i++) {
      const low = max(rangeLow(i), base) - base
      const high = min(rangeHigh(i), base + 63) - base
      addRoot(0x80 + low, 0x80 + high, after)
    }
    return
  }
  const step = <u32>1 << (6 * (k - 1))
  let i: u32 = 0
  while (i < 64) {
    const from = i
    while (i < 64 && isFullAt(k - 1, base + i * step, step)) i++
    if (i > from) {
      reverseFull(k - 1, emitRange(0x80 + from, 0x80 + i - 1, after))
      continue
    }
    if (isTouched(base + i * step, step)) reverseBlock(k - 1, base + i * step, emitRange(0x80 + i, 0x80 + i, after))
    i++
  }
}

function isTouched(base: u32, size: u32): bool {
  if (base < floor || isSurrogateBlock(base)) return false
  advance(base)
  return cursor < last && rangeLow(cursor) < base + size
}

function isFullAt(k: u32, base: u32, size: u32): bool {
  return isTouched(base, size) && isFull(k, base, size)
}

function reverseLeads(k: u32, next: u32): void {
  const size = <u32>1 << (6 * k)
  const lead: u32 = k == 1 ? 0xc0 : k == 2 ? 0xe0 : 0xf0
  const leads: u32 = k == 1 ? 32 : k == 2 ? 16 : 5
  floor = k == 1 ? 0x80 : k == 2 ? 0x800 : 0x10000
  for (let i: u32 = k == 1 ? 2 : 0; i < leads; i++) {
    const base = i * size
    advance(base)
    if (cursor >= last || rangeLow(cursor) >= base + size) continue
    const after = emitRange(lead + i, lead + i, next)
    if (isFull(k, base, size)) reverseFull(k, after)
    else reverseBlock(k, base, after)
  }
}

/** Like `emitClass`, for text that is read from its end. */
export function emitReverseClass(first: u32, count: u32, next: u32): u32 {
  cursor = first
  last = first + count
  rootList.used = 0
  for (let i = first; i < last && rangeLow(i) < 0x80; i++) addRoot(rangeLow(i), min(rangeHigh(i), 0x7f), next)
  for (let k: u32 = 1; k <= 3; k++) reverseLeads(k, next)
  return emitSparse(rootList.data, rootList.used >> 3)
}

/** Resets scratch of an earlier compile. */
export function utf8Start(): void {
  vectorStart(rootList)
}
