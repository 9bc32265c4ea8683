/**
 * Makes the wheel of the Python package with the modules of dist/:
 *
 *     node scripts/packages/python.mjs FOLDER && pip install FOLDER/sluice_core-VERSION-py3-none-any.whl
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
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

const source = join(root, 'packages', 'python')

/** A semantic version as Python writes it (PEP 440). */
function pythonVersion(version) {
  const [numbers, label] = version.split(/-(.*)/)
  if (label === undefined) return numbers
  const [, stage, count] = /^(alpha|beta|rc)\.?(\d+)$/.exec(label) ?? []
  if (stage === undefined) return `${numbers}.dev0+${label.replaceAll('-', '.')}`
  return `${numbers}${{ alpha: 'a', beta: 'b', rc: 'rc' }[stage]}${count}`
}

/** What is imported as `sluice_core`. */
function* moduleFiles() {
  const folder = join(source, 'src', 'sluice_core')
  for (const name of readdirSync(folder).filter((name) => /\.py$|^py\.typed$/.test(name))) {
    yield { name, bytes: readFileSync(join(folder, name)) }
  }
  // httpx2 has the same classes as httpx under another name, and neither takes objects of the other.
  const transport = readFileSync(join(folder, 'transport.py'), 'utf8')
  yield {
    name: 'transport_httpx2.py',
    bytes: Buffer.from(transport.replaceAll(/\bhttpx\b/g, 'httpx2')),
  }
  for (const module of modules) {
    yield { name: `data/${module}`, bytes: readFileSync(join(root, 'dist', module)) }
  }
  const abi = readFileSync(join(root, 'assembly', 'core.abi.json'))
  yield { name: 'data/core.abi.json', bytes: abi }
  for (const encoding of encodings) {
    // Wheels are compressed anyway, and Python has no Brotli.
    yield { name: `data/${encoding}.tokens`, bytes: readVocabulary(encoding) }
  }
}

function metadataOf(version) {
  const fields = readFileSync(join(source, 'METADATA'), 'utf8')
  const page = readFileSync(join(source, 'README.md'), 'utf8')
  return `${fields.replace(/^Name: .*$/m, `$&\nVersion: ${version}`)}\n${page}`
}

const wheelFile =
  'Wheel-Version: 1.0\nGenerator: sluice\nRoot-Is-Purelib: true\nTag: py3-none-any\n'

/**
 * Packs the wheel, in the folder `python`.
 * @param {{ version: string }} release
 * @returns {{ name: string, bytes: Buffer }}
 */
export function packPython(release) {
  const version = pythonVersion(release.version)
  const about = `sluice_core-${version}.dist-info`
  const files = [
    ...[...moduleFiles()].map(({ name, bytes }) => ({ name: `sluice_core/${name}`, bytes })),
    { name: `${about}/METADATA`, bytes: Buffer.from(metadataOf(version)) },
    { name: `${about}/WHEEL`, bytes: Buffer.from(wheelFile) },
    ...licenseFiles().map(({ name, bytes }) => ({ name: `${about}/licenses/${name}`, bytes })),
  ]
  const rows = files.map(({ name, bytes }) => {
    const digest = createHash('sha256').update(bytes).digest('base64url')
    return `${name},sha256=${digest},${bytes.length}\n`
  })
  const record = `${about}/RECORD`
  const list = { name: record, bytes: Buffer.from(`${rows.join('')}${record},,\n`) }
  return { name: `python/sluice_core-${version}-py3-none-any.whl`, bytes: zipOf([...files, list]) }
}

await runScript(import.meta.filename, (folder, version) => {
  const { name, bytes } = packPython({ version })
  writeFiles(folder, [{ name: basename(name), bytes }])
})
