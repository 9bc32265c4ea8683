/** The history that is read from recorded decisions is that of a fold of every event. */

import { describe, expect, it } from 'vitest'
import type { SluiceEvent } from '../../events/index.ts'
import { type EventLog, MemoryLog, type Position } from '../../src/control/log/index.ts'
import { regexProblem } from '../../src/control/plane/api-binding.ts'
import type { ObjectRef } from '../../src/ground/model/names.ts'
import { foldVersion } from '../../src/past/replay/index.ts'
import { readHistory } from '../../src/tools/cli/recording/condition-history.ts'
import { extentOf, extentOfLog } from '../../src/tools/cli/recording/log-extent.ts'
import fc from '../support/fast-check.ts'
import { randomLog } from '../support/random-log.ts'
import { record } from '../support/recorded-run.ts'

const derivation = { checkRegex: regexProblem }

const common = { problems: [], secrets: [], gaps: [], derivation }

async function histories(log: EventLog, to: Position, ref: ObjectRef) {
  const events = await Array.fromAsync(log.read({ to }))
  const extent = await extentOfLog(log, to, 'oldest')
  const source = { log, to }
  const [recorded, folded] = await Promise.all([
    readHistory({ ...common, extent, events, source }, ref),
    readHistory({ ...common, extent: extentOf(), events }, ref),
  ])
  return { recorded: recorded.history, folded: folded.history }
}

const someSizes = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 5 })
const share = fc.double({ min: 0, max: 1, noNaN: true })

describe('the history of conditions that decisions record', () => {
  it('is the same as that of a fold of every event', async () => {
    let changes = 0
    await fc.assert(
      fc.asyncProperty(randomLog, someSizes, share, async (events, sizes, end) => {
        const distinct = events.map(({ event }, n) => ({ ...event, id: `${n}` }) as SluiceEvent)
        const log = await record(distinct, sizes)
        const last = await log.lastPosition()
        for (const to of [last, Math.ceil(end * last) as Position]) {
          for (const ref of objectsOf(events.map(({ event }) => event))) {
            const { recorded, folded } = await histories(log, to, ref)
            expect(recorded).toEqual(folded)
            changes += folded.steps.length
          }
        }
      }),
      { numRuns: 40 },
    )
    expect(changes).toBeGreaterThan(100)
  })

  it('is folded if the decisions are of another fold version', async () => {
    const [events = []] = fc.sample(randomLog, { numRuns: 1, seed: 3 })
    const distinct = events.map(({ event }, n) => ({ ...event, id: `${n}` }) as SluiceEvent)
    const written = await record(distinct, [3])
    const log = new MemoryLog()
    for await (const { event } of written.read()) {
      if (event.type === 'dev.sluice.conditions.decided.v1') continue
      const isPublished = event.type === 'dev.sluice.desired.published.v1'
      const data = isPublished ? { ...event.data, foldVersion: `not ${foldVersion}` } : event.data
      await log.append([{ ...event, data } as SluiceEvent])
    }
    for (const ref of objectsOf(distinct)) {
      const { recorded, folded } = await histories(log, await log.lastPosition(), ref)
      expect(recorded).toEqual(folded)
    }
  })
})

function objectsOf(events: readonly SluiceEvent[]): ObjectRef[] {
  const found = new Map<string, ObjectRef>()
  for (const { type, data } of events) {
    if (type !== 'dev.sluice.resource.applied.v1') continue
    const { kind, namespace, name } = data
    found.set(`${kind}/${namespace}/${name}`, { kind, namespace, name })
  }
  return [...found.values()]
}
