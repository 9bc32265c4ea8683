// The token functions of the ABI, exported by assembly/index.ts. Every span is checked here, once.
import { ERROR_ARGUMENT } from '../abi'
import { isReadable } from '../arena'
import { fail } from '../refusal'
import { tokenize } from './count'
import { adoptImage } from './image'
import { loadVocabulary } from './load'
import { work } from './merge'
import { freeVocabulary, recordOf, selectVocabulary } from './tables'

/**
 * Loads a vocabulary from the bytes of its file. Returns a handle, TOKENS_BAD_VOCABULARY with
 * last_error_offset, or ERROR_MEMORY. The bytes are not needed afterwards. At most 8 vocabularies can be
 * loaded at a time. o200k_base takes 10 MB, and 6 MB of scratch while it is loaded.
 */
export function tokens_load(file: usize, length: i32): i32 {
  if (length < 0 || !isReadable(file, length)) return fail(ERROR_ARGUMENT)
  return loadVocabulary(file, length)
}

/**
 * Returns the address of a loaded vocabulary's image, or 0. The third u32 of the image is its size in bytes.
 * `tokens_adopt` of the same build of this module loads the image.
 */
export function tokens_image(handle: i32): usize {
  return recordOf(handle)
}

/**
 * Loads a vocabulary from an image that `tokens_image` of the same build returned. Returns a handle, or a
 * code. `block` is from `block_new` and contains the image. Unless the call returns a code, the vocabulary
 * owns the block. The tables of an image are trusted.
 */
export function tokens_adopt(block: usize, length: i32): i32 {
  if (length < 0 || !isReadable(block, length)) return fail(ERROR_ARGUMENT)
  return adoptImage(block, length)
}

/** Frees a vocabulary. Returns 0, or ERROR_ARGUMENT. Its handle may be reused. */
export function tokens_free(handle: i32): i32 {
  return freeVocabulary(handle)
}

function isGood(handle: i32, text: usize, length: i32): bool {
  return length >= 0 && isReadable(text, length) && selectVocabulary(handle)
}

/**
 * Returns the number of tokens of the text, or a code. Special tokens are treated as text. Bytes that are not
 * UTF-8 count as U+FFFD, one for each maximal part of a character, as decoders replace them.
 */
export function tokens_count(handle: i32, text: usize, length: i32): i32 {
  return isGood(handle, text, length) ? tokenize(text, length, 0, 0) : fail(ERROR_ARGUMENT)
}

/**
 * Like `tokens_count`, and writes the ids of the first `max` tokens to `out`, u32 each. `out` must not
 * overlap the text and the 16 bytes after it.
 */
export function tokens_encode(handle: i32, text: usize, length: i32, out: usize, max: i32): i32 {
  const isRoom = max >= 0 && max <= 0xfffffff && isReadable(out, <usize>max << 2)
  return isRoom && isGood(handle, text, length)
    ? tokenize(text, length, out, max)
    : fail(ERROR_ARGUMENT)
}

/** Returns the units of work done on texts since the module started; tests of linear time use it. */
export function tokens_work(): f64 {
  return <f64>work
}
