/**
 * Files that `npm run build` makes, in browsers: a page fetches them, and provides them before their first
 * use, because the core is loaded synchronously.
 */
const provided = new Map<string, Uint8Array<ArrayBuffer>>()

/** Provides `core.wasm`, or the vocabulary of an encoding by its name (`o200k_base`), without compression. */
export function provideBuilt(name: string, content: Uint8Array<ArrayBuffer>): void {
  provided.set(name, content)
}

export function readBuilt(name: string): Uint8Array<ArrayBuffer> {
  const content = provided.get(name)
  if (content !== undefined) return content
  throw new Error(`${name} was not provided: call provideBuilt('${name}', …) first`)
}

export const readVocabulary = readBuilt

/** Pages fetch the small file of a vocabulary, and have no image of it. */
export const readVocabularyImage = (): undefined => undefined
