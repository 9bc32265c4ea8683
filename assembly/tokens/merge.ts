/**
 * Byte pair encoding of short pieces: the lowest rank merges first, the leftmost among equals. Ids
 * and ranks of the parts stand in two arrays; each step finds the least rank with vectors and closes
 * the gap. For up to PART_LIMIT parts that is quicker than any heap.
 */
import { bytePairs, byteIds, mergeOf, NONE, wholes } from './tables'

/** Parts that a piece may begin with here. */
export const PART_LIMIT: u32 = 128
/** Bytes of a piece whose parts fit into `parts`. */
export const SHORT_LIMIT: u32 = 512

/** Ids (u32) of the parts of the current piece, then of its tokens. */
export const parts: usize = memory.data(4 * 512 + 64, 16)
const ranks: usize = memory.data(4 * 128 + 64, 16)

/** Units of work since the module started: bytes looked at and steps of merging. */
export let work: u64 = 0

// @ts-ignore: decorator
@inline
export function addWork(units: u64): void {
  work += units
}

/** Id of the whole character at `p` if merging can begin with it, or NONE. `before`: the byte before. */
// @ts-ignore: decorator
@inline
function wholeAt(p: usize, end: usize, lead: u32, length: usize, before: u32): u32 {
  const next = p + length
  if (before < 0x80 || next > end || (next < end && load<u8>(next) < 0x80)) return NONE
  let point = ((lead & 31) << 6) | (<u32>load<u8>(p, 1) & 63)
  if (length > 2) point = ((point & 0x3ff) << 6) | (<u32>load<u8>(p, 2) & 63)
  if (length > 3) point = ((point & 0x7fff) << 6) | (<u32>load<u8>(p, 3) & 63)
  return point < 0x20000 ? load<u32>(wholes + (<usize>point << 2)) : NONE
}

/** Writes the ids of the parts that merging of [start, end) begins with to `to`; how many. */
export function splitParts(start: usize, end: usize, to: usize): u32 {
  let p = start
  let out = to
  let before: u32 = 0xff
  while (p < end) {
    const byte = <u32>load<u8>(p)
    let id = NONE
    let length: usize = 1
    if (byte >= 0xc2) {
      length = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
      id = wholeAt(p, end, byte, length, before)
      if (id == NONE) length = 1
    }
    if (id == NONE) id = load<u32>(byteIds + (<usize>byte << 2))
    store<u32>(out, id)
    out += 4
    p += length
    before = <u32>load<u8>(p - 1)
  }
  return <u32>(out - to) >> 2
}

/** Ranks of all pairs of the `count` parts; three more entries are NONE, for whole vectors. */
function rankParts(count: u32): void {
  let left = load<u32>(parts)
  const last = ranks + (<usize>(count - 1) << 2)
  let id = parts + 4
  for (let rank = ranks; rank < last; rank += 4) {
    const right = load<u32>(id)
    store<u32>(rank, mergeOf(left, right))
    left = right
    id += 4
  }
  const none = i32x4.splat(-1)
  v128.store(last, none)
  v128.store(last, none, 16)
}

/** The least of `count` ranks, in all lanes. */
// @ts-ignore: decorator
@inline
function leastRank(count: u32): v128 {
  const end = ranks + (<usize>count << 2)
  let least = v128.load(ranks)
  for (let p = ranks + 16; p < end; p += 16) least = i32x4.min_u(least, v128.load(p))
  least = i32x4.min_u(least, i32x4.shuffle(least, least, 2, 3, 0, 1))
  return i32x4.min_u(least, i32x4.shuffle(least, least, 1, 0, 3, 2))
}

/** Takes the entry after `p` out of an array that ends at `end`; may move what is behind it too. */
// @ts-ignore: decorator
@inline
function closeGap(p: usize, end: usize): void {
  for (let at = p + 4; at < end; at += 16) v128.store(at, v128.load(at, 4))
}

/** Merges the first `initial` (at most PART_LIMIT) ids of `parts` until nothing merges; how many are left. */
export function mergeParts(initial: u32): u32 {
  let count = initial
  rankParts(count)
  while (true) {
    const least = leastRank(count)
    const id = <u32>i32x4.extract_lane(least, 0)
    if (id == NONE) break
    let at: usize = 0
    let found = 0
    while (true) {
      found = i32x4.bitmask(i32x4.eq(v128.load(ranks + at), least))
      if (found != 0) break
      at += 16
    }
    at += <usize>ctz(found) << 2
    count--
    const part = parts + at
    const rank = ranks + at
    store<u32>(part, id)
    closeGap(part, parts + (<usize>count << 2))
    closeGap(rank, ranks + (<usize>count << 2))
    const last = ranks + (<usize>(count - 1) << 2)
    if (rank < last) store<u32>(rank, mergeOf(id, load<u32>(part, 4)))
    v128.store(last, i32x4.splat(-1))
    if (at > 0) store<u32>(rank - 4, mergeOf(load<u32>(part - 4), id))
  }
  work += <u64>((initial - count + 1) * ((initial + 3) >> 2))
  return count
}
