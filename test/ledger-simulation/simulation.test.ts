import { describe, expect, it } from 'vitest'
import { staleMutations } from '../virtual-time/mutate.ts'
import { runScript } from '../virtual-time/spawned.ts'
import { mutations } from './mutations.ts'

/** `npm run ledger-mutations` checks all. */
const sample = [
  'what is given back stays in use',
  'grants are appended wherever the log ends',
  'allowances are never recalled',
  'a soft limit is warned about whenever more is spent',
]

describe('the simulation of the ledger of budgets', () => {
  it('finds no failure in a few seeds', () => {
    const { status, text } = runScript('ledger-simulation', '--seeds', '1..5')
    expect([status, text]).toEqual([0, expect.stringContaining('5 seeds')])
  })

  it('runs the same schedule again for the same seed', () => {
    const { status, text } = runScript('ledger-simulation', '--seeds', '10,11', '--twice')
    expect([status, text]).toEqual([0, expect.stringContaining('2 seeds')])
  })

  it('finds some of its mutations', () => {
    const options = sample.flatMap((name) => ['--mutation', name])
    const { status, text } = runScript('ledger-mutations', ...options)
    expect([status, text]).toEqual([0, expect.stringContaining('4 of 4 mutations are found')])
  })

  it('has only mutations whose lines are in the code', () => {
    expect(staleMutations(mutations)).toEqual([])
  })
})
