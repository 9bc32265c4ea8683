// node main.mjs core.wasm core.abi.json test/core: runs the case files, prints one JSON document.
// Vocabularies lie beside core.wasm.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { Core } from './core.mjs'
import { runSuites, suites } from './suites.mjs'

const [wasm, abi, folder] = process.argv.slice(2)
const parse = (path) => JSON.parse(readFileSync(path, 'utf8'))
const filesOf = (name) =>
  readdirSync(join(folder, name))
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => parse(join(folder, name, file)))

const files = Object.fromEntries(Object.keys(suites).map((name) => [name, filesOf(name)]))
const loadVocabulary = (encoding) =>
  brotliDecompressSync(readFileSync(join(dirname(wasm), `${encoding}.tokens.br`)))
const result = runSuites(new Core(readFileSync(wasm), parse(abi)), files, loadVocabulary)
console.log(JSON.stringify(result))
process.exitCode = result.failures.length === 0 ? 0 : 1
