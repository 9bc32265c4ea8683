// What the scripts of all packages share.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { coreParts, noticesFile, noticesOf } from '../notices.mjs'

export const root = join(import.meta.dirname, '..', '..')

/** The WebAssembly modules, as files of dist/. */
export const modules = ['core.wasm', 'core-texts.wasm']

export const encodings = ['o200k_base', 'cl100k_base']

/** A vocabulary in dist/, which is compressed with Brotli. */
export const vocabularyFile = (encoding) => join(root, 'dist', `${encoding}.tokens.br`)

export const readVocabulary = (encoding) =>
  brotliDecompressSync(readFileSync(vocabularyFile(encoding)))

/** Files with the licences of the product and of what the core contains, for packages that have no other code. */
export const licenseFiles = () => [
  { name: 'LICENSE', bytes: readFileSync(join(root, 'LICENSE')) },
  { name: noticesFile, bytes: Buffer.from(noticesOf(coreParts())) },
]

/**
 * If a script is run itself: passes its argument FOLDER and the version of the product to `write`.
 * @param {string} file `import.meta.filename` of the script
 * @param {(folder: string, version: string) => unknown} write
 */
export async function runScript(file, write) {
  if (process.argv[1] !== file) return
  const [folder] = process.argv.slice(2)
  if (folder === undefined) {
    process.stderr.write(`usage: node scripts/packages/${basename(file)} FOLDER\n`)
    process.exit(2)
  }
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  await write(folder, version)
}

/** Writes files to a folder, with the folders that they need. */
export function writeFiles(folder, files) {
  for (const { name, bytes } of files) {
    const path = join(folder, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, bytes)
  }
}
