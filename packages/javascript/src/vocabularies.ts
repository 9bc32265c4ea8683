/** Vocabularies for token counts. Takes the place of `src/core/built-files.ts` in bundles of this package. */
import type { EncodingName } from '../../../src/core/tokens-models.ts'
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
  const unpacked = new Blob([fromBase64(packed)])
    .stream()
    .pipeThrough(new DecompressionStream('gzip'))
  loaded.set(encoding, new Uint8Array(await new Response(unpacked).arrayBuffer()))
}

/** Returns a vocabulary that was loaded before. */
export function readVocabulary(encoding: EncodingName): Uint8Array {
  const file = loaded.get(encoding)
  if (file === undefined) throw new Error(`the vocabulary ${encoding} has not been loaded`)
  return file
}
