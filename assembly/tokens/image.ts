/**
 * Images: the block of a loaded vocabulary, copied from memory, with its record first. To load an image, only
 * the addresses in its record are changed. An image is trusted as much as the module that made it, and only
 * the same build can load it: only its header is checked.
 */
import { ERROR_ARGUMENT, ERROR_MEMORY, TOKENS_BAD_VOCABULARY } from '../abi'
import { blockCapacity } from '../arena'
import { fail, refuse, setOrigin } from '../refusal'
import { readyClasses } from './classes'
import { IMAGE_MAGIC, keepVocabulary, Vocabulary } from './tables'

/** The first and the last address in a record. All words between them are addresses. */
const FIRST_TABLE = offsetof<Vocabulary>('short')
const LAST_TABLE = offsetof<Vocabulary>('cache')

/** Makes a vocabulary from a block that begins with an image of `size` bytes. Returns a handle, or a code. */
export function adoptImage(block: usize, size: usize): i32 {
  setOrigin(block)
  const it = changetype<Vocabulary>(block)
  if (block == 0 || (block & 15) != 0 || size < offsetof<Vocabulary>() || blockCapacity(block) < size) {
    return fail(ERROR_ARGUMENT)
  }
  if (it.magic != IMAGE_MAGIC || <usize>it.size != size) return refuse(TOKENS_BAD_VOCABULARY, block)
  if (!readyClasses()) return fail(ERROR_MEMORY)
  const distance = block - it.base
  for (let at = block + FIRST_TABLE; at <= block + LAST_TABLE; at += 4) {
    store<u32>(at, load<u32>(at) + <u32>distance)
  }
  it.base = block
  const handle = keepVocabulary(block)
  return handle > 0 ? handle : fail(ERROR_MEMORY)
}
