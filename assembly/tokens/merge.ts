/**
 * Byte pair encoding of short pieces: the lowest rank merges first, the leftmost among equals. Each part has
 * a key: the rank of its merge with the next part in the high bits, its place in the low bits. The lowest
 * key, found with vectors, therefore gives the next merge. Parts keep their places and are linked. Before the
 * first and after the last part are sentinels that merge with nothing. For up to PART_LIMIT parts, this is
 * faster than a heap.
 */
import { borders, byteIds, bytePairs, mergeOf, NONE, roots, stems, WHOLE_POINTS, wholes } from './tables'

/** Maximum number of initial parts of a piece. */
export const PART_LIMIT: u32 = 128
/** Bytes of a piece whose parts fit into `parts`. */
export const SHORT_LIMIT: u32 = 512

/** Ids (u32) of the parts of the current piece, then of its tokens. */
export const parts: usize = memory.data(4 * 512 + 64, 16)
/** Ids, keys and links (the previous place in 16 bits, then the next place) by place, from 0 on. */
const ids: usize = memory.data(4 * 130 + 64, 16)
const keys: usize = memory.data(4 * 130 + 64, 16)
const links: usize = memory.data(4 * 130 + 64, 16)

const PLACE_BITS: u32 = 8
const PLACE_MASK: u32 = 255
/** All keys of merges are lower. */
const NO_KEY: u32 = 1 << 26
/** No token has this id. */
const NO_ID: u32 = 0x3ffff

/** Units of work since the module started: bytes read and merge steps. */
export let work: u64 = 0

// @ts-ignore: decorator
@inline
export function addWork(units: u64): void {
  work += units
}

/**
 * Writes the ids of the initial parts of [start, end) to `to`. Returns their number. The initial part of a
 * character between others that are not ASCII is the whole character, all but its last byte, or the first two
 * of four bytes, if this part always forms; otherwise each byte is a part.
 */
export function splitParts(start: usize, end: usize, to: usize): u32 {
  let p = start
  let out = to
  let before: u32 = 0xff
  while (p < end) {
    const byte = <u32>load<u8>(p)
    if (byte >= 0xc2 && before >= 0x80) {
      const taken = splitCharacter(p, end, byte, out)
      if (taken != 0) {
        out += 4
        p += taken
        before = 0x80
        continue
      }
    }
    store<u32>(out, load<u32>(byteIds + (<usize>byte << 2)))
    out += 4
    p++
    before = byte
  }
  return <u32>(out - to) >> 2
}

/** Writes the id of the part at the start of a character that always forms. Returns its length; 0 if none does. */
// @ts-ignore: decorator
@inline
function splitCharacter(p: usize, end: usize, lead: u32, out: usize): usize {
  const length: usize = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  const next = p + length
  if (next > end) return 0
  let stem = lead & 31
  if (length > 2) stem = ((stem & 15) << 6) | (<u32>load<u8>(p, 1) & 63)
  if (length > 3) stem = (stem << 6) | (<u32>load<u8>(p, 2) & 63)
  const last = <u32>load<u8>(next - 1) & 63
  const point = (stem << 6) | last
  if (point < WHOLE_POINTS) {
    const id = load<u32>(wholes + (<usize>point << 2))
    if (id != NONE && id < borderRank(last, next, end)) {
      store<u32>(out, id)
      return length
    }
  }
  if (length == 2) return 0
  let id = load<u32>(stems + (<usize>stem << 2))
  let taken = length - 1
  if (id == NONE && length == 4) {
    id = load<u32>(roots + (<usize>(stem >> 6) << 2))
    taken = 2
  }
  store<u32>(out, id)
  return id == NONE ? 0 : taken
}

/** Returns the lowest rank at which the last byte of a character merges with the character at `next`. */
// @ts-ignore: decorator
@inline
function borderRank(last: u32, next: usize, end: usize): u32 {
  if (next == end) return NONE
  const lead = <u32>load<u8>(next)
  return lead < 0x80 ? 0 : load<u32>(borders + (<usize>((last << 6) | (lead & 63)) << 2))
}

/** Returns the rank of the merge of two initial parts, which are usually two bytes. */
// @ts-ignore: decorator
@inline
function firstMergeOf(left: u32, right: u32): u32 {
  if ((left | right) > 255) return mergeOf(left, right)
  return load<u32>(bytePairs + (<usize>((left << 8) | right) << 2))
}

/** Returns the key of a rank and a place. If the rank is NONE, the key is NO_KEY or higher. */
// @ts-ignore: decorator
@inline
function keyOf(rank: u32, place: u32): u32 {
  return (rank << PLACE_BITS) | place
}

/** Fills keys and links for `count` parts at places 1 to `count`. */
function linkParts(count: u32): void {
  let left = load<u32>(parts)
  store<u32>(ids, NO_ID)
  store<u32>(keys, NONE)
  for (let place: u32 = 1; place <= count; place++) {
    const at = <usize>place << 2
    const right = place < count ? load<u32>(parts + at) : NO_ID
    store<u32>(ids + at, left)
    store<u32>(keys + at, keyOf(firstMergeOf(left, right), place))
    store<u32>(links + at, ((place + 1) << 16) | (place - 1))
    left = right
  }
  const last = <usize>(count + 1) << 2
  store<u32>(ids + last, NO_ID)
  v128.store(keys + last, i32x4.splat(-1))
}

/** Returns the lowest key of places 0 to `count`. */
// @ts-ignore: decorator
@inline
function leastKey(count: u32): u32 {
  const end = keys + (<usize>(count + 1) << 2)
  let least = v128.load(keys)
  for (let p = keys + 16; p < end; p += 16) least = i32x4.min_u(least, v128.load(p))
  least = i32x4.min_u(least, i32x4.shuffle(least, least, 2, 3, 0, 1))
  least = i32x4.min_u(least, i32x4.shuffle(least, least, 1, 0, 3, 2))
  return <u32>i32x4.extract_lane(least, 0)
}

/** Merges the part at `place` with the next one to `id`. */
// @ts-ignore: decorator
@inline
function joinNext(place: u32, id: u32): void {
  const at = <usize>place << 2
  const link = load<u32>(links + at)
  const before = <usize>(link & 0xffff) << 2
  const gone = <usize>(link >> 16) << 2
  const after = load<u16>(links + gone, 2)
  const behind = <usize>after << 2
  store<u32>(ids + at, id)
  store<u16>(links + at, after, 2)
  store<u16>(links + behind, <u16>place)
  store<u32>(keys + gone, NONE)
  store<u32>(keys + at, keyOf(mergeOf(id, load<u32>(ids + behind)), place))
  store<u32>(keys + before, keyOf(mergeOf(load<u32>(ids + before), id), <u32>(before >> 2)))
}

/** Merges the first `initial` (at most PART_LIMIT) ids of `parts` until nothing merges. Returns their number. */
export function mergeParts(initial: u32): u32 {
  linkParts(initial)
  let count = initial
  for (let key = leastKey(initial); key < NO_KEY; key = leastKey(initial)) {
    joinNext(key & PLACE_MASK, key >> PLACE_BITS)
    count--
  }
  work += <u64>((initial - count + 1) * ((initial + 4) >> 2))
  let out = parts
  for (let place: usize = 1; place <= <usize>initial; place = <usize>load<u16>(links + (place << 2), 2)) {
    store<u32>(out, load<u32>(ids + (place << 2)))
    out += 4
  }
  return count
}
