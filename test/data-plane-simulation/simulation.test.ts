/** The data plane with clients and upstreams on virtual connections; `npm run data-plane-simulation` runs more seeds. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { mutations } from './mutations.ts'

const root = join(import.meta.dirname, '..', '..')

/** The simulation replaces clocks and sockets, so it needs a process of its own. */
function run(...args: string[]) {
  const flags = ['--disable-warning=ExperimentalWarning', '--disable-warning=DEP0111']
  const script = join(root, 'scripts', 'data-plane-simulation.mjs')
  const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, script, ...args], {
    encoding: 'utf8',
    cwd: root,
  })
  return { status, output: `${stdout}${stderr}` }
}

it('holds in the first seeds', { timeout: 300_000 }, () => {
  const { status, output } = run('--seeds', '1..500')
  expect([status, output]).toEqual([0, expect.stringContaining('500 seeds')])
})

it('gives the same schedule twice', { timeout: 120_000 }, () => {
  const { status, output } = run('--seeds', '1..20', '--twice')
  expect([status, output]).toEqual([0, expect.stringContaining('20 seeds')])
})

it.each(Object.keys(mutations))('finds that %s', { timeout: 120_000 }, (name) => {
  const { status, output } = run('--seeds', '1..300', '--mutation', name)
  expect([status, output]).toEqual([1, expect.stringContaining('FAILED')])
})
