/** Runs commands of simulations in processes of their own, since they replace clocks and sockets of their process. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..', '..')

export interface Result {
  readonly status: number | null
  /** Standard output and standard error. */
  readonly text: string
}

/** Runs an npm script, as `ledger-simulation`, with these arguments. */
export function runScript(name: string, ...args: string[]): Result {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const [, , ...command] = String(scripts[name]).split(' ')
  const { status, stdout, stderr } = spawnSync(process.execPath, [...command, ...args], {
    cwd: root,
    encoding: 'utf8',
  })
  return { status, text: stdout + stderr }
}
