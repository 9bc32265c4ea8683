import { describe, expect, it } from 'vitest'
import fc from '../../../test/support/fast-check.ts'
import { randomLog } from '../../../test/support/random-log.ts'
import type { FoldSnapshot } from '../../control/actors/fold.ts'
import { objectKey } from '../../ground/model/names.ts'
import {
  createFold,
  foldEvents,
  type RecordedEvent,
  Timeline,
  type TimelineSource,
} from './index.ts'

const options = { checkRegex: () => undefined }

function sourceOf(events: readonly RecordedEvent[], stored: readonly FoldSnapshot[] = []) {
  let reads = 0
  const source: TimelineSource = {
    first: 1,
    events: (from, to) => {
      const range = events.slice(from - 1, to)
      reads += range.length
      return range
    },
    ...(stored.length > 0 && {
      snapshot: async (atMost) => stored.findLast(({ position }) => position <= atMost),
    }),
  }
  return { source, reads: () => reads }
}

async function contentAt(events: readonly RecordedEvent[], position: number) {
  const fold = await foldEvents(events.slice(0, position), options)
  return {
    statuses: new Map(fold.statuses().map(([ref, status]) => [objectKey(ref), status])),
    resources: new Map(fold.resources().map((one) => [one.resource.key, one])),
  }
}

/** Goes to positions given as shares of the log, and compares each state with a fold of its own. */
async function expectSame(
  timeline: Timeline,
  events: readonly RecordedEvent[],
  shares: readonly number[],
): Promise<void> {
  for (const share of shares) {
    const position = Math.round(share * events.length)
    const moment = await timeline.at(position)
    const expected = await contentAt(events, position)
    expect(new Map(moment.statuses)).toEqual(expected.statuses)
    expect(new Map(moment.resources)).toEqual(expected.resources)
    if (position === 0) continue
    expect(moment.event).toEqual(events[position - 1]?.event)
    const before = await contentAt(events, position - 1)
    for (const { key, before: old, after } of moment.change?.statuses ?? []) {
      expect([old, after]).toEqual([before.statuses.get(key), expected.statuses.get(key)])
    }
    const changed = [...expected.resources].filter(
      ([key, { version }]) => before.resources.get(key)?.version !== version,
    )
    expect(moment.change?.resources.map(({ key }) => key)).toEqual(
      expect.arrayContaining(changed.map(([key]) => key)),
    )
  }
}

const walk = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 2, maxLength: 8 })

describe('a timeline', () => {
  it('shows the state and the change at any position, in any order', async () => {
    await fc.assert(
      fc.asyncProperty(randomLog, walk, async (events, shares) => {
        const limits = { keptEvents: 5, keptStates: 3, stateEvery: 4 }
        await expectSame(new Timeline(sourceOf(events).source, options, limits), events, shares)
      }),
      { numRuns: 40 },
    )
  })

  it('shows the same if the log has stored states', async () => {
    await fc.assert(
      fc.asyncProperty(randomLog, walk, walk, async (events, shares, storedAt) => {
        const stored: FoldSnapshot[] = []
        const positions = storedAt.map((share) => Math.round(share * events.length))
        const fold = createFold(options)
        for (const entry of events) {
          fold.apply(entry)
          if (!positions.includes(entry.position)) continue
          stored.push(JSON.parse(JSON.stringify(fold.snapshot())) as FoldSnapshot)
        }
        const { source } = sourceOf(events, stored)
        await expectSame(new Timeline(source, options, { stateEvery: 3 }), events, shares)
      }),
      { numRuns: 40 },
    )
  })

  it('steps back and forth without reading or folding events again', async () => {
    const [events = []] = fc.sample(randomLog, { numRuns: 1, seed: 1 })
    const { source, reads } = sourceOf(events)
    const timeline = new Timeline(source, options)
    await timeline.at(events.length)
    const before = reads()
    for (const share of [0.5, 0.25, 1, 0.1]) await timeline.at(Math.ceil(share * events.length))
    expect(reads()).toBe(before)
    expect(before).toBe(events.length)
  })

  it('gives the fold at a position, which knows what derivations have read', async () => {
    const [events = []] = fc.sample(randomLog, { numRuns: 1, seed: 2 })
    const timeline = new Timeline(sourceOf(events).source, options)
    for (const share of [1, 0.5, 0.75]) {
      const position = Math.ceil(share * events.length)
      const fold = await timeline.foldAt(position)
      const expected = await foldEvents(events.slice(0, position), options)
      expect(fold.position).toBe(position)
      expect(fold.digests()).toEqual(expected.digests())
    }
  })
})
