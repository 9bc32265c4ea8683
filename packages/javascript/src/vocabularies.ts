/** Vocabularies for token counts. Takes the place of `src/engines/core/built-files.ts` in bundles of this package. */
import type { EncodingName } from '../../../src/engines/core/tokens-models.ts'
import { fromBase64 } from './base64.ts'

const files = {
  o200k_base: () => import('embedded:o200k_base'),
  cl100k_base: () => import('embedded:cl100k_base'),
}

const loaded = new Map<string, Uint8Array>()

/** Loads a vocabulary, which is a file of its own. Later calls return at once. */
export async function loadVocabulary(encoding: EncodingName): Promise<void> {
  if (loaded.has(encoding)) return
  const { default: packed } = await files[encoding]()
  loaded.set(encoding, await gunzip(fromBase64(packed)))
}

/** Decompresses a file. Node would load its whole `fetch` for a Response that does the same. */
async function gunzip(file: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const { readable, writable } = new DecompressionStream('gzip')
  const writer = writable.getWriter()
  // Errors of writing reject the reads, too.
  Promise.all([writer.write(file), writer.close()]).catch(() => undefined)
  // A gzip file ends with its decompressed size.
  const size = new DataView(file.buffer).getUint32(file.length - 4, true)
  const content = new Uint8Array(size)
  const reader = readable.getReader()
  let at = 0
  for (let next = await reader.read(); next.value !== undefined; next = await reader.read()) {
    content.set(next.value, at)
    at += next.value.length
  }
  return content
}

/** Returns a vocabulary that was loaded before. */
export function readVocabulary(encoding: EncodingName): Uint8Array {
  const file = loaded.get(encoding)
  if (file === undefined) throw new Error(`the vocabulary ${encoding} has not been loaded`)
  return file
}

/** The package contains the small file of a vocabulary, and no image of it. */
export const readVocabularyImage = (): undefined => undefined
