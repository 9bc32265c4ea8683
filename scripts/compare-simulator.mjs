// `npm run compare-simulator [-- --seed 1] [--configurations 200] [--requests 110]`: random configurations
// and traffic through a real gateway, compared with what the simulator decides about the same requests.
// Exit code: 0 they agree, 1 they differ, 2 wrong usage.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { compareRandomly } from '../test/simulate/property/run.ts'

const usage = 'npm run compare-simulator -- [--seed N] [--configurations N] [--requests N]'

function parse() {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: '1' },
      configurations: { type: 'string', default: '200' },
      requests: { type: 'string', default: '110' },
    },
  })
  const numbers = [values.seed, values.configurations, values.requests].map(Number)
  if (numbers.every((number) => Number.isInteger(number) && number > 0)) return numbers
  throw new Error('all options take whole numbers from 1')
}

let options
try {
  options = parse()
} catch (error) {
  console.error(`${error.message}\n\n${usage}`)
  process.exit(2)
}
const built = spawnSync(process.execPath, ['scripts/build.mjs', '--if-needed'], {
  cwd: join(import.meta.dirname, '..'),
  stdio: 'inherit',
})
if (built.status !== 0) process.exit(built.status ?? 1)
const { differences, ...counts } = await compareRandomly(...options)
for (const difference of differences) console.log(difference)
console.log({ seed: options[0], ...counts, differences: differences.length })
process.exit(differences.length === 0 ? 0 : 1)
