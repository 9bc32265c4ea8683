// Writes every generated file of the repository. `--check` writes nothing and exits 1 when a file
// on disk differs from what would be written. A generator is a module with one function,
// `generate()`, that gives a map of repository paths to their text.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const root = join(import.meta.dirname, '..')
const generators = [
  './generators/agentgateway-fields.mjs',
  './generators/api.mjs',
  './generators/chart.mjs',
  './generators/core-abi.mjs',
  './generators/errors-page.mjs',
  './generators/events-page.mjs',
  './generators/guard-scopes.mjs',
  './generators/metrics-page.mjs',
  './generators/phases.mjs',
  './generators/protobuf.mjs',
  './generators/settings-page.mjs',
  './generators/text-fields.mjs',
  './generators/translations.mjs',
  './generators/variables.mjs',
  './generators/xds-metrics-page.mjs',
]

const stale = []
for (const path of generators) {
  const { generate } = await import(path)
  for (const [file, text] of Object.entries(await generate())) {
    const target = join(root, file)
    if (existsSync(target) && readFileSync(target, 'utf8') === text) continue
    stale.push(file)
    if (process.argv.includes('--check')) continue
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, text)
  }
}
if (process.argv.includes('--check') && stale.length > 0) {
  console.error(`not in step with their source, run npm run generate: ${stale.join(', ')}`)
  process.exit(1)
}
