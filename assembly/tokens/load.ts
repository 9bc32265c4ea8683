/**
 * Reads the file of a vocabulary and builds its tables. Numbers are little-endian.
 *
 *     file:  +0 "SLTK"  +4 version 1  +8 pattern  +12 n  +16 bytes of ids 0 to 255
 *            +272 six planes of n - 256 bytes: low, middle and high byte of the left id of each later
 *                 token, then of its right id
 *
 * A token of two or more bytes is the merge of two earlier tokens. These two are unique: they are the two
 * parts that remain after all merges of lower rank. Therefore a pair of ids has at most one merge, and only
 * the pairs of the file can merge. The bytes of each token are derived from the pairs.
 */
import { ERROR_MEMORY, TOKENS_BAD_VOCABULARY } from '../abi'
import { arenaAlloc, arenaMark, arenaReset, blockAlloc, blockFree } from '../arena'
import { fail, refuse, setOrigin } from '../refusal'
import { JOIN_BITS, markBorders, SEAM_BITS } from './borders'
import { readyClasses } from './classes'
import {
  addPair,
  addToken,
  CACHE_BITS,
  CACHE_ENTRY,
  FILTER_BITS,
  findToken,
  ID_MASK,
  IMAGE_MAGIC,
  keepVocabulary,
  LONG_ENTRY,
  MEDIUM_ENTRY,
  NONE,
  PATTERN_O200K,
  SHORT_ENTRY,
  startTables,
  STEM_COUNT,
  Vocabulary,
  WHOLE_POINTS,
} from './tables'

/** Bytes of the longest token that the tables hold. */
const LONGEST: u32 = 255
const MAGIC: u32 = 0x4b544c53
const HEADER: usize = 272

/** The left (0) or right (3) id of the token with number `i` after the bytes. */
// @ts-ignore: decorator
@inline
function partOf(planes: usize, later: usize, i: usize, first: usize): u32 {
  const at = planes + first * later + i
  return <u32>load<u8>(at) | (<u32>load<u8>(at + later) << 8) | (<u32>load<u8>(at + 2 * later) << 16)
}

/** Results of the first pass over the file. */
let shortCount: u32 = 0
let mediumCount: u32 = 0
let longCount: u32 = 0
let stringBytes: usize = 0
let longBytes: usize = 0
let longestFound: u32 = 0

/** Returns the address of the first invalid value in the file; 0 if it is valid. `sizes` has a byte per token. */
function inspect(file: usize, size: usize, sizes: usize): usize {
  const later = (size - HEADER) / 6
  memory.fill(sizes, 0, 256)
  for (let i: usize = 0; i < 256; i++) {
    const seen = sizes + load<u8>(file + 16 + i)
    if (load<u8>(seen) != 0) return file + 16 + i
    store<u8>(seen, 1)
  }
  shortCount = 256
  mediumCount = 0
  longCount = 0
  stringBytes = 256
  longBytes = 0
  longestFound = 1
  for (let i: usize = 0; i < later; i++) {
    const left = <usize>partOf(file + HEADER, later, i, 0)
    const right = <usize>partOf(file + HEADER, later, i, 3)
    if (left >= 256 + i || right >= 256 + i) return file + HEADER + i
    const length = <u32>load<u8>(sizes + left) + <u32>load<u8>(sizes + right)
    if (length > LONGEST) return file + HEADER + i
    store<u8>(sizes + 256 + i, <u8>length)
    stringBytes += length
    longestFound = max(longestFound, length)
    if (length <= 8) shortCount++
    else if (length <= 16) mediumCount++
    else {
      longCount++
      longBytes += length
    }
  }
  return 0
}

/** Returns the size, as a power of two, of a hash table for the entries with a load of at most 4/5. */
function bitsFor(count: u32): u32 {
  let bits: u32 = 6
  while ((<u64>4 << bits) < <u64>count * 5) bits++
  return bits
}

/** Scratch while tables are built: the offset of each token's bytes in `strings` (u32), and the bytes. */
let offsets: usize = 0
let strings: usize = 0

/** End of the tables that are laid out after the record so far. */
let layoutEnd: usize = 0

function place(size: usize): usize {
  const at = layoutEnd
  layoutEnd = (at + size + 15) & ~15
  return at
}

/** Lays out the tables from `base` on. If `base` is 0, it only computes their size, in `layoutEnd`. */
function layOut(it: Vocabulary, base: usize, count: usize): void {
  layoutEnd = (base + offsetof<Vocabulary>() + 15) & ~15
  const shortBits = bitsFor(shortCount)
  const mediumBits = bitsFor(mediumCount)
  const longBits = bitsFor(longCount)
  const pairBits = bitsFor(<u32>count)
  it.magic = IMAGE_MAGIC
  it.base = base
  it.count = <u32>count
  it.longest = longestFound
  it.shortShift = 64 - shortBits
  it.mediumShift = 64 - mediumBits
  it.longShift = 64 - longBits
  it.pairShift = 64 - pairBits
  it.short = place(SHORT_ENTRY << shortBits)
  it.medium = place(MEDIUM_ENTRY << mediumBits)
  it.long = place(LONG_ENTRY << longBits)
  it.pairs = place(<usize>8 << pairBits)
  it.filter = place(<usize>1 << (FILTER_BITS - 3))
  it.bytes = place(1024)
  it.joins = place(<usize>1 << (JOIN_BITS - 3))
  it.seams = place(<usize>1 << (SEAM_BITS - 3))
  it.cache = place(CACHE_ENTRY << CACHE_BITS)
  it.bytePairs = place(65536 * 4)
  it.wholes = place(WHOLE_POINTS * 4)
  it.stems = place(STEM_COUNT * 4)
  it.roots = place(512 * 4)
  it.borders = place(64 * 64 * 4)
  it.splits = place(count * 8)
  it.lengths = place(count)
  it.longStrings = place(longBytes)
  it.size = <u32>(layoutEnd - base)
}

/** Fills the tables. Returns the address of a token that occurs twice, or 0. */
function fill(it: Vocabulary, file: usize, count: usize): usize {
  memory.fill(it.short, 0, it.bytePairs - it.short)
  memory.fill(it.bytePairs, 0xff, it.splits - it.bytePairs)
  const later = count - 256
  let end: usize = 0
  for (let id: usize = 0; id < count; id++) {
    const string = strings + end
    let length: u32 = 1
    store<u32>(offsets + (id << 2), <u32>end)
    if (id < 256) {
      store<u8>(string, load<u8>(file + 16 + id))
      store<u32>(it.bytes + (<usize>load<u8>(string) << 2), <u32>id)
      store<u64>(it.splits + (id << 3), 0)
    } else {
      const left = partOf(file + HEADER, later, id - 256, 0)
      const right = partOf(file + HEADER, later, id - 256, 3)
      length = join(it, string, left, right)
      markBorders(it.joins, it.seams, string, length)
      store<u32>(it.splits + (id << 3), left)
      store<u32>(it.splits + (id << 3), right, 4)
      addPair(left, right, <u32>id)
      const two = (<usize>left << 8) | <usize>right
      if ((left | right) < 256) store<u32>(it.bytePairs + (two << 2), <u32>id)
    }
    store<u8>(it.lengths + id, <u8>length)
    if (!addToken(string, length, <u32>id)) return file + HEADER + (id < 256 ? 0 : id - 256)
    end += length
  }
  return 0
}

/** Writes the bytes of two tokens, one after the other. Returns their length. */
function join(it: Vocabulary, to: usize, left: u32, right: u32): u32 {
  const leftLength = <u32>load<u8>(it.lengths + <usize>left)
  const rightLength = <u32>load<u8>(it.lengths + <usize>right)
  memory.copy(to, strings + load<u32>(offsets + (<usize>left << 2)), leftLength)
  memory.copy(to + leftLength, strings + load<u32>(offsets + (<usize>right << 2)), rightLength)
  return leftLength + rightLength
}

// Merging can begin with parts that are larger than bytes if these parts always form: if each merge inside
// a part has a lower rank than every merge across its borders. This applies only between characters that
// are not ASCII, because many more merges cross a border with ASCII.

/** The lowest rank at which each token merges with a token before it that does not end in ASCII. */
let leftRanks: usize = 0
/** The lowest rank at which each token merges with a token after it that begins with a lead byte. */
let rightRanks: usize = 0
/** The lowest rank at which each token merges with a token after it that begins with a continuation byte. */
let innerRanks: usize = 0

// @ts-ignore: decorator
@inline
function lower(table: usize, index: usize, rank: u32): void {
  const at = table + (index << 2)
  if (rank < load<u32>(at)) store<u32>(at, rank)
}

function rankBorders(it: Vocabulary, count: usize): void {
  for (let id: usize = 256; id < count; id++) {
    const left = <usize>load<u32>(it.splits + (id << 3))
    const right = <usize>load<u32>(it.splits + (id << 3), 4)
    const border = strings + load<u32>(offsets + (id << 2)) + load<u8>(it.lengths + left)
    const last = <usize>load<u8>(border - 1)
    const first = <usize>load<u8>(border)
    if (last >= 0x80) lower(leftRanks, right, <u32>id)
    if (first >= 0xc0) lower(rightRanks, left, <u32>id)
    else if (first >= 0x80) lower(innerRanks, left, <u32>id)
    if (left < 256 && last >= 0x80 && first >= 0xc0) lower(it.borders, ((last & 63) << 6) | (first & 63), <u32>id)
  }
}

/** Returns true if the token always forms, given the ranks `after` for its suffixes of `shortest` bytes or more. */
function isSure(it: Vocabulary, id: usize, after: usize, shortest: u32): bool {
  const string = strings + load<u32>(offsets + (id << 2))
  const length = <u32>load<u8>(it.lengths + id)
  for (let i: u32 = 1; i < length; i++) {
    const head = findToken(string, i)
    if (head >= 0 && load<u32>(leftRanks + (<usize>head << 2)) <= <u32>id) return false
    const tail = length - i < shortest ? -1 : findToken(string + i, length - i)
    if (tail >= 0 && load<u32>(after + (<usize>tail << 2)) <= <u32>id) return false
  }
  return true
}

/**
 * Returns the code point of a token that is a single character without its last `missing` bytes,
 * or NONE.
 */
function characterOf(p: usize, length: u32, missing: u32): u32 {
  const lead = <u32>load<u8>(p)
  if (lead < 0xc2 || lead > 0xf4) return NONE
  const whole: u32 = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  if (length + missing != whole) return NONE
  let point = lead & (0x7f >> whole)
  for (let i: u32 = 1; i < length; i++) {
    const byte = <u32>load<u8>(p + i)
    if ((byte & 0xc0) != 0x80) return NONE
    point = (point << 6) | (byte & 63)
  }
  return point
}

/** Fills the tables of parts that always form. `scratch` has three words for each token. */
function markSure(it: Vocabulary, count: usize, scratch: usize): void {
  leftRanks = scratch
  rightRanks = scratch + count * 4
  innerRanks = scratch + count * 8
  memory.fill(scratch, 0xff, count * 12)
  rankBorders(it, count)
  for (let id: usize = 256; id < count; id++) {
    const string = strings + load<u32>(offsets + (id << 2))
    const length = <u32>load<u8>(it.lengths + id)
    if (length > 4) continue
    const point = characterOf(string, length, 0)
    // The last byte's merges are in `borders`, by what follows.
    if (point < WHOLE_POINTS && isSure(it, id, rightRanks, 2)) {
      store<u32>(it.wholes + (<usize>point << 2), <u32>id)
    }
    const stem = characterOf(string, length, 1)
    if (stem < STEM_COUNT && isSure(it, id, innerRanks, 1)) {
      store<u32>(it.stems + (<usize>stem << 2), <u32>id)
    }
    const root = length < 2 ? NONE : characterOf(string, length, 2)
    if (root < 512 && isSure(it, id, innerRanks, 1)) {
      store<u32>(it.roots + (<usize>root << 2), <u32>id)
    }
  }
}

/** Address in the file of a token that occurs twice; 0 if there is none. */
let duplicate: usize = 0

/** Builds the tables of an inspected file. Returns the record's address, or 0 if there is no memory. */
function build(file: usize, count: usize): usize {
  const probe = changetype<Vocabulary>(arenaAlloc(offsetof<Vocabulary>()))
  const scratch = arenaAlloc(count * 12)
  offsets = arenaAlloc(count * 4)
  strings = arenaAlloc(stringBytes + 16)
  if (changetype<usize>(probe) == 0 || scratch == 0 || offsets == 0 || strings == 0) return 0
  layOut(probe, 0, count)
  const record = blockAlloc(layoutEnd)
  if (record == 0) return 0
  const it = changetype<Vocabulary>(record)
  layOut(it, record, count)
  it.pattern = load<u32>(file, 8)
  startTables(it)
  duplicate = fill(it, file, count)
  if (duplicate == 0) markSure(it, count, scratch)
  return record
}

/** Loads a vocabulary. Returns a handle, or a code. The file is not needed afterwards. */
export function loadVocabulary(file: usize, size: usize): i32 {
  setOrigin(file)
  const count: usize = size < HEADER ? 0 : <usize>load<u32>(file, 12)
  if (count < 256 || count > ID_MASK || size != HEADER + (count - 256) * 6) {
    return refuse(TOKENS_BAD_VOCABULARY, file + 12)
  }
  const kind = load<u32>(file, 8)
  if (load<u32>(file) != MAGIC || load<u32>(file, 4) != 1 || kind - PATTERN_O200K > 1) {
    return refuse(TOKENS_BAD_VOCABULARY, file)
  }
  if (!readyClasses()) return fail(ERROR_MEMORY)
  const mark = arenaMark()
  const sizes = arenaAlloc(count)
  if (sizes == 0) return fail(ERROR_MEMORY)
  const wrong = inspect(file, size, sizes)
  const record = wrong == 0 ? build(file, count) : 0
  arenaReset(mark)
  if (wrong != 0) return refuse(TOKENS_BAD_VOCABULARY, wrong)
  if (record == 0) return fail(ERROR_MEMORY)
  const handle = duplicate == 0 ? keepVocabulary(record) : 0
  if (handle > 0) return handle
  blockFree(record)
  return duplicate != 0 ? refuse(TOKENS_BAD_VOCABULARY, duplicate) : fail(ERROR_MEMORY)
}
