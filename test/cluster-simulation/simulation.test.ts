import { describe, expect, it } from 'vitest'
import { staleMutations } from '../virtual-time/mutate.ts'
import { runScript } from '../virtual-time/spawned.ts'
import { mutations } from './mutations.ts'

/** `npm run cluster-mutations` checks all. */
const mutation = 'a proxy answers before its worker has applied the configuration'

describe('the simulation of a cluster', () => {
  it('finds no failure in a few seeds', () => {
    const { status, text } = runScript('cluster-simulation', '--seeds', '1..4')
    expect([status, text]).toEqual([0, expect.stringContaining('4 seeds')])
  })

  it('runs the same schedule again for the same seed', () => {
    const { status, text } = runScript('cluster-simulation', '--seed', '7', '--twice')
    expect([status, text]).toEqual([0, expect.stringContaining('seed 7 passes')])
  })

  it('prints the seed, the trace and the command that replays a failure', () => {
    const { status, text } = runScript('cluster-simulation', '--seed', '2', '--mutation', mutation)
    expect(status, text).toBe(1)
    expect(text).toMatch(/seed 2 FAILED: p\d acknowledged position \d+/)
    expect(text).toContain('npm run cluster-simulation -- --seed 2 --trace')
  })

  it('refuses options that make no sense', () => {
    expect(runScript('cluster-simulation', '--seed', 'x').status).toBe(2)
    expect(runScript('cluster-simulation', '--minutes', '0').status).toBe(2)
  })

  it('has only mutations whose lines are in the code', () => {
    expect(staleMutations(mutations)).toEqual([])
  })
})
