// `npm run faults [-- NAME…] [--changes 1000] [--seed 1] [--minutes 60] [--json FILE]`: each fault in
// the midst of many changes, against a real API server, etcd and nats-server (test/assets/setup).
// `npm run faults -- money [--requests 100000] [--seed 1] [--minutes 60] [--json FILE]`: kills in the midst of
// paid requests; every budget must agree with the bill.
// Exit code: 0 every run came to the undisturbed state, 1 one did not, 2 wrong usage.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { faultNames, runFaults } from '../test/faults/main.ts'
import { lineOf, runMoney } from '../test/faults/money/main.ts'

const money = {
  name: 'money',
  about:
    'kills in the midst of --requests paid requests; budgets must agree with the bill; only alone',
}
const usage = `npm run faults -- [NAME…] [--changes N] [--requests N] [--seed N] [--minutes N] [--json FILE]\n\n${[
  ...faultNames,
  money,
]
  .map(({ name, about }) => `  ${name.padEnd(20)} ${about}`)
  .join('\n')}`

function parse() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      changes: { type: 'string', default: '1000' },
      requests: { type: 'string', default: '100000' },
      seed: { type: 'string', default: '1' },
      minutes: { type: 'string', default: '60' },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const isMoney = positionals.length === 1 && positionals[0] === money.name
  const known = isMoney ? [money] : faultNames
  const unknown = positionals.filter((name) => !known.some((fault) => fault.name === name))
  const numbers = [values.changes, values.seed, values.minutes, values.requests].map(Number)
  if (unknown.length > 0) throw new Error(`there is no fault ${unknown.join(', ')}`)
  if (numbers.some((number) => !Number.isInteger(number) || number < 1)) {
    throw new Error('--changes, --requests, --seed and --minutes take whole numbers from 1')
  }
  const [changes, seed, minutes, requests] = numbers
  const { json, help } = values
  return { names: positionals, isMoney, changes, requests, seed, minutes, json, help }
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
const { names, isMoney, seed, changes, requests, minutes, json } = options
const what = isMoney ? `${requests} requests` : `${changes} changes`
console.log(`seed ${seed}, ${what}, load ${loadavg()[0].toFixed(1)}`)
const tell = (text) => console.log(text)
const withinMs = minutes * 60_000
const rows = isMoney
  ? [await runMoney({ seed, requests, withinMs, tell })]
  : await runFaults({ names, seed, changes, withinMs, tell })
if (isMoney) tell(lineOf(rows[0]))
console.log(`load ${loadavg()[0].toFixed(1)}`)
if (json !== undefined) writeFileSync(json, `${JSON.stringify(rows, undefined, 2)}\n`)
process.exit(rows.every(({ ok }) => ok) ? 0 : 1)
