/**
 * Replay of a long log, a million events of a controller with 5,000 routes: microseconds an event,
 * for reading the log, for folding (actors, the book of statuses) and for deriving; CPU time.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Fold } from '../../src/control/actors/fold.ts'
import { createGraph } from '../../src/control/desired/derivations.ts'
import { type EventLog, openEmbeddedLog, type Position } from '../../src/control/log/index.ts'
import { regexProblem } from '../../src/control/plane/api-binding.ts'
import type { BenchContext, Row } from '../harness.ts'
import { record } from '../replay.ts'

const from = 1 as Position

interface Spent {
  readonly events: number
  /** Milliseconds of CPU time. */
  readonly reading: number
  readonly folding: number
  readonly deriving: number
}

/** User and system time of this process so far, in milliseconds; other processes do not disturb it. */
function cpuTime(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Folds a log as `sluice replay` does and records how the time is spent. */
async function replayed(log: EventLog): Promise<Spent> {
  const graph = createGraph({ checkRegex: regexProblem })
  const settle = graph.settle.bind(graph)
  let deriving = 0
  graph.settle = () => {
    const begun = cpuTime()
    settle()
    deriving += cpuTime() - begun
  }
  const fold = new Fold(graph)
  const begun = cpuTime()
  let applying = 0
  let events = 0
  for await (const recorded of log.read({ from })) {
    const at = cpuTime()
    fold.apply(recorded)
    applying += cpuTime() - at
    events++
  }
  const whole = cpuTime() - begun
  return { events, reading: whole - applying, folding: applying - deriving, deriving }
}

export default async function replay({ quick, note }: BenchContext): Promise<Row[]> {
  const size = quick ? 20_000 : 1_000_000
  const routes = quick ? 500 : 5_000
  const rounds = quick ? 3 : 1
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const { log } = openEmbeddedLog(join(folder, 'events.db'))
  try {
    note(`recording ${size} events`)
    await record(log, size, routes)
    const all: Spent[] = []
    for (let round = 0; round < rounds; round++) {
      all.push(await replayed(log))
      note(`round ${round + 1} of ${rounds}`)
    }
    const row = (name: string, of: (spent: Spent) => number): Row => ({
      id: `control-plane.replay.${name}`,
      unit: 'µs',
      own: all.map((spent) => (1_000 * of(spent)) / spent.events),
    })
    return [
      row('read', ({ reading }) => reading),
      row('fold', ({ folding }) => folding),
      row('derive', ({ deriving }) => deriving),
      {
        id: 'control-plane.replay.whole',
        unit: 's',
        own: all.map(({ reading, folding, deriving }) => (reading + folding + deriving) / 1_000),
        note: `${all[0]?.events} events, statuses derived at every event`,
      },
    ]
  } finally {
    await log.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
