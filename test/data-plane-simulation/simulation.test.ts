/** The data plane with clients and upstreams on virtual connections; `npm run data-plane-simulation` runs more seeds. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '..', '..')

/** The simulation replaces clocks and sockets, so it needs a process of its own. */
function run(script: string, ...args: string[]) {
  const flags = ['--disable-warning=ExperimentalWarning', '--disable-warning=DEP0111']
  const command = [...flags, join(root, 'scripts', `data-plane-${script}.mjs`), ...args]
  const { status, stdout, stderr } = spawnSync(process.execPath, command, {
    encoding: 'utf8',
    cwd: root,
  })
  return { status, output: `${stdout}${stderr}` }
}

it('holds in the first seeds', { timeout: 300_000 }, () => {
  const { status, output } = run('simulation', '--seeds', '1..500')
  expect([status, output]).toEqual([0, expect.stringContaining('500 seeds')])
})

it('gives the same schedule twice', { timeout: 120_000 }, () => {
  const { status, output } = run('simulation', '--seeds', '1..20', '--twice')
  expect([status, output]).toEqual([0, expect.stringContaining('20 seeds')])
})

it('finds every mutation with the recorded seeds', { timeout: 600_000 }, () => {
  const { status, output } = run('mutations')
  expect([status, output]).toEqual([0, expect.stringContaining('mutations are found')])
})
