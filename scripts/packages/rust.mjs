/**
 * Puts the Rust crate with the WebAssembly modules of dist/ into a folder, from which it can be packed:
 *
 *     node scripts/packages/rust.mjs FOLDER && cargo package --no-verify --allow-dirty   (in FOLDER)
 */
import { copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { encodings, modules, root, runScript, vocabularyFile } from './common.mjs'

const source = join(root, 'packages', 'rust')
const isSource = (path) => !/^\/(data|target|\.gitignore)(\/|$)/.test(path.slice(source.length))

await runScript(import.meta.filename, (folder, version) => {
  cpSync(source, folder, { recursive: true, filter: isSource })
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
  const data = join(folder, 'data')
  mkdirSync(data, { recursive: true })
  const files = modules.map((name) => join(root, 'dist', name))
  for (const file of [...files, ...encodings.map(vocabularyFile)]) {
    copyFileSync(file, join(data, basename(file)))
  }
  for (const file of ['Cargo.toml', 'Cargo.lock']) {
    const text = readFileSync(join(folder, file), 'utf8')
    const own = /(name = "sluice-core"\n(?:#.*\n)?version = )"0\.0\.0"/
    writeFileSync(join(folder, file), text.replace(own, `$1"${version}"`))
  }
})
