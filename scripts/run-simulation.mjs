// What the commands of simulations have in common: they build what is stale, put in the defect of `--mutation`,
// and run the seeds. Exit code: 0 every seed passes, 1 one fails, 2 wrong usage.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

/** Runs the simulation in this folder of `test/`, and ends the process. */
export async function runSimulation(folder) {
  const built = spawnSync(process.execPath, ['scripts/build.mjs', '--if-needed'], {
    cwd: root,
    stdio: 'inherit',
  })
  if (built.status !== 0) process.exit(built.status ?? 1)
  const mutation = process.argv.indexOf('--mutation')
  if (mutation > 0) {
    const { mutate } = await import('../test/virtual-time/mutate.ts')
    const { mutations } = await import(`../test/${folder}/mutations.ts`)
    mutate(mutations, process.argv[mutation + 1])
  }
  const { parseOptions, runSeeds, usage } = await import(`../test/${folder}/main.ts`)
  const print = (text) => process.stdout.write(`${text}\n`)
  let options
  try {
    options = parseOptions(process.argv.slice(2))
  } catch (error) {
    print(`${error.message}\n\n${usage}`)
    process.exit(2)
  }
  if (options === 'help') print(usage)
  else process.exit(await runSeeds(options, print))
}
