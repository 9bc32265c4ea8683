/** The data plane with clients and upstreams on virtual connections; `npm run data-plane-simulation` runs more seeds. */
import { expect, it } from 'vitest'
import { staleMutations } from '../virtual-time/mutate.ts'
import { runScript } from '../virtual-time/spawned.ts'
import { mutations } from './mutations.ts'

it('holds in the first 480 seeds', { timeout: 300_000 }, () => {
  const { status, text } = runScript('data-plane-simulation', '--seeds', '1..480')
  expect([status, text]).toEqual([0, expect.stringContaining('480 seeds')])
})

it('holds in 20 more seeds, and gives the same schedules twice', { timeout: 120_000 }, () => {
  const { status, text } = runScript('data-plane-simulation', '--seeds', '481..500', '--twice')
  expect([status, text]).toEqual([0, expect.stringContaining('20 seeds')])
})

/** Each has found a defect of the gateway that no earlier seed finds. */
const laterSeeds = '308042,313768'

it('holds in later seeds that have found defects', { timeout: 120_000 }, () => {
  const { status, text } = runScript('data-plane-simulation', '--seeds', laterSeeds)
  expect([status, text]).toEqual([0, expect.stringContaining('2 seeds')])
})

it('has only mutations whose lines are in the code', () => {
  expect(staleMutations(mutations)).toEqual([])
})

/** One for each invariant, and one more for MCP. `npm run data-plane-mutations` checks all. */
const sample = [
  // isolation
  'another principal continues a session of MCP',
  // protection
  'authorization lets everything pass',
  'a call of a tool reaches its server against the rules',
  // framing
  'data are sent beyond the window of a stream',
  // progress
  'calls of processors are reset when they are over',
  // accounts
  'compactions are not counted',
  // truth
  'subscriptions are lost with the session of a server',
  // memory
  'a read buffer is not given back',
  'clients are read on while upstreams are slow',
]

it('finds a mutation of each invariant', { timeout: 300_000 }, () => {
  const options = sample.flatMap((name) => ['--mutation', name])
  const { status, text } = runScript('data-plane-mutations', ...options)
  expect([status, text]).toEqual([0, expect.stringContaining('9 of 9 mutations are found')])
})
