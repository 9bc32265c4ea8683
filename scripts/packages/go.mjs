/**
 * Makes the Go module with the WebAssembly modules of dist/, as the files of a module proxy:
 *
 *     node scripts/packages/go.mjs FOLDER && GOPROXY=file://FOLDER go get sluice.dev/sluice
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { brotliDecompressSync, gzipSync } from 'node:zlib'
import { zipOf } from './zip.mjs'

const root = join(import.meta.dirname, '..', '..')
const source = join(root, 'packages', 'go')
const modulePath = 'sluice.dev/sluice'

/** The files of the module. Vocabularies are in gzip, because Go has no Brotli. */
function* moduleFiles() {
  for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const name = relative(source, path).replaceAll('\\', '/')
    if (!entry.isFile() || name.startsWith('data/') || name.startsWith('.')) continue
    yield { name, bytes: readFileSync(path) }
  }
  yield { name: 'LICENSE', bytes: readFileSync(join(root, 'LICENSE')) }
  for (const module of ['core.wasm', 'core-texts.wasm']) {
    yield { name: `data/${module}`, bytes: readFileSync(join(root, 'dist', module)) }
  }
  for (const encoding of ['o200k_base', 'cl100k_base']) {
    const packed = readFileSync(join(root, 'dist', `${encoding}.tokens.br`))
    const bytes = gzipSync(brotliDecompressSync(packed), { level: 9 })
    yield { name: `data/${encoding}.tokens.gz`, bytes }
  }
}

/**
 * The files that a module proxy serves, in the folder `go`.
 * @param {{ version: string, created: string }} release
 */
export function packGo({ version, created }) {
  const tag = `v${version}`
  const files = [...moduleFiles()].map(({ name, bytes }) => ({
    name: `${modulePath}@${tag}/${name}`,
    bytes,
  }))
  const folder = `go/${modulePath}/@v`
  return [
    { name: `${folder}/list`, bytes: Buffer.from(`${tag}\n`) },
    {
      name: `${folder}/${tag}.info`,
      bytes: Buffer.from(`${JSON.stringify({ Version: tag, Time: created })}\n`),
    },
    { name: `${folder}/${tag}.mod`, bytes: readFileSync(join(source, 'go.mod')) },
    { name: `${folder}/${tag}.zip`, bytes: zipOf(files) },
  ]
}

if (process.argv[1] === import.meta.filename) {
  const [target] = process.argv.slice(2)
  if (target === undefined) {
    process.stderr.write('usage: node scripts/packages/go.mjs FOLDER\n')
    process.exit(2)
  }
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  for (const { name, bytes } of packGo({ version, created: '1980-01-01T00:00:00Z' })) {
    const path = join(target, name.replace('go/', ''))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, bytes)
  }
}
