// `npm run test:properties -- [--times N] [PATHS]`: runs the tests of properties with new random values, N times
// (once if not set). A failure prints the seed and the path with which fast-check repeats it.
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const root = join(import.meta.dirname, '..')
const { values, positionals } = parseArgs({
  options: { times: { type: 'string', default: '1' } },
  allowPositionals: true,
})
const times = Number(values.times)
if (!Number.isInteger(times) || times < 1) {
  console.error(`test:properties: --times ${values.times}: expected a whole number of at least 1`)
  process.exit(2)
}
const usesProperties = (file) =>
  /from '.*(fast-check|random-log|framing-cases)(\.ts)?'/.test(
    readFileSync(join(root, file), 'utf8'),
  )
const tests = globSync('{src,events,test,console}/**/*.test.ts', { cwd: root }).filter(
  usesProperties,
)
const env = { ...process.env, SLUICE_TEST_SEED: 'random' }
const args = ['scripts/test.mjs', ...(positionals.length > 0 ? positionals : tests)]
for (let run = 0; run < times; run++) {
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit', env })
  if (status !== 0) process.exit(status ?? 1)
}
