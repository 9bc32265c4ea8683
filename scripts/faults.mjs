// `npm run faults [-- NAME…] [--changes 1000] [--seed 1] [--minutes 60] [--json FILE]`: each fault in
// the midst of many changes, against a real API server, etcd and nats-server (test/assets/setup).
// Exit code: 0 every run came to the undisturbed state, 1 one did not, 2 wrong usage.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { faultNames, runFaults } from '../test/faults/main.ts'

const usage = `npm run faults -- [NAME…] [--changes N] [--seed N] [--minutes N] [--json FILE]\n\n${faultNames
  .map(({ name, about }) => `  ${name.padEnd(20)} ${about}`)
  .join('\n')}`

function parse() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      changes: { type: 'string', default: '1000' },
      seed: { type: 'string', default: '1' },
      minutes: { type: 'string', default: '60' },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const unknown = positionals.filter((name) => !faultNames.some((fault) => fault.name === name))
  const numbers = [values.changes, values.seed, values.minutes].map(Number)
  if (unknown.length > 0) throw new Error(`there is no fault ${unknown.join(', ')}`)
  if (numbers.some((number) => !Number.isInteger(number) || number < 1)) {
    throw new Error('--changes, --seed and --minutes take whole numbers from 1')
  }
  const [changes, seed, minutes] = numbers
  return { names: positionals, changes, seed, minutes, json: values.json, help: values.help }
}

let options
try {
  options = parse()
} catch (error) {
  console.error(`${error.message}\n\n${usage}`)
  process.exit(2)
}
if (options.help) {
  console.log(usage)
  process.exit(0)
}
const root = join(import.meta.dirname, '..')
const built = spawnSync(process.execPath, ['scripts/build.mjs', '--if-needed'], {
  cwd: root,
  stdio: 'inherit',
})
if (built.status !== 0) process.exit(built.status ?? 1)
const { names, seed, changes, minutes, json } = options
console.log(`seed ${seed}, ${changes} changes, load ${loadavg()[0].toFixed(1)}`)
const rows = await runFaults({
  names,
  seed,
  changes,
  withinMs: minutes * 60_000,
  tell: (text) => console.log(text),
})
console.log(`load ${loadavg()[0].toFixed(1)}`)
if (json !== undefined) writeFileSync(json, `${JSON.stringify(rows, undefined, 2)}\n`)
process.exit(rows.every(({ ok }) => ok) ? 0 : 1)
