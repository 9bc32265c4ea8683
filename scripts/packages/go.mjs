/**
 * Makes the Go module with the WebAssembly modules of dist/, as the files of a module proxy:
 *
 *     node scripts/packages/go.mjs FOLDER && GOPROXY=file://FOLDER go get sluice.dev/sluice
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import {
  encodings,
  licenseFiles,
  modules,
  readVocabulary,
  root,
  runScript,
  writeFiles,
} from './common.mjs'
import { zipOf } from './zip.mjs'

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
  yield* licenseFiles()
  for (const module of modules) {
    yield { name: `data/${module}`, bytes: readFileSync(join(root, 'dist', module)) }
  }
  for (const encoding of encodings) {
    const bytes = gzipSync(readVocabulary(encoding), { level: 9 })
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

await runScript(import.meta.filename, (folder, version) => {
  const files = packGo({ version, created: '1980-01-01T00:00:00Z' })
  writeFiles(
    folder,
    files.map(({ name, bytes }) => ({ name: name.replace('go/', ''), bytes })),
  )
})
