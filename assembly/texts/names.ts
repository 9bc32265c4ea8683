// Names of JSON members that the kernel knows, by number. Names that differ only in case are recognized
// too, because some servers accept them: `foldedName` says which name such a name could be read as.
import { isAscii } from './bytes'
import { FIELD_TABLES } from './fields'

const NAMES_1: string = 'messages prediction system instructions prompt input content output outputs results title context stdout '
const NAMES_2: string = 'stderr logs role refusal type text source data variables transcript choices message audio delta index '
const NAMES_3: string = 'finish_reason content_block item part response annotation annotations citation citations search_results '
const NAMES_4: string = 'logprobs token_ids output_text usage model stream error stop_reason output_index content_index '
const NAMES_5: string = 'sequence_number prompt_tokens completion_tokens total_tokens input_tokens output_tokens '
const NAMES_6: string = 'cache_read_input_tokens cache_creation_input_tokens url file_data filename media_type custom input_audio name '
const NAMES_7: string = 'arguments thinking tools metadata parameters input_schema schema '

export const MESSAGES: i32 = 1
export const PREDICTION: i32 = 2
export const SYSTEM: i32 = 3
export const INSTRUCTIONS: i32 = 4
export const PROMPT: i32 = 5
export const INPUT: i32 = 6
export const CONTENT: i32 = 7
export const OUTPUT: i32 = 8
export const OUTPUTS: i32 = 9
export const RESULTS: i32 = 10
export const TITLE: i32 = 11
export const CONTEXT: i32 = 12
export const STDOUT: i32 = 13
export const STDERR: i32 = 14
export const LOGS: i32 = 15
export const ROLE: i32 = 16
export const REFUSAL: i32 = 17
export const TYPE: i32 = 18
export const TEXT: i32 = 19
export const SOURCE: i32 = 20
export const DATA: i32 = 21
export const VARIABLES: i32 = 22
export const TRANSCRIPT: i32 = 23
export const CHOICES: i32 = 24
export const MESSAGE: i32 = 25
export const AUDIO: i32 = 26
export const DELTA: i32 = 27
export const INDEX: i32 = 28
export const FINISH_REASON: i32 = 29
export const CONTENT_BLOCK: i32 = 30
export const ITEM: i32 = 31
export const PART: i32 = 32
export const RESPONSE: i32 = 33
export const ANNOTATION: i32 = 34
export const ANNOTATIONS: i32 = 35
export const CITATION: i32 = 36
export const CITATIONS: i32 = 37
export const SEARCH_RESULTS: i32 = 38
export const LOGPROBS: i32 = 39
export const TOKEN_IDS: i32 = 40
export const OUTPUT_TEXT: i32 = 41
export const USAGE: i32 = 42
export const MODEL: i32 = 43
export const STREAM: i32 = 44
export const ERROR: i32 = 45
export const STOP_REASON: i32 = 46
export const OUTPUT_INDEX: i32 = 47
export const CONTENT_INDEX: i32 = 48
export const SEQUENCE_NUMBER: i32 = 49
export const PROMPT_TOKENS: i32 = 50
export const COMPLETION_TOKENS: i32 = 51
export const TOTAL_TOKENS: i32 = 52
export const INPUT_TOKENS: i32 = 53
export const OUTPUT_TOKENS: i32 = 54
export const CACHE_READ: i32 = 55
export const CACHE_CREATION: i32 = 56
export const URL: i32 = 57
export const FILE_DATA: i32 = 58
export const FILENAME: i32 = 59
export const MEDIA_TYPE: i32 = 60
export const CUSTOM: i32 = 61
export const INPUT_AUDIO: i32 = 62
export const NAME: i32 = 63
export const ARGUMENTS: i32 = 64
export const THINKING: i32 = 65
export const TOOLS: i32 = 66
export const METADATA: i32 = 67
export const PARAMETERS: i32 = 68
export const INPUT_SCHEMA: i32 = 69
export const SCHEMA: i32 = 70

/** Bytes of the longest name. */
const LONGEST: i32 = 27

const TABLE_BYTES: usize = 512 * 16
/** Open addressing: hash u32 | address of the UTF-16 text u32 | length u32 | number u32, 0 if empty. */
const TABLE: usize = memory.data(512 * 16)
let count: u32 = 0

// @ts-ignore: decorator
@inline
function mix(hash: u32, byte: u32): u32 {
  return (hash ^ byte) * 0x01000193
}

// @ts-ignore: decorator
@inline
function slotOf(hash: u32): usize {
  return TABLE + (<usize>(hash & 511) << 4)
}

function nextSlot(entry: usize): usize {
  return TABLE + ((entry + 16 - TABLE) & (TABLE_BYTES - 1))
}

/** Flags of each name. */
const FLAGS: usize = memory.data(256 * 4)

/** Adds names, each of which ends with a space; gives them flags. */
function addNames(names: string, flags: u32): void {
  const text = changetype<usize>(names)
  let start = text
  let hash: u32 = 0x811c9dc5
  for (let i = 0; i < names.length; i++) {
    const at = text + (<usize>i << 1)
    const byte = <u32>load<u16>(at)
    if (byte != 32) {
      hash = mix(hash, byte)
      continue
    }
    const length = <u32>(at - start) >> 1
    let entry = slotOf(hash)
    while (load<u32>(entry, 12) != 0 && !isSame(entry, hash, start, length)) entry = nextSlot(entry)
    if (load<u32>(entry, 12) == 0) {
      store<u32>(entry, hash)
      store<u32>(entry, <u32>start, 4)
      store<u32>(entry, length, 8)
      store<u32>(entry, ++count, 12)
    }
    const place = FLAGS + (<usize>load<u32>(entry, 12) << 2)
    store<u32>(place, load<u32>(place) | flags)
    start = at + 2
    hash = 0x811c9dc5
  }
}

function isSame(entry: usize, hash: u32, from: usize, length: u32): bool {
  if (load<u32>(entry) != hash || load<u32>(entry, 8) != length) return false
  return memory.compare(<usize>load<u32>(entry, 4), from, <usize>length << 1) == 0
}

/** The names with a number above come first. */
function fillTable(): void {
  addNames(NAMES_1, 0)
  addNames(NAMES_2, 0)
  addNames(NAMES_3, 0)
  addNames(NAMES_4, 0)
  addNames(NAMES_5, 0)
  addNames(NAMES_6, 0)
  addNames(NAMES_7, 0)
  for (let i = 0; i < FIELD_TABLES.length; i++) addNames(unchecked(FIELD_TABLES[i]), 1 << i)
}

/** FIELD_* of a name. */
// @ts-ignore: decorator
@inline
export function flagsOf(name: i32): u32 {
  return load<u32>(FLAGS + (<usize>name << 2))
}

/** The number of a name, or 0. */
export function nameOf(from: usize, length: i32): i32 {
  if (length > LONGEST) return 0
  if (count == 0) fillTable()
  let hash: u32 = 0x811c9dc5
  for (let i = 0; i < length; i++) hash = mix(hash, load<u8>(from + i))
  let entry = slotOf(hash)
  while (load<u32>(entry, 12) != 0 && !isName(entry, hash, from, length)) entry = nextSlot(entry)
  return load<i32>(entry, 12)
}

function isName(entry: usize, hash: u32, from: usize, length: i32): bool {
  if (load<u32>(entry) != hash || load<i32>(entry, 8) != length) return false
  const name = <usize>load<u32>(entry, 4)
  for (let i = 0; i < length; i++) if (load<u8>(from + i) != load<u8>(name + (<usize>i << 1))) return false
  return true
}

/** The name that `foldName` wrote. */
const foldedText: usize = memory.data(64)

/**
 * The number of the name that a server might read here if it ignores case, or 0. Some letters become ASCII
 * letters only by a change of case: U+017F (s), U+212A (k), U+0131 (i), U+00DF (ss) and the ligatures of U+FB00.
 */
export function foldedName(from: usize, length: i32): i32 {
  const size = foldName(from, length)
  return size < 0 ? 0 : nameOf(foldedText, size)
}

/** Writes a name at `foldedText` as a server that ignores case may read it; its length, or -1 if it is no known name. */
function foldName(from: usize, length: i32): i32 {
  if (length > LONGEST * 3) return -1
  let size = 0
  for (let i = 0; i < length && size <= LONGEST; i++) {
    const byte = <u32>load<u8>(from + i)
    if (byte < 0x80) {
      store<u8>(foldedText + size++, byte - 65 < 26 ? byte | 32 : byte)
      continue
    }
    const pair = i + 1 < length ? (byte << 8) | load<u8>(from + i + 1) : 0
    const triple = i + 2 < length ? (pair << 8) | load<u8>(from + i + 2) : 0
    if (pair == 0xc5bf) size = putFolded(size, 's')
    else if (pair == 0xc4b1) size = putFolded(size, 'i')
    else if (pair == 0xc39f) size = putFolded(size, 'ss')
    else if (triple == 0xe284aa) size = putFolded(size, 'k')
    else if (triple >= 0xefac80 && triple <= 0xefac86) size = putLigature(size, triple - 0xefac80)
    else return -1
    i += pair < 0xe000 ? 1 : 2
  }
  return size > LONGEST ? -1 : size
}

function putFolded(size: i32, text: string): i32 {
  for (let i = 0; i < text.length; i++) store<u8>(foldedText + size + i, load<u8>(changetype<usize>(text) + (<usize>i << 1)))
  return size + text.length
}

function putLigature(size: i32, which: u32): i32 {
  if (which == 0) return putFolded(size, 'ff')
  if (which == 1) return putFolded(size, 'fi')
  if (which == 2) return putFolded(size, 'fl')
  if (which == 3) return putFolded(size, 'ffi')
  return putFolded(size, which == 4 ? 'ffl' : 'st')
}

/** Does a member of a citation have this name if it is no text: type, url, uri, encrypted_*, id, *_id? */
export function isNonText(from: usize, length: i32): bool {
  if (isAscii(from, length, 'type') || isAscii(from, length, 'url') || isAscii(from, length, 'uri')) return true
  if (length >= 10 && isAscii(from, 10, 'encrypted_')) return true
  return isAscii(from, length, 'id') || (length >= 3 && isAscii(from + length - 3, 3, '_id'))
}
