/**
 * Moments of a long log: 1,000,000 events of 5,000 routes, with endpoints and answers of a proxy. Each command
 * runs in a cold process. The log is written once, which takes about four minutes of CPU time.
 */
import { spawn } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openEmbeddedLog, type Position, readEmbeddedLog } from '../src/control/log/index.ts'
import { regexProblem } from '../src/control/plane/api-binding.ts'
import { loadState, restoreState } from '../src/control/plane/stored-state.ts'
import { foldVersion, Timeline } from '../src/past/replay/index.ts'
import { changeLog } from './change-log.ts'
import { type BenchContext, launcher, milliseconds, quantile, type Row } from './harness.ts'
import { memoryOf } from './proxy/process.ts'

interface Finished {
  readonly ms: number
  /** Largest resident memory in MB; NaN if the system does not report it. */
  readonly memory: number
}

/** Runs a command to its end. Exit codes other than 0 fail the bench. */
function run(args: readonly string[]): Promise<Finished> {
  const begun = performance.now()
  const child = spawn(launcher, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  let memory = Number.NaN
  const probe = setInterval(() => {
    memory = highWater(child.pid) ?? memory
  }, 50)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      clearInterval(probe)
      if (code === 0) resolve({ ms: performance.now() - begun, memory })
      else reject(new Error(`sluice ${args.join(' ')} ended with exit code ${code}`))
    })
  })
}

function highWater(pid: number | undefined): number | undefined {
  try {
    return memoryOf(pid, 'VmHWM') / 1024 ** 2 || undefined
  } catch {
    return undefined
  }
}

/** Steps to the neighbours of random positions, as the console does. */
async function steps(path: string, positions: readonly number[]): Promise<number[]> {
  const log = readEmbeddedLog(path)
  const stored = (await log.snapshots()).toReversed()
  const timeline = new Timeline(
    {
      first: await log.firstPosition(),
      events: (from, to) => log.read({ from: from as Position, to: to as Position }),
      snapshot: async (atMost) => {
        const nearest = stored.filter(({ position }) => position <= atMost)
        return (await loadState(log, nearest))?.fold
      },
    },
    { checkRegex: regexProblem },
  )
  const samples: number[] = []
  for (const position of positions) {
    await timeline.at(position)
    for (const neighbour of [position + 1, position, position - 1])
      samples.push(await milliseconds(() => timeline.at(neighbour)))
  }
  await log.close()
  return samples
}

/** What a controller does with its log before it serves. */
async function restore(path: string, folder: string): Promise<number> {
  const copy = join(folder, 'restored.db')
  copyFileSync(path, copy)
  return milliseconds(async () => {
    const { log } = openEmbeddedLog(copy)
    const { fold, from } = await restoreState(log, '/sluice/bench')
    for await (const recorded of log.read({ from })) fold.apply(recorded)
    fold.takeChange()
    await log.close()
  })
}

/** The 95th percentile of `status --at` over some positions. */
async function slowest(log: readonly string[], positions: readonly number[]): Promise<number> {
  const samples: number[] = []
  for (const at of positions) samples.push((await run(['status', ...log, '--at', `${at}`])).ms)
  return quantile(samples, 0.95)
}

export default async function timeTravel({ quick, rounds, note }: BenchContext): Promise<Row[]> {
  const [size, routes] = quick ? [50_000, 1_000] : [1_000_000, 5_000]
  const path = await changeLog(size, routes, note)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const log = ['--log-file', path]
  // The same positions in each run; prime steps reach all parts of the log.
  const count = quick ? 5 : 20
  const positions = Array.from(
    { length: count },
    (_, index) => routes + 1 + ((index * 479_001_599) % (size - routes - 1)),
  )
  try {
    const p95: number[] = []
    for (let round = 0; round < Math.min(rounds, 3); round++)
      p95.push(await slowest(log, positions))
    const stepped = await steps(path, positions.slice(0, 5))
    const replays: Finished[] = []
    const restores: number[] = []
    const bisects: number[] = []
    const expectation = ['--expect', 'HTTPRoute/default/route-17 ResolvedRefs=True']
    for (let round = 0; round < Math.min(rounds, 3); round++) {
      replays.push(await run(['replay', ...log]))
      restores.push(await restore(path, folder))
      bisects.push((await run(['bisect', ...log, ...expectation])).ms)
    }
    const shape = `${size} events, ${routes} routes, fold version ${foldVersion}`
    return [
      {
        id: 'time-travel.status-at.p95',
        unit: 'ms',
        own: p95,
        bound: { atMost: 1_500 },
        note: shape,
      },
      { id: 'time-travel.step', unit: 'ms', own: stepped, bound: { atMost: 50 } },
      {
        id: 'time-travel.replay',
        unit: 's',
        own: replays.map(({ ms }) => ms / 1_000),
        bound: { atMost: 15 },
      },
      {
        id: 'time-travel.replay.memory',
        unit: 'MB',
        own: replays.map(({ memory }) => memory),
        bound: { atMost: 400 },
      },
      { id: 'time-travel.bisect', unit: 'ms', own: bisects, bound: { atMost: 10_000 } },
      { id: 'time-travel.restore', unit: 'ms', own: restores, bound: { atMost: 3_000 } },
      {
        id: 'time-travel.bytes-an-event',
        unit: 'B',
        own: [statSync(path).size / size],
        bound: { atMost: 600 },
      },
    ]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
