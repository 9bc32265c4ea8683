/**
 * Makes the Rust crate with the WebAssembly modules of dist/, as the file that a registry serves:
 *
 *     node scripts/packages/rust.mjs FOLDER && tar -xzf FOLDER/sluice-core-*.crate
 */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { entriesOf, gzip, tarOf } from '../release/tar.mjs'
import {
  encodings,
  licenseFiles,
  modules,
  root,
  runScript,
  vocabularyFile,
  writeFiles,
} from './common.mjs'

const source = join(root, 'packages', 'rust')
const own = /(name = "sluice-core"\n(?:#.*\n)?version = )"0\.0\.0"/

/** @param {{ version: string }} release */
export async function packRust({ version }) {
  const folder = `sluice-core-${version}`
  const fileOf = (name, body) => ({ name: `${folder}/${name}`, type: 'file', mode: 0o644, body })
  const sources = entriesOf(source, folder).filter(
    ({ name }) => !/^(data|target|\.gitignore)(\/|$)/.test(name.slice(folder.length + 1)),
  )
  const versioned = ['Cargo.toml', 'Cargo.lock'].map((name) => {
    const text = readFileSync(join(source, name), 'utf8')
    return fileOf(name, Buffer.from(text.replace(own, `$1"${version}"`)))
  })
  const data = [
    ...modules.map((name) => join(root, 'dist', name)),
    ...encodings.map(vocabularyFile),
  ]
  const entries = [
    ...sources,
    ...versioned,
    ...licenseFiles().map(({ name, bytes }) => fileOf(name, bytes)),
    ...data.map((file) => fileOf(`data/${basename(file)}`, readFileSync(file))),
  ]
  return { name: `rust/${folder}.crate`, bytes: await gzip(await tarOf(entries)) }
}

await runScript(import.meta.filename, async (folder, version) => {
  const { name, bytes } = await packRust({ version })
  writeFiles(folder, [{ name: basename(name), bytes }])
})
