/**
 * Files that `npm run build` makes, read by Node. Bundles for browsers have `built-files-browser.ts` in place
 * of this file.
 */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'

/** Folders that may contain built files: that of the bundle, and dist/ relative to src/core. */
const folders = ['./', '../../dist/']

/** Reads a file that `npm run build` creates. Throws if it is missing. */
export function readBuilt(name: string): Buffer<ArrayBuffer> {
  const paths = folders.map((folder) => fileURLToPath(new URL(folder + name, import.meta.url)))
  const path = paths.find((candidate) => existsSync(candidate))
  if (path !== undefined) return readFileSync(path)
  throw new Error(`${name} is missing; looked at ${paths.join(' and ')}: run npm run build`)
}

/** Reads the vocabulary of an encoding. Throws like `readBuilt`. */
export const readVocabulary = (encoding: string): Uint8Array =>
  brotliDecompressSync(readBuilt(`${encoding}.tokens.br`))
