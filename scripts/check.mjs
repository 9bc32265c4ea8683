// Everything that must hold before a change lands: format and lint, types, the AssemblyScript core,
// generated files in step, and the tests (which hold the import rules). Stops at the first failure.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const bin = (name) => join(root, 'node_modules', '.bin', name)

const steps = [
  ['format and lint', bin('biome'), ['check', '--error-on-warnings', '.']],
  ['types', bin('tsc'), ['-p', '.']],
  ['types of the console', bin('tsc'), ['-p', 'console']],
  ['build', process.execPath, ['scripts/build.mjs']],
  ['generated files', process.execPath, ['scripts/generate.mjs', '--check']],
  ['tests', process.execPath, ['scripts/test.mjs', ...process.argv.slice(2)]],
]

for (const [name, command, args] of steps) {
  console.log(`\n== ${name}`)
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) {
    console.error(`check: ${name} failed`)
    process.exit(status ?? 1)
  }
}
