/** Segments of a log that are replayed on their own prove the same as a replay of the whole log. */

import { describe, expect, it } from 'vitest'
import type { SluiceEvent } from '../../events/index.ts'
import { type EventLog, MemoryLog, type Position } from '../../src/control/log/index.ts'
import { regexProblem } from '../../src/control/plane/api-binding.ts'
import { captureState, loadState, restoreState } from '../../src/control/plane/stored-state.ts'
import { foldVersion, replay } from '../../src/past/replay/index.ts'
import { replayParallel } from '../../src/tools/cli/replay/parallel.ts'
import { replaySegment } from '../../src/tools/cli/replay/segment.ts'
import fc from '../support/fast-check.ts'
import { randomLog } from '../support/random-log.ts'
import { record } from '../support/recorded-run.ts'

const derivation = { checkRegex: regexProblem }

/** Replays a log in segments, one for each of its snapshots, and all but some of these. */
async function replayInSegments(log: EventLog, skip: readonly boolean[]) {
  const to = await log.lastPosition()
  const snapshots = (await log.snapshots()).map(({ position }) => position)
  const starts = snapshots.filter((position, n) => position < to && !skip[n % skip.length])
  const results = [0, ...starts].map((from, n, all) => {
    const end = all[n + 1] ?? to
    return replaySegment(
      log,
      {
        ...(n > 0 && { from }),
        isContinued: n > 0,
        to: end,
        snapshots: snapshots.filter((position) => position > from && position <= end),
      },
      derivation,
      () => undefined,
    )
  })
  return Promise.all(results)
}

/** Changes the snapshot at a position, so that it lacks an object. */
async function damage(log: EventLog, position: Position) {
  const state = await loadState(
    log,
    (await log.snapshots()).filter((one) => one.position === position),
  )
  const fold = { ...state?.fold, actors: state?.fold.actors.slice(1) }
  const chunks = [Buffer.from(JSON.stringify({ ...state, fold }))]
  await log.saveSnapshot({ position, foldVersion, chunks })
}

/** The longest of some random logs that begin with an object, so that every snapshot has one to lose. */
async function longLog() {
  const samples = fc
    .sample(randomLog, { numRuns: 40, seed: 5 })
    .filter(([first]) => first?.event.type === 'dev.sluice.resource.applied.v1')
  const [events = []] = samples.sort((a, b) => b.length - a.length)
  return record(distinct(events), [2])
}

/** Stores a snapshot after each event of a log. */
async function storeSnapshots(log: EventLog) {
  const { fold, index } = await restoreState(new MemoryLog(), '/sluice/files')
  for await (const recorded of log.read()) {
    fold.apply(recorded)
    index.apply(recorded.event)
    await log.saveSnapshot(await captureState(fold, index))
  }
}

const someSizes = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 5 })
const someSkips = fc.array(fc.boolean(), { minLength: 1, maxLength: 4 })

const distinct = (events: readonly { readonly event: SluiceEvent }[]) =>
  events.map(({ event }, n) => ({ ...event, id: `${n}` }) as SluiceEvent)

describe('a log that is replayed in segments', () => {
  it('gives the result of a replay of the whole log', async () => {
    let segments = 0
    await fc.assert(
      fc.asyncProperty(randomLog, someSizes, someSkips, async (events, sizes, skip) => {
        const log = await record(distinct(events), sizes)
        const { fold, ...whole } = await replay(log.read(), derivation)
        const results = await replayInSegments(log, skip)
        segments += results.length
        const sum = (name: 'events' | 'published' | 'incomparable') =>
          results.reduce((total, result) => total + result[name], 0)
        expect([sum('events'), sum('published'), sum('incomparable')]).toEqual([
          whole.events,
          whole.published,
          whole.incomparable,
        ])
        expect(results.flatMap(({ different }) => different)).toEqual(whole.different)
        expect(results.flatMap(({ wrongSnapshots }) => wrongSnapshots)).toEqual([])
        expect(results.at(-1)?.digests).toEqual(fold.digests())
      }),
      { numRuns: 40 },
    )
    expect(segments).toBeGreaterThan(42)
  })

  it('names a snapshot that was changed', async () => {
    const log = await longLog()
    const stored = await log.snapshots()
    const changed = stored[Math.floor(stored.length / 2)]?.position as Position
    await damage(log, changed)
    const results = await replayInSegments(log, [true])
    expect(results.flatMap(({ wrongSnapshots }) => wrongSnapshots)).toEqual([changed])
  })
})

describe('replay of a log with many snapshots', () => {
  it('compares a few of them, among them the newest, or all', async () => {
    const log = await longLog()
    await storeSnapshots(log)
    const positions = (await log.snapshots()).map(({ position }) => position)
    const to = positions.at(-1) as Position
    for (const position of positions) await damage(log, position)
    const recording = {
      source: { log, to },
      extent: { isSameFoldVersion: true },
      derivation,
    } as unknown as Parameters<typeof replayParallel>[0]
    const few = await replayParallel(recording, {})
    expect(few.wrongSnapshots.length).toBe(few.snapshots.compared)
    expect(few.wrongSnapshots).toContain(to)
    expect(few.snapshots.stored).toBe(positions.length)
    expect(few.snapshots.compared).toBeGreaterThan(8)
    expect(few.snapshots.compared).toBeLessThan(positions.length)
    const all = await replayParallel(recording, { allSnapshots: true })
    expect(all.wrongSnapshots).toEqual(positions)
  })
})
