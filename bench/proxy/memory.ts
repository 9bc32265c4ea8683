/**
 * Claim: a gateway takes little memory. Resident memory of `sluice run` with one worker: as soon as it
 * serves, at rest, after a load, and at rest with 5,000 routes. Half of the first 90 MB is Node itself, which
 * `proxy.resident.node` shows: a process with one empty worker thread.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type BenchContext, pinSelf, type Row } from '../harness.ts'
import { check, connections } from './cost.ts'
import { scenarios, startBenchUpstream, startLoad } from './load.ts'
import { loadCore, memoryOf } from './process.ts'
import { startSluice } from './sluice.ts'

const megabyte = 1024 * 1024
/** Longer than threads must be idle before they return memory. */
const restMs = 18_000
const loadedRequests = 40_000

const emptyThreads = `
  const { Worker } = require('node:worker_threads')
  new Worker('setInterval(() => {}, 1000)', { eval: true }).on('online', () => console.log('online'))
`

async function residentOfNode(): Promise<number> {
  const child = spawn(process.execPath, ['-e', emptyThreads], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await new Promise((resolve) => child.stdout.once('data', resolve))
  const resident = memoryOf(child.pid)
  child.kill('SIGKILL')
  return resident / megabyte
}

type Samples = Record<'node' | 'start' | 'rest' | 'load' | 'routes', number[]>

async function measure(samples: Samples, upstream: number, manyRoutes: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  samples.node.push(await residentOfNode())
  const small = await startSluice(folder, upstream, 10)
  try {
    await check(small)
    samples.start.push(small.residentBytes() / megabyte)
    await delay(restMs)
    samples.rest.push(small.residentBytes() / megabyte)
    const load = startLoad(small.port, scenarios.get, connections)
    while (load.responses() < loadedRequests) await delay(100)
    await load.stop()
    samples.load.push(small.residentBytes() / megabyte)
  } finally {
    await small.stop()
  }
  const large = await startSluice(folder, upstream, manyRoutes)
  try {
    await check(large)
    await delay(restMs)
    samples.routes.push(large.residentBytes() / megabyte)
  } finally {
    await large.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

export default async function memory({ quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const upstream = await startBenchUpstream()
  const manyRoutes = quick ? 1_000 : 5_000
  const samples: Samples = { node: [], start: [], rest: [], load: [], routes: [] }
  for (let round = 0; round < (quick ? 1 : 3); round++) {
    await measure(samples, upstream.port, manyRoutes)
  }
  upstream.close()
  const unit = 'MB'
  return [
    {
      id: 'proxy.resident.node',
      unit,
      own: samples.node,
      note: 'Node with one empty worker thread',
    },
    { id: 'proxy.resident.start', unit, own: samples.start },
    { id: 'proxy.resident.rest', unit, own: samples.rest, bound: { atMost: 90 } },
    { id: 'proxy.resident.load', unit, own: samples.load, bound: { atMost: 120 } },
    {
      id: `proxy.resident.${manyRoutes}-routes`,
      unit,
      own: samples.routes,
      ...(!quick && { bound: { atMost: 200 } }),
    },
  ]
}
