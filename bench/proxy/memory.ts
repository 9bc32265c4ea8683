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
import { envoy } from './envoy-peer.ts'
import { scenarios, startBenchUpstream, startLoad } from './load.ts'
import { haproxy, nginx, startPeers } from './peers.ts'
import { loadCore, type MeasuredProxy, memoryOf } from './process.ts'
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

async function putLoadOn(proxy: MeasuredProxy): Promise<void> {
  const load = startLoad(proxy.port, scenarios.get, connections)
  while (load.responses() < loadedRequests) await delay(100)
  await load.stop()
}

/** What each peer takes before and after the same load. */
async function peerRows(upstream: number): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const { running, absent } = await startPeers([
    await nginx(folder, upstream),
    await haproxy(folder, upstream),
    await envoy(folder, upstream),
  ])
  const rows: Row[] = []
  const row = (when: string, name: string, own: number[], note: string) =>
    rows.push({ id: `proxy.resident.${when}.${name}`, unit: 'MB', own, note })
  try {
    for (const [name, reason] of absent) row('rest', name, [], `${name} is absent: ${reason}`)
    for (const proxy of running) {
      await check(proxy)
      row('rest', proxy.name, [proxy.residentBytes() / megabyte], 'the peer itself')
      await putLoadOn(proxy)
      row('load', proxy.name, [proxy.residentBytes() / megabyte], 'the peer itself')
    }
    return rows
  } finally {
    for (const proxy of running) await proxy.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measure(samples: Samples, upstream: number, manyRoutes: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  samples.node.push(await residentOfNode())
  const small = await startSluice(folder, upstream, 10)
  try {
    await check(small)
    samples.start.push(small.residentBytes() / megabyte)
    await delay(restMs)
    samples.rest.push(small.residentBytes() / megabyte)
    await putLoadOn(small)
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
  const peers = await peerRows(upstream.port)
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
    ...peers,
  ]
}
