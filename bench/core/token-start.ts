/** CPU time of loading the vocabulary o200k_base in a new process. */
import { spawnSync } from 'node:child_process'

const script = `
import { loadEncoding } from '${new URL('../../src/engines/core/tokens.ts', import.meta.url)}'
if (process.argv[1] === 'second') loadEncoding('cl100k_base')
const begun = process.cpuUsage()
loadEncoding('o200k_base')
const { user, system } = process.cpuUsage(begun)
console.log((user + system) / 1000)`

/** Milliseconds. The first vocabulary of a process also compiles core.wasm. */
export function measureStart(order: 'first' | 'second'): number {
  const args = ['--no-warnings', '--input-type=module', '-e', script, order]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return Number(stdout)
}
