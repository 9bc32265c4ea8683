/**
 * Puts the Rust crate with the WebAssembly modules of dist/ into a folder, from which it can be packed:
 *
 *     node scripts/packages/rust.mjs FOLDER && cargo package --no-verify --allow-dirty   (in FOLDER)
 */
import { copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..', '..')
const [folder] = process.argv.slice(2)
if (folder === undefined) {
  process.stderr.write('usage: node scripts/packages/rust.mjs FOLDER\n')
  process.exit(2)
}

const source = join(root, 'packages', 'rust')
const isSource = (path) => !/^\/(data|target|\.gitignore)(\/|$)/.test(path.slice(source.length))
cpSync(source, folder, { recursive: true, filter: isSource })
copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
const data = join(folder, 'data')
mkdirSync(data, { recursive: true })
for (const file of [
  'core.wasm',
  'core-texts.wasm',
  'o200k_base.tokens.br',
  'cl100k_base.tokens.br',
]) {
  copyFileSync(join(root, 'dist', file), join(data, file))
}
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
for (const file of ['Cargo.toml', 'Cargo.lock']) {
  const text = readFileSync(join(folder, file), 'utf8')
  const own = /(name = "sluice-core"\n(?:#.*\n)?version = )"0\.0\.0"/
  writeFileSync(join(folder, file), text.replace(own, `$1"${version}"`))
}
