/**
 * The tables of a vocabulary: pieces by their bytes, merges by their two ids. All tables of a vocabulary are
 * in one block; the addresses for the selected vocabulary are globals. Lookups compare the bytes or ids,
 * because hashes can collide.
 */
import { ERROR_ARGUMENT } from '../abi'
import { blockFree } from '../arena'
import { fail } from '../refusal'

export const PATTERN_O200K: u32 = 1
export const PATTERN_CL100K: u32 = 2
/** The result if there is no such token or merge; higher than every id. */
export const NONE: u32 = 0xffffffff
/** Ids are below 2^18. */
const ID_BITS: u32 = 18
export const ID_MASK: u32 = 0x3ffff

/** Bytes of an entry of the table of pieces of up to 8 bytes, of up to 16, and of longer ones. */
export const SHORT_ENTRY: usize = 12
export const MEDIUM_ENTRY: usize = 20
export const LONG_ENTRY: usize = 12
export const FILTER_BITS: u32 = 20
export const CACHE_BITS: u32 = 14
export const CACHE_ENTRY: usize = 16
/** Bytes of the longest part whose count is cached. */
export const CACHED_LENGTH: u32 = 15
/** Number of code points in the table of whole characters: the two planes that most texts use. */
export const WHOLE_POINTS: u32 = 0x20000
/** Number of code points without their last byte of UTF-8. */
export const STEM_COUNT: u32 = 0x5000

/** Addresses of the tables of one vocabulary. */
@unmanaged
export class Vocabulary {
  /** IMAGE_MAGIC; checked only when an image is loaded. */
  magic: u32
  /** The address of this record, and the size of record and tables in bytes. */
  base: usize
  size: u32
  pattern: u32
  count: u32
  longest: u32
  shortShift: u32
  mediumShift: u32
  longShift: u32
  pairShift: u32
  /** Pieces of 1 to 8 bytes: key u64, id | length << 24. */
  short: usize
  /** Pieces of 9 to 16 bytes: key 2 x u64, id | length << 24. */
  medium: usize
  /** Longer pieces: hash u32, id + 1, offset of their bytes in `longStrings`. */
  long: usize
  /** left << 36 | right << 18 | id; 0 is free. */
  pairs: usize
  /** A bit for each hash of a pair that merges. */
  filter: usize
  /** Id of each byte. */
  bytes: usize
  /** Id of the merge of two single-byte tokens, by their ids; or NONE. */
  bytePairs: usize
  /** Id of each character that always forms unless a merge in `borders` has a lower rank; or NONE. */
  wholes: usize
  /** The same for all but the last byte of characters of three or four bytes. */
  stems: usize
  /** The same for the first two bytes of characters of four bytes, by their low bits. */
  roots: usize
  /** Lowest rank at which the last byte of a character merges with a sequence with a lead byte, by both bytes. */
  borders: usize
  /** left u32, right u32 of each token. */
  splits: usize
  lengths: usize
  longStrings: usize
  /** Tables of borders.ts. */
  joins: usize
  seams: usize
  /** Cache of the counts of parts: 15 bytes, then the length in 4 bits and the count in 4 bits. */
  cache: usize
}

/** "SLT" and a number, which changes with every change of a table, a hash or the record. */
export const IMAGE_MAGIC: u32 = 0x02544c53

const SLOTS: i32 = 8
const slots: usize = memory.data(4 * 8)

/** Handle of the selected vocabulary; 0 if there is none. */
let selected: i32 = 0
export let pattern: u32 = 0
let longest: u32 = 0
let shortTable: usize = 0
let shortShift: u64 = 0
let mediumTable: usize = 0
let mediumShift: u64 = 0
let longTable: usize = 0
let longShift: u64 = 0
let pairTable: usize = 0
let pairShift: u64 = 0
let filter: usize = 0
let longStrings: usize = 0
/** Number of bytes used in `longStrings`. */
let longEnd: u32 = 0
let lengths: usize = 0
export let byteIds: usize = 0
export let bytePairs: usize = 0
export let wholes: usize = 0
export let stems: usize = 0
export let roots: usize = 0
export let borders: usize = 0
export let splits: usize = 0
export let joins: usize = 0
export let seams: usize = 0
export let cache: usize = 0

/** Address of a vocabulary's record, or 0. */
export function recordOf(handle: i32): usize {
  if (handle < 1 || handle > SLOTS) return 0
  return <usize>load<u32>(slots + (<usize>(handle - 1) << 2))
}

/** Makes an empty vocabulary and selects it, before it has a handle. Tokens are added afterwards. */
export function startTables(it: Vocabulary): void {
  longEnd = 0
  useTables(it)
}

function useTables(it: Vocabulary): void {
  selected = 0
  pattern = it.pattern
  longest = it.longest
  shortTable = it.short
  shortShift = it.shortShift
  mediumTable = it.medium
  mediumShift = it.mediumShift
  longTable = it.long
  longShift = it.longShift
  pairTable = it.pairs
  pairShift = it.pairShift
  filter = it.filter
  longStrings = it.longStrings
  lengths = it.lengths
  byteIds = it.bytes
  bytePairs = it.bytePairs
  wholes = it.wholes
  stems = it.stems
  roots = it.roots
  borders = it.borders
  splits = it.splits
  joins = it.joins
  seams = it.seams
  cache = it.cache
}

/** Selects the vocabulary for the functions below; false if it does not exist. */
export function selectVocabulary(handle: i32): bool {
  if (handle == selected && handle != 0) return true
  const record = recordOf(handle)
  if (record == 0) return false
  useTables(changetype<Vocabulary>(record))
  selected = handle
  return true
}

export function freeVocabulary(handle: i32): i32 {
  const record = recordOf(handle)
  if (record == 0) return fail(ERROR_ARGUMENT)
  store<u32>(slots + (<usize>(handle - 1) << 2), 0)
  if (selected == handle) selected = 0
  blockFree(record)
  return 0
}

// --- tables ----------------------------------------------------------------------------------------

const FACTOR: u64 = 0x9e3779b97f4a7c15
const FACTOR_2: u64 = 0xc2b2ae3d27d4eb4f

/** The low `length` (1 to 8) bytes of a word. */
// @ts-ignore: decorator
@inline
function lowBytes(word: u64, length: u32): u64 {
  return word & (<u64>-1 >> <u64>(64 - (length << 3)))
}

// @ts-ignore: decorator
@inline
function shortHash(key: u64, length: u32): u64 {
  const hash = (key ^ <u64>length) * FACTOR
  return hash ^ (hash << 29)
}

// @ts-ignore: decorator
@inline
function mediumHash(low: u64, high: u64): u64 {
  const hash = (low * FACTOR) ^ (rotl(high, 29) * FACTOR_2)
  return (hash ^ (hash >> 32)) * FACTOR
}

/** Hash of a part and its length, for the cache. */
// @ts-ignore: decorator
@inline
export function partHash(low: u64, high: u64): u64 {
  const hash = (low * FACTOR) ^ (rotl(high, 29) * FACTOR_2)
  return hash ^ (hash << 29)
}

function longHash(start: usize, length: u32): u64 {
  let hash: u64 = length
  const last = start + length - 8
  for (let p = start; p < last; p += 8) hash = rotl((hash ^ load<u64>(p)) * FACTOR, 31)
  hash = (hash ^ load<u64>(last)) * FACTOR_2
  return hash ^ (hash >> 29)
}

/** The slot of a piece of up to 8 bytes, or the free slot for it. */
// @ts-ignore: decorator
@inline
function shortPlace(key: u64, length: u32): usize {
  const mask = <u32>((<u64>1 << (64 - shortShift)) - 1)
  let index = <u32>(shortHash(key, length) >> shortShift)
  while (true) {
    const entry = shortTable + <usize>index * SHORT_ENTRY
    const value = load<u32>(entry, 8)
    if (value == 0 || (load<u64>(entry) == key && value >> 24 == length)) return entry
    index = (index + 1) & mask
  }
}

function mediumPlace(low: u64, high: u64, length: u32): usize {
  const mask = <u32>((<u64>1 << (64 - mediumShift)) - 1)
  let index = <u32>(mediumHash(low, high) >> mediumShift)
  while (true) {
    const entry = mediumTable + <usize>index * MEDIUM_ENTRY
    const value = load<u32>(entry, 16)
    if (value == 0) return entry
    if (load<u64>(entry) == low && load<u64>(entry, 8) == high && value >> 24 == length) return entry
    index = (index + 1) & mask
  }
}

function longPlace(p: usize, length: u32): usize {
  const mask = <u32>((<u64>1 << (64 - longShift)) - 1)
  const hash = longHash(p, length)
  let index = <u32>(hash >> longShift)
  while (true) {
    const entry = longTable + <usize>index * LONG_ENTRY
    const next = load<u32>(entry, 4)
    if (next == 0) return entry
    const id = <usize>(next - 1)
    const isSame =
      load<u32>(entry) == <u32>hash &&
      load<u8>(lengths + id) == <u8>length &&
      memory.compare(longStrings + load<u32>(entry, 8), p, length) == 0
    if (isSame) return entry
    index = (index + 1) & mask
  }
}

/** Id of the token with exactly these bytes, or -1. Reads up to 15 bytes further. */
// @ts-ignore: decorator
@inline
export function findToken(p: usize, length: u32): i32 {
  if (length <= 8) {
    const value = load<u32>(shortPlace(lowBytes(load<u64>(p), length), length), 8)
    return value == 0 ? -1 : value & ID_MASK
  }
  return findLonger(p, length)
}

function findLonger(p: usize, length: u32): i32 {
  if (length <= 16) {
    const place = mediumPlace(load<u64>(p), lowBytes(load<u64>(p, 8), length - 8), length)
    const value = load<u32>(place, 16)
    return value == 0 ? -1 : value & ID_MASK
  }
  return length > longest ? -1 : <i32>load<u32>(longPlace(p, length), 4) - 1
}

/** Adds a token. Returns false if there is one with the same bytes. */
export function addToken(p: usize, length: u32, id: u32): bool {
  const value = id | (length << 24)
  if (length <= 8) {
    const key = lowBytes(load<u64>(p), length)
    const entry = shortPlace(key, length)
    if (load<u32>(entry, 8) != 0) return false
    store<u64>(entry, key)
    store<u32>(entry, value, 8)
  } else if (length <= 16) {
    const low = load<u64>(p)
    const high = lowBytes(load<u64>(p, 8), length - 8)
    const entry = mediumPlace(low, high, length)
    if (load<u32>(entry, 16) != 0) return false
    store<u64>(entry, low)
    store<u64>(entry, high, 8)
    store<u32>(entry, value, 16)
  } else {
    const entry = longPlace(p, length)
    if (load<u32>(entry, 4) != 0) return false
    store<u32>(entry, <u32>longHash(p, length))
    store<u32>(entry, id + 1, 4)
    store<u32>(entry, longEnd, 8)
    memory.copy(longStrings + longEnd, p, length)
    longEnd += length
  }
  return true
}

// @ts-ignore: decorator
@inline
function pairHash(key: u64): u64 {
  const hash = key * FACTOR
  return hash ^ (hash << 31)
}

/** Returns the id of the merge of two adjacent tokens, which is also the rank of the merge; or NONE. */
// @ts-ignore: decorator
@inline
export function mergeOf(left: u32, right: u32): u32 {
  const key = (<u64>left << ID_BITS) | <u64>right
  const hash = pairHash(key)
  const bit = <u32>(hash >> (64 - FILTER_BITS))
  if (((<u32>load<u8>(filter + (bit >> 3)) >> (bit & 7)) & 1) == 0) return NONE
  return probePairs(key, hash)
}

function probePairs(key: u64, hash: u64): u32 {
  const mask = <u32>((<u64>1 << (64 - pairShift)) - 1)
  let index = <u32>(hash >> pairShift)
  while (true) {
    const entry = load<u64>(pairTable + (<usize>index << 3))
    if (entry >> ID_BITS == key) return <u32>entry & ID_MASK
    if (entry == 0) return NONE
    index = (index + 1) & mask
  }
}

export function addPair(left: u32, right: u32, id: u32): void {
  const key = (<u64>left << ID_BITS) | <u64>right
  const hash = pairHash(key)
  const mask = <u32>((<u64>1 << (64 - pairShift)) - 1)
  let index = <u32>(hash >> pairShift)
  while (load<u64>(pairTable + (<usize>index << 3)) != 0) index = (index + 1) & mask
  store<u64>(pairTable + (<usize>index << 3), (key << ID_BITS) | <u64>id)
  const bit = <u32>(hash >> (64 - FILTER_BITS))
  const place = filter + (bit >> 3)
  store<u8>(place, load<u8>(place) | <u8>(<u32>1 << (bit & 7)))
}

/** Gives a vocabulary a handle. Returns 0 if the maximum number of vocabularies is loaded. */
export function keepVocabulary(record: usize): i32 {
  for (let i = 0; i < SLOTS; i++) {
    const slot = slots + (<usize>i << 2)
    if (load<u32>(slot) != 0) continue
    store<u32>(slot, <u32>record)
    return i + 1
  }
  return 0
}

/** Bytes of a token. */
// @ts-ignore: decorator
@inline
export function tokenLength(id: u32): usize {
  return <usize>load<u8>(lengths + <usize>id)
}
