// Lists of words and names. A list becomes a tree of the UTF-8 bytes of its words, in which equal characters
// (characters.ts) are the smallest one. word-scan.ts finds the words in texts.
//
// Record:
//   +0  slots of edges - 1    +4  nodes    +8  length of the longest match, in bytes
//   +12 mask of the first bytes of words of less than four bytes, 0 if there are none
//   +16 first bytes below 128, +32 first bytes from 128 on: by their lower half, one bit for each upper half
//   +48 one bit for each hash of the first bytes of a word (8192)
//   +8240 edges, 8 bytes each: node << 8 | byte, plus 1; the node behind | WORD_END. A free slot is 0.
import { blockAlloc } from '../arena'
import { ERROR_MEMORY, WORDS_BAD_UTF8, WORDS_LONG_WORD, WORDS_TOO_LARGE, WORDS_TOO_MANY } from '../abi'
import { canonical, decode, decodedBytes, encode, nextCase, prepareWordPoints, spellingOf } from './characters'

export const W_SLOTS: usize = 0
const W_NODES: usize = 4
export const W_LONGEST: usize = 8
export const W_SHORT: usize = 12
export const W_FIRST: usize = 16
export const W_FIRST_HIGH: usize = 32
export const W_KEYS: usize = 48
const W_EDGES: usize = 8240
/** A line end of two bytes, which equals a space. The longest form of a space has three. */
const CR_LF: u32 = 0x0a0d
/** The bit of a node at which a word ends. */
export const WORD_END: u32 = 1 << 31

const MAX_WORDS: i32 = 10_000
const MAX_WORD_BYTES: i32 = 256
const MAX_BYTES: i32 = 1 << 18

/** Address of the word that the last failed `newWords` refused. */
export let refusedAt: usize = 0

/** The code points of the current word, each the smallest equal one. */
const points = memory.data(256 * 4)
let pointCount: i32 = 0
let foldedBytes: i32 = 0
let longestBytes: i32 = 0

// --- edges -----------------------------------------------------------------------------------------

/** Returns the slot of an edge, or the free one where it would be. */
// @ts-ignore: decorator
@inline
function slotOf(words: usize, edge: u32): usize {
  const last = load<u32>(words, W_SLOTS)
  const product = edge * 0x9e3779b1
  let slot = (product ^ (product >> 15)) & last
  while (true) {
    const at = words + W_EDGES + (<usize>slot << 3)
    const present = load<u32>(at)
    if (present == 0 || present == edge) return at
    slot = (slot + 1) & last
  }
}

/** Returns the node behind `node` on a byte, with WORD_END if a word ends there; 0 if there is none. */
export function step(words: usize, node: u32, byte: u32): u32 {
  return load<u32>(slotOf(words, (((node & ~WORD_END) << 8) | byte) + 1), 4)
}

function addEdge(words: usize, node: u32, byte: u32): usize {
  const edge = ((node << 8) | byte) + 1
  const slot = slotOf(words, edge)
  if (load<u32>(slot) == 0) {
    const nodes = load<u32>(words, W_NODES) + 1
    store<u32>(words, nodes, W_NODES)
    store<u32>(slot, edge)
    store<u32>(slot, nodes, 4)
  }
  return slot
}

// --- first bytes -----------------------------------------------------------------------------------

/** Returns a hash of the first bytes of a word, of which upper and lower case are equal. */
// @ts-ignore: decorator
@inline
export function hashOf(bytes: u32, mask: u32): u32 {
  return (((bytes | 0x20202020) & mask) * 0x9e3779b1) >> 16
}

function addFirst(words: usize, bytes: u32, mask: u32): void {
  const byte = bytes & 255
  const at = words + (byte < 128 ? W_FIRST : W_FIRST_HIGH) + (byte & 15)
  store<u8>(at, load<u8>(at) | (<u8>1 << <u8>((byte >> 4) & 7)))
  const hash = hashOf(bytes, mask)
  const key = words + W_KEYS + (hash >> 3)
  store<u8>(key, load<u8>(key) | (<u8>1 << <u8>(hash & 7)))
}

/** Returns the form with an index from 0 on of an equal character; 0 behind the last one. */
function formOf(point: u32, index: i32): u32 {
  let form = point
  for (let i = 0; i < index; i++) {
    form = nextCase(form)
    if (form == point) return point < 128 ? spellingOf(point, index - i - 1) : 0
  }
  return form
}

/** Adds all first bytes with which the word may be written: `bytes`, of which there are `count`, and those of the characters from `index` on. */
function addFirsts(words: usize, index: i32, bytes: u32, count: i32, mask: u32): void {
  if (count >= 4 || index == pointCount || mask >> <u32>(count * 8) == 0) {
    addFirst(words, bytes, mask)
    return
  }
  const point = load<u32>(points + (<usize>index << 2))
  for (let i = 0, form = point; form != 0; form = formOf(point, ++i)) {
    store<u32>(encoded, 0)
    const size = encode(form, encoded)
    addFirsts(words, index + 1, bytes | (load<u32>(encoded) << <u32>(count * 8)), count + size, mask)
  }
  if (point == 32) addFirsts(words, index + 1, bytes | (<u32>CR_LF << <u32>(count * 8)), count + 2, mask)
}

// --- words -----------------------------------------------------------------------------------------

const encoded = memory.data(8)

/** Returns the size of the longest form of a character. */
function longestForm(point: u32): i32 {
  let longest = 0
  for (let i = 0, form = point; form != 0; form = formOf(point, ++i)) longest = max(longest, encode(form, encoded))
  return longest
}

/** Reads the word from `start` to `end`. Returns 0, or a code. */
function readWord(text: usize, start: i32, end: i32): i32 {
  pointCount = 0
  foldedBytes = 0
  longestBytes = 0
  if (end - start > MAX_WORD_BYTES) return WORDS_LONG_WORD
  for (let at = start; at < end; at += decodedBytes) {
    const point = decode(text, at, end)
    if (point < 0) return WORDS_BAD_UTF8
    const least = canonical(point)
    store<u32>(points + (<usize>pointCount << 2), least)
    pointCount++
    longestBytes += longestForm(least)
    foldedBytes += encode(least, encoded)
  }
  return 0
}

let lineStart: i32 = 0
let lineEnd: i32 = 0
let lineNext: i32 = 0

/** Finds the next line that is not empty, without spaces around it. Returns false behind the last one. */
function nextLine(text: usize, length: i32): bool {
  while (lineNext < length) {
    lineStart = lineNext
    lineEnd = lineStart
    while (lineEnd < length && load<u8>(text + lineEnd) != 10) lineEnd++
    lineNext = lineEnd + 1
    while (lineStart < lineEnd && load<u8>(text + lineStart) <= 32) lineStart++
    while (lineEnd > lineStart && load<u8>(text + lineEnd - 1) <= 32) lineEnd--
    if (lineStart < lineEnd) return true
  }
  return false
}

/** Checks all words. Returns 0, or a code. */
function check(text: usize, length: i32): i32 {
  let count = 0
  refusedAt = text
  if (length > MAX_BYTES) return WORDS_TOO_LARGE
  lineNext = 0
  shortest = 4
  longestMatch = 0
  while (nextLine(text, length)) {
    refusedAt = text + lineStart
    if (++count > MAX_WORDS) return WORDS_TOO_MANY
    const code = readWord(text, lineStart, lineEnd)
    if (code < 0) return code
    shortest = min(shortest, foldedBytes)
    longestMatch = max(longestMatch, longestBytes)
  }
  return 0
}

let shortest: i32 = 4
let longestMatch: i32 = 0

function addWord(words: usize): void {
  const isShort = foldedBytes < 4
  addFirsts(words, 0, 0, 0, isShort ? load<u32>(words, W_SHORT) : <u32>-1)
  let node: u32 = 0
  let slot: usize = 0
  for (let i = 0; i < pointCount; i++) {
    const size = encode(load<u32>(points + (<usize>i << 2)), encoded)
    for (let k = 0; k < size; k++) {
      slot = addEdge(words, node, load<u8>(encoded + k))
      node = load<u32>(slot, 4) & ~WORD_END
    }
  }
  store<u32>(slot, node | WORD_END, 4)
}

/** Makes a list of the lines of a text. Returns its record, or a code with `refusedAt`. */
export function newWords(text: usize, length: i32): i32 {
  const code = check(text, length)
  if (code < 0) return code
  let slots: u32 = 64
  while (slots * 3 < <u32>length * 4) slots <<= 1
  const size = W_EDGES + (<usize>slots << 3)
  const words = blockAlloc(size)
  if (words == 0) return ERROR_MEMORY
  memory.fill(words, 0, size)
  store<u32>(words, slots - 1, W_SLOTS)
  store<i32>(words, longestMatch, W_LONGEST)
  store<u32>(words, shortest < 4 ? ((<u32>1 << <u32>(shortest * 8)) - 1) : 0, W_SHORT)
  prepareWordPoints()
  lineNext = 0
  while (nextLine(text, length)) {
    readWord(text, lineStart, lineEnd)
    addWord(words)
  }
  return <i32>words
}
