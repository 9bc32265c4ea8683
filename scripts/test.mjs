// The test command of the README: builds what is stale, then runs vitest. Arguments go to vitest. Without a path or
// a project, the tests of artifacts and the searches are left out.
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
const args = process.argv.slice(2)
const isChosen = args.some((arg) => !arg.startsWith('-') || arg.startsWith('--project'))
const project = isChosen ? [] : ['--project=gateway']
run(join(root, 'node_modules', '.bin', 'vitest'), ['run', ...project, ...reporters, ...args])
