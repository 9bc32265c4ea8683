/**
 * Puts the Python package with the modules of dist/ into a folder, from which a wheel can be built:
 *
 *     node scripts/packages/python.mjs FOLDER && python -m hatchling build -d FOLDER   (in FOLDER)
 */
import { copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'

const root = join(import.meta.dirname, '..', '..')
const [folder] = process.argv.slice(2)
if (folder === undefined) {
  process.stderr.write('usage: node scripts/packages/python.mjs FOLDER\n')
  process.exit(2)
}

const source = join(root, 'packages', 'python')
const isSource = (path) => !/__pycache__|\/data(\/|$)|\/dist(\/|$)/.test(path.slice(source.length))
cpSync(source, folder, { recursive: true, filter: isSource })
const data = join(folder, 'src', 'sluice_core', 'data')
mkdirSync(data, { recursive: true })
for (const module of ['core.wasm', 'core-texts.wasm']) {
  copyFileSync(join(root, 'dist', module), join(data, module))
}
copyFileSync(join(root, 'assembly', 'core.abi.json'), join(data, 'core.abi.json'))
for (const encoding of ['o200k_base', 'cl100k_base']) {
  // Wheels are compressed anyway, and Python has no Brotli.
  const packed = readFileSync(join(root, 'dist', `${encoding}.tokens.br`))
  writeFileSync(join(data, `${encoding}.tokens`), brotliDecompressSync(packed))
}
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
writeFileSync(join(data, 'VERSION'), `${version}\n`)
