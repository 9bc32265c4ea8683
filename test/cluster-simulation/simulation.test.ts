import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '..', '..')

/** Runs the command in a process of its own, since it replaces the clocks of its process. */
function simulate(...args: string[]): { readonly status: number | null; readonly text: string } {
  const command = ['--disable-warning=ExperimentalWarning', 'scripts/cluster-simulation.mjs']
  const { status, stdout, stderr } = spawnSync(process.execPath, [...command, ...args], {
    cwd: root,
    encoding: 'utf8',
  })
  return { status, text: stdout + stderr }
}

describe('the simulation of a cluster', () => {
  it('finds no failure in a few seeds', () => {
    const { status, text } = simulate('--seeds', '1..6')
    expect(text).toContain('6 seeds')
    expect(status, text).toBe(0)
  })

  it('runs the same schedule again for the same seed', () => {
    const { status, text } = simulate('--seeds', '7..8', '--twice')
    expect(status, text).toBe(0)
  })

  it('prints the seed, the trace and the command that replays a failure', () => {
    const { status, text } = simulate(
      '--seed',
      '1',
      '--mutation',
      'a proxy answers before its worker has applied the configuration',
    )
    expect(status, text).toBe(1)
    expect(text).toMatch(/seed 1 FAILED: p\d acknowledged position \d+/)
    expect(text).toContain('npm run cluster-simulation -- --seed 1 --trace')
  })

  it('refuses options that make no sense', () => {
    expect(simulate('--seed', 'x').status).toBe(2)
    expect(simulate('--minutes', '0').status).toBe(2)
  })
})
