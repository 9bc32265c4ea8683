/** Finds fields of a head with `_` in their names, in the record of the core. */
import { FIELD_SIZE, HEAD_FIELDS, INFO_HOP, type IoCore } from '../../core/index.ts'

type CoreMemory = Pick<IoCore, 'words' | 'bytes'>

/** Hides fields with `_` in their names. Returns whether there were any. `head` is the word of the record. */
export function dropUnderscores(
  { words, bytes }: CoreMemory,
  head: number,
  count: number,
): boolean {
  const first = head + HEAD_FIELDS / 4
  const end = first + (count * FIELD_SIZE) / 4
  let hasFound = false
  for (let at = first; at < end; at += FIELD_SIZE / 4) {
    const start = words[at] ?? 0
    const nameEnd = words[at + 1] ?? 0
    let place = start
    while (place < nameEnd && bytes[place] !== 0x5f) place++
    if (place === nameEnd) continue
    hasFound = true
    // Names are never empty, so the field matches nothing; hop-by-hop fields are not sent.
    words[at + 1] = start
    words[at + 4] = (words[at + 4] ?? 0) | INFO_HOP
  }
  return hasFound
}

const transferEncoding = 'transfer_encoding'
const contentLength = 'content_length'

/**
 * Returns whether a field is named `Transfer_Encoding` or `Content_Length`. Servers that treat `_` as `-` would
 * see another end of the body than this proxy.
 */
export function hasFramingAlias(core: CoreMemory, head: number, count: number): boolean {
  const { words } = core
  const first = head + HEAD_FIELDS / 4
  const end = first + (count * FIELD_SIZE) / 4
  for (let at = first; at < end; at += FIELD_SIZE / 4) {
    const start = words[at] ?? 0
    const length = (words[at + 1] ?? 0) - start
    if (length === transferEncoding.length && isNamed(core, start, transferEncoding)) return true
    if (length === contentLength.length && isNamed(core, start, contentLength)) return true
  }
  return false
}

/** Compares a name in any case with a text in lower case. */
function isNamed({ bytes }: CoreMemory, start: number, name: string): boolean {
  for (let at = 0; at < name.length; at++) {
    const byte = bytes[start + at] ?? 0
    const lower = byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte
    if (lower !== name.charCodeAt(at)) return false
  }
  return true
}
