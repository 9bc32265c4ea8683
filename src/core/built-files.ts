/**
 * Files that `npm run build` makes, read by Node. Bundles for browsers have `built-files-browser.ts` in place
 * of this file.
 */
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'

/** Folders that may contain built files: that of the bundle, and dist/ relative to src/core. */
const folders = ['./', '../../dist/']

const pathsOf = (name: string) =>
  folders.map((folder) => fileURLToPath(new URL(folder + name, import.meta.url)))

/** Reads a file that `npm run build` creates. Throws if it is missing. */
export function readBuilt(name: string): Buffer<ArrayBuffer> {
  const paths = pathsOf(name)
  const path = paths.find((candidate) => existsSync(candidate))
  if (path !== undefined) return readFileSync(path)
  throw new Error(`${name} is missing; looked at ${paths.join(' and ')}: run npm run build`)
}

/** Reads the vocabulary of an encoding. Throws like `readBuilt`. */
export const readVocabulary = (encoding: string): Uint8Array =>
  brotliDecompressSync(readBuilt(`${encoding}.tokens.br`))

/**
 * Reads the image of a vocabulary, which the core uses as it is, into the memory that `allocate` returns for
 * its size. Returns false without an image.
 */
export function readVocabularyImage(
  encoding: string,
  allocate: (size: number) => Uint8Array,
): boolean {
  const path = pathsOf(`${encoding}.tokens.image`).find((candidate) => existsSync(candidate))
  if (path === undefined) return false
  const file = openSync(path, 'r')
  try {
    const { size } = fstatSync(file)
    return readSync(file, allocate(size), 0, size, 0) === size
  } finally {
    closeSync(file)
  }
}
