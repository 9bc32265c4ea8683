/**
 * Files that `npm run build` makes, read by Node. Bundles for browsers have `built-files-browser.ts` in place
 * of this file.
 */
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'

/** Folders that may contain built files: that of the bundle, and dist/ relative to src/engines/core. */
const folders = ['./', '../../../dist/']

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

/** Bytes of an image that are read in one step, in a fraction of a millisecond. */
const stepBytes = 1 << 20

/**
 * Reads the image of a vocabulary, which the core uses as it is. `allocate` gets its size, and returns a function
 * that returns the memory for it. The image is read in steps, between which other work may run. Returns undefined
 * without an image. The generator returns false if the file is shorter than it was.
 */
export function readVocabularyImage(
  encoding: string,
  allocate: (size: number) => () => Uint8Array,
): Generator<undefined, boolean> | undefined {
  const path = pathsOf(`${encoding}.tokens.image`).find((candidate) => existsSync(candidate))
  return path === undefined ? undefined : readInSteps(path, allocate)
}

function* readInSteps(
  path: string,
  allocate: (size: number) => () => Uint8Array,
): Generator<undefined, boolean> {
  const file = openSync(path, 'r')
  try {
    const { size } = fstatSync(file)
    const memory = allocate(size)
    for (let done = 0; done < size; ) {
      yield
      const read = readSync(file, memory(), done, Math.min(stepBytes, size - done), done)
      if (read === 0) return false
      done += read
    }
    return true
  } finally {
    closeSync(file)
  }
}
