// The test command of the README: builds what is stale, then runs vitest. Arguments go to vitest.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const run = (command, args) => {
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
run(process.execPath, ['scripts/build.mjs', '--if-needed'])
const report = process.env.SLUICE_TEST_REPORT
const reporters = report
  ? ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  : []
run(join(root, 'node_modules', '.bin', 'vitest'), ['run', ...reporters, ...process.argv.slice(2)])
