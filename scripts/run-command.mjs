// What the commands that run test systems have in common: they build what is stale, read the options, and
// end the process with the exit code of the run; 2 if an option is wrong.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

export const print = (text) => process.stdout.write(`${text}\n`)

export function buildIfNeeded() {
  const built = spawnSync(process.execPath, ['scripts/build.mjs', '--if-needed'], {
    cwd: root,
    stdio: 'inherit',
  })
  if (built.status !== 0) process.exit(built.status ?? 1)
}

export async function runCommand({ parseOptions, run, usage }) {
  let options
  try {
    options = parseOptions(process.argv.slice(2))
  } catch (error) {
    print(`${error.message}\n\n${usage}`)
    process.exit(2)
  }
  if (options === 'help') print(usage)
  else process.exit(await run(options, print))
}
