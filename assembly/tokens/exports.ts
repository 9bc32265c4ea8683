// The token part of the ABI: what assembly/index.ts exports. Every span is checked here, once.
import { ERROR_ARGUMENT } from '../abi'
import { isReadable } from '../arena'
import { fail } from '../refusal'
import { tokenize } from './count'
import { adoptImage } from './image'
import { loadVocabulary } from './load'
import { work } from './merge'
import { freeVocabulary, recordOf, selectVocabulary } from './tables'

/**
 * Loads a vocabulary from the bytes of its file: a handle, TOKENS_BAD_VOCABULARY with last_error_offset,
 * or ERROR_MEMORY. The bytes are not kept. At most 8 at a time; o200k_base takes 10 MB,
 * and 6 MB of scratch while it is loaded.
 */
export function tokens_load(file: usize, length: i32): i32 {
  if (length < 0 || !isReadable(file, length)) return fail(ERROR_ARGUMENT)
  return loadVocabulary(file, length)
}

/**
 * The address of a loaded vocabulary's image, or 0. Its size in bytes is the third u32. The image is what
 * `tokens_adopt` of the same build of this module loads without further work.
 */
export function tokens_image(handle: i32): usize {
  return recordOf(handle)
}

/**
 * Loads a vocabulary from an image that `tokens_image` of the same build gave: a handle, or a code. `block`
 * is from `block_new` and holds the image; it belongs to the vocabulary then, unless there is a code. The
 * tables of an image are trusted.
 */
export function tokens_adopt(block: usize, length: i32): i32 {
  if (length < 0 || !isReadable(block, length)) return fail(ERROR_ARGUMENT)
  return adoptImage(block, length)
}

/** Frees a vocabulary: 0, or ERROR_ARGUMENT. Its handle may be given out again. */
export function tokens_free(handle: i32): i32 {
  return freeVocabulary(handle)
}

function isGood(handle: i32, text: usize, length: i32): bool {
  return length >= 0 && isReadable(text, length) && selectVocabulary(handle)
}

/**
 * How many tokens the text is, or a code. Special tokens are text; bytes that are not UTF-8 count as the
 * U+FFFD that a decoder puts in their place, one for each maximal part of a character.
 */
export function tokens_count(handle: i32, text: usize, length: i32): i32 {
  return isGood(handle, text, length) ? tokenize(text, length, 0, 0) : fail(ERROR_ARGUMENT)
}

/**
 * The same, and writes the ids of the first `max` tokens to `out`, u32 each. `out` shares no byte with
 * the text and the 16 bytes after it.
 */
export function tokens_encode(handle: i32, text: usize, length: i32, out: usize, max: i32): i32 {
  const isRoom = max >= 0 && max <= 0xfffffff && isReadable(out, <usize>max << 2)
  return isRoom && isGood(handle, text, length)
    ? tokenize(text, length, out, max)
    : fail(ERROR_ARGUMENT)
}

/** Units of work done on texts since the module started: what tests of linear time count. */
export function tokens_work(): f64 {
  return <f64>work
}
