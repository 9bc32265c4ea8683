import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { mutations } from './mutations.ts'

const root = join(import.meta.dirname, '..', '..')

/** Runs the command in a process of its own, since it replaces the clocks of its process. */
function simulate(...args: string[]): { readonly status: number | null; readonly text: string } {
  const command = ['--disable-warning=ExperimentalWarning', 'scripts/ledger-simulation.mjs']
  const { status, stdout, stderr } = spawnSync(process.execPath, [...command, ...args], {
    cwd: root,
    encoding: 'utf8',
  })
  return { status, text: stdout + stderr }
}

describe('the simulation of the ledger of budgets', () => {
  it('finds no failure in a few seeds', () => {
    const { status, text } = simulate('--seeds', '1..9')
    expect(status, text).toBe(0)
  })

  it('runs the same schedule again for the same seed', () => {
    const { status, text } = simulate('--seeds', '10..11', '--twice')
    expect(status, text).toBe(0)
  })

  it.each(Object.entries(mutations))('finds the defect: %s', (mutation, { firstSeed }) => {
    const seeds = `${firstSeed}..${firstSeed + 40}`
    const { status, text } = simulate('--seeds', seeds, '--mutation', mutation)
    expect(status, text).toBe(1)
  })
})
