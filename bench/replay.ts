/**
 * Replay of a recorded log of 20,000 events, decisions included: events a second through the public
 * `replay`, and how much of that is reading the log and parsing JSON.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { resourceApplied, type SluiceEvent } from '../events/index.ts'
import { Fold, foldVersion } from '../src/control/actors/fold.ts'
import { createGraph } from '../src/control/desired/derivations.ts'
import { type EventLog, openEmbeddedLog, type Position } from '../src/control/log/index.ts'
import { regexProblem } from '../src/control/plane/api-binding.ts'
import { Reconciler } from '../src/control/plane/reconciler.ts'
import { replay as replayEvents } from '../src/past/replay/index.ts'
import { type BenchContext, interleave, milliseconds, type Row } from './harness.ts'
import { appliedEvent, foldSurroundings, routeObject } from './scenes.ts'

const from = 1 as Position
const batch = 20

/** What a running controller would have recorded: observations with the decisions they caused. */
export async function record(
  log: EventLog,
  size: number,
  routes = Math.floor(size / 8),
): Promise<void> {
  const fold = new Fold(createGraph({ checkRegex: regexProblem }))
  const options = {
    log,
    fold,
    epoch: () => 0,
    append: (events: readonly SluiceEvent[]) => log.append(events),
    observe: () => undefined,
    publish: () => undefined,
    capture: () => ({ position: fold.position as Position, foldVersion, chunks: [] }),
    snapshotEvery: Number.POSITIVE_INFINITY,
    onFault: (error: unknown) => {
      throw error
    },
  }
  const reconciler = new Reconciler(options)
  await log.append(foldSurroundings().map((object) => appliedEvent(object)))
  await reconciler.start(from)
  reconciler.open()
  for (let n = 0; (await log.lastPosition()) < size; n += batch) {
    const events = Array.from({ length: batch }, (_, index) => {
      const revision = Math.floor((n + index) / routes)
      return appliedEvent(routeObject((n + index) % routes, revision), revision + 1)
    })
    await log.append(events)
    await reconciler.folded(await log.lastPosition())
  }
  await reconciler.stop()
}

export default async function replay({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  const size = quick ? 2_000 : 20_000
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const { log } = openEmbeddedLog(join(folder, 'events.db'))
  try {
    await record(log, size)
    const bodies: string[] = []
    let observations = 0
    for await (const { event } of log.read({ from })) {
      bodies.push(JSON.stringify(event))
      if (event.type === resourceApplied.type) observations++
    }
    note(`${bodies.length} events, ${Math.round(bodies.join('').length / 1e6)} MB`)
    const perSecond = (ms: number) => bodies.length / (ms / 1000)
    const samples = await interleave(rounds, {
      replay: () =>
        milliseconds(async () => {
          const { events, different, incomparable, published } = await replayEvents(
            log.read({ from }),
            {
              checkRegex: regexProblem,
            },
          )
          const isEqual = published > 0 && different.length === 0 && incomparable === 0
          if (events !== bodies.length || !isEqual) {
            throw new Error('replay did not arrive at the recorded digests')
          }
        }),
      read: () =>
        milliseconds(async () => {
          let count = 0
          for await (const { position } of log.read({ from })) count = position
          if (count < bodies.length) throw new Error('the log is short')
        }),
      parse: () =>
        milliseconds(() => {
          for (const body of bodies) JSON.parse(body)
        }),
    })
    const share = (part: readonly number[]) =>
      part.map((ms, round) => (100 * ms) / (samples.replay[round] ?? Number.NaN))
    return [
      {
        id: 'replay',
        unit: 'events/s',
        own: samples.replay.map(perSecond),
        note: `${observations} of ${bodies.length} events are observations, the others decisions`,
      },
      { id: 'replay.read-only', unit: 'events/s', own: samples.read.map(perSecond) },
      { id: 'replay.share-of-reading', unit: '%', own: share(samples.read) },
      { id: 'replay.share-of-json', unit: '%', own: share(samples.parse) },
    ]
  } finally {
    await log.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
