/** A fold that has a state moves to any other state of its log as if it were new. */

import { expect, it } from 'vitest'
import { regexProblem } from '../../src/control/plane/api-binding.ts'
import { objectKey } from '../../src/ground/model/names.ts'
import { createFold, type Fold, type FoldSnapshot } from '../../src/past/replay/index.ts'
import fc from '../support/fast-check.ts'
import { randomLog } from '../support/random-log.ts'

const derivation = { checkRegex: regexProblem }

/** Everything that a fold knows, in an order that does not depend on the way to the state. */
function stateOf(fold: Fold) {
  const { graph } = fold
  const objects = [...graph.objects()].map((state) => {
    const traces = graph.derivationsOf(state.ref)
    const derived = traces.map(({ reads, ...trace }) => ({ ...trace, reads: reads.toSorted() }))
    return [objectKey(state.ref), { state, derived }] as const
  })
  return {
    digests: fold.digests(),
    statuses: fold.statuses(),
    resources: new Map(fold.resources().map((one) => [one.resource.key, { ...one }])),
    objects: new Map(objects),
    inputs: new Map(graph.inputs),
    deployments: new Map(fold.deployments()),
    proxies: fold.proxies(),
    timers: fold.timers(),
    snapshot: fold.snapshot(),
  }
}

/** As a log stores it. */
const stored = (fold: Fold) => JSON.parse(JSON.stringify(fold.snapshot())) as FoldSnapshot

it('restores states in any order on one fold, and goes on from each, as new folds do', () => {
  let moves = 0
  const wanted = fc.array(fc.nat(), { minLength: 2, maxLength: 6 })
  fc.assert(
    fc.property(randomLog, wanted, fc.nat({ max: 3 }), (events, order, further) => {
      const whole = createFold(derivation)
      const states = [stored(whole)]
      for (const event of events) {
        whole.apply(event)
        states.push(stored(whole))
      }
      const moving = createFold(derivation)
      for (const at of order.map((number) => number % states.length)) {
        const state = states[at] as FoldSnapshot
        const fresh = createFold(derivation, state)
        moving.restore(state)
        expect(stateOf(moving)).toEqual(stateOf(fresh))
        for (const event of events.slice(at, at + further)) {
          fresh.apply(event)
          moving.apply(event)
        }
        expect(stateOf(moving)).toEqual(stateOf(fresh))
        moves++
      }
    }),
  )
  expect(moves).toBeGreaterThan(200)
})

it('derives again only what differs', () => {
  const events = fc
    .sample(randomLog, { numRuns: 30, seed: 3 })
    .sort((a, b) => b.length - a.length)[0]
  const fold = createFold(derivation)
  for (const event of events ?? []) fold.apply(event)
  fold.dropChange()
  fold.restore(stored(fold))
  expect(fold.resources()).not.toEqual([])
  expect(fold.takeChange()).toMatchObject({ delta: { upserted: [], removed: [] }, statuses: [] })
})
