// `npm run bench -- NAME… [--json FILE] [--quick]`: runs bench/NAME.ts, or every bench of the folder
// bench/NAME, each in a process of its own; prints the rows, and writes them as JSON where asked.
// Exit code: 0 every bound was kept (or nothing could be said), 1 one was missed, 2 wrong usage, 70
// a bench failed. Without a name: lists what there is.
import { fork, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { describe, judge, machine, tableOf } from '../bench/harness.ts'

const root = join(import.meta.dirname, '..')
const folder = join(root, 'bench')

const isBench = (file) => /^export default /m.test(readFileSync(file, 'utf8'))

/** Files of a folder, deep, that are benches; parts of one have no default export. */
function benchesOf(path) {
  if (!statSync(path).isDirectory()) return path.endsWith('.ts') && isBench(path) ? [path] : []
  return readdirSync(path)
    .sort()
    .flatMap((entry) => benchesOf(join(path, entry)))
}

const nameOf = (file) => relative(folder, file).replace(/\.ts$/, '')

function filesOf(name) {
  const path = join(folder, name)
  if (existsSync(`${path}.ts`)) return benchesOf(`${path}.ts`)
  return existsSync(path) ? benchesOf(path) : []
}

/** In the child: measures one module and sends its rows to the parent. */
async function measure(file, quick) {
  const { default: bench } = await import(file)
  const note = (text) => console.error(`  ${text}`)
  const rows = await bench({ quick, rounds: quick ? 3 : 7, note })
  process.send({ results: rows.map(judge) }, () => process.disconnect())
}

/** In the parent: the results of one module; undefined when it failed. */
function measureApart(file, quick) {
  const execArgv = ['--expose-gc', '--disable-warning=ExperimentalWarning']
  const child = fork(import.meta.filename, ['--measure', file, ...(quick ? ['--quick'] : [])], {
    execArgv,
    cwd: root,
  })
  return new Promise((resolve) => {
    let results
    child.on('message', (message) => {
      results = message.results
    })
    child.on('exit', (code) => resolve(code === 0 ? results : undefined))
  })
}

async function main(names, { json, quick }) {
  if (names.length === 0) {
    console.log(
      'npm run bench -- NAME… [--json FILE] [--quick]\n\nNAME is one of these, or a folder:',
    )
    for (const file of benchesOf(folder)) console.log(`  ${nameOf(file)}`)
    return 0
  }
  const unknown = names.filter((name) => filesOf(name).length === 0)
  if (unknown.length > 0) {
    console.error(`bench: there is no ${unknown.join(', ')}; without a name, all are listed`)
    return 2
  }
  const build = spawnSync(process.execPath, ['scripts/build.mjs', '--if-needed'], {
    cwd: root,
    stdio: 'inherit',
  })
  if (build.status !== 0) return 70
  const all = []
  let failed = false
  for (const file of new Set(names.flatMap(filesOf))) {
    console.error(`bench ${nameOf(file)}`)
    const results = await measureApart(file, quick)
    if (results === undefined) {
      failed = true
      console.error(`bench ${nameOf(file)} failed`)
      continue
    }
    for (const result of results) console.log(describe(result))
    all.push(...results)
  }
  console.log(`\n${tableOf(all)}`)
  const document = { machine: machine(), quick, results: all }
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(document, undefined, 2)}\n`)
  if (failed) return 70
  return all.some(({ ok }) => ok === false) ? 1 : 0
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        json: { type: 'string' },
        quick: { type: 'boolean', default: false },
        measure: { type: 'string' },
      },
    })
  } catch (error) {
    console.error(`bench: ${error.message}`)
    process.exit(2)
  }
}

const { values, positionals } = readArguments()
if (values.measure !== undefined) await measure(values.measure, values.quick)
else process.exitCode = await main(positionals, values)
