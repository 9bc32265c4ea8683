// `npm run fuzz -- [TARGET…] [--seconds N] [--seed N] [--hang N]`: feeds every target (all of
// test/fuzz/targets if none is named) generated inputs for N seconds each. `--input FILE` checks one
// input. Exit code: 0 every property held, 1 one did not, 2 wrong usage.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { loadTarget, runTarget, targetNames } from '../test/fuzz/support/run.ts'

const usage = `npm run fuzz -- [TARGET…] [--seconds N] [--seed N] [--hang N]
npm run fuzz -- TARGET --input FILE

Targets:`

async function listTargets() {
  for (const name of targetNames) {
    console.log(`  ${name.padEnd(24)} ${(await loadTarget(name)).about}`)
  }
}

function readOptions() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seconds: { type: 'string', default: '10' },
      seed: { type: 'string', default: `${Date.now() % 2 ** 31}` },
      hang: { type: 'string', default: '20' },
      input: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const unknown = positionals.filter((name) => !targetNames.includes(name))
  if (unknown.length > 0) throw new Error(`unknown target ${unknown.join(', ')}`)
  const [seconds, seed, hangSeconds] = [values.seconds, values.seed, values.hang].map(Number)
  if (![seconds, seed, hangSeconds].every((number) => Number.isInteger(number) && number >= 0)) {
    throw new Error('--seconds, --seed and --hang expect whole numbers')
  }
  if (values.input !== undefined && positionals.length !== 1) {
    throw new Error('--input needs exactly one target')
  }
  return { names: positionals, seconds, seed, hangSeconds, input: values.input, help: values.help }
}

async function checkOne(name, file) {
  const run = await (await loadTarget(name)).start()
  try {
    await run.check(readFileSync(file))
    console.log(`ok     ${name} ${file}`)
    return 0
  } catch (error) {
    console.log(`FAILED ${name} ${file}\n${error.stack ?? error}`)
    return 1
  } finally {
    await run.close?.()
  }
}

async function main({ names, input, help, ...options }) {
  if (help) {
    console.log(usage)
    await listTargets()
    return 0
  }
  if (input !== undefined) return checkOne(names[0], input)
  console.log(`seed ${options.seed}, ${options.seconds} seconds for each target`)
  let hasFailed = false
  for (const name of names.length === 0 ? targetNames : names) {
    const { runs, findings } = await runTarget(name, options, ({ error, file }) => {
      console.log(`FAILED ${name}: npm run fuzz -- ${name} --input ${file}\n${error}`)
    })
    hasFailed ||= findings.length > 0
    console.log(`${findings.length > 0 ? 'FAILED' : 'ok    '} ${name}: ${runs} inputs`)
  }
  return hasFailed ? 1 : 0
}

let options
try {
  options = readOptions()
} catch (error) {
  console.error(`fuzz: ${error.message}\n\n${usage}`)
  await listTargets()
  process.exit(2)
}
const built = spawnSync(process.execPath, ['scripts/build.mjs', '--if-needed'], {
  cwd: join(import.meta.dirname, '..'),
  stdio: 'inherit',
})
if (built.status !== 0) process.exit(70)
process.exit(await main(options))
