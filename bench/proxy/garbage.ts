/**
 * Claim: requests leave little garbage. Bytes that the worker allocates on its JavaScript heap for each
 * request, by the statistics of V8's collections; for a streamed event, without the share of its request.
 * The figures do not depend on how busy the machine is.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { BenchContext, Row } from '../harness.ts'
import { chat, paths, startSluice as startModels } from '../llm/setup.ts'
import { startVendorUpstream } from '../llm/upstream.ts'
import { callsThrough } from '../mcp/calls.ts'
import { startMcpSluice } from '../mcp/sluice.ts'
import { startMcpBenchUpstream } from '../mcp/upstream.ts'
import { guarded, withToken } from '../policies.ts'
import { connections } from './cost.ts'
import { socketOf } from './heap-probe.ts'
import { type Load, type Scenario, scenarios, startBenchUpstream, startLoad } from './load.ts'
import type { MeasuredProxy } from './process.ts'
import { startSluice } from './sluice.ts'

/** Requests before the first measurement: compiled code allocates less. */
const warmUpUnits = 15_000
const probe = join(import.meta.dirname, 'heap-probe.ts')

/** Starts a gateway whose worker has the probe. */
async function withProbe(start: (folder: string) => Promise<MeasuredProxy>): Promise<Probed> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const { NODE_OPTIONS: before } = process.env
  process.env.NODE_OPTIONS = `--disable-warning=ExperimentalWarning --import=${probe}`
  process.env.SLUICE_BENCH_PROBE = folder
  try {
    return { proxy: await start(folder), folder }
  } finally {
    delete process.env.SLUICE_BENCH_PROBE
    if (before === undefined) delete process.env.NODE_OPTIONS
    else process.env.NODE_OPTIONS = before
  }
}

interface Probed {
  readonly proxy: MeasuredProxy
  readonly folder: string
}

async function allocatedDuring(folder: string, work: () => Promise<void>): Promise<number> {
  const socket = connect({ path: socketOf(folder), allowHalfOpen: true })
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  // The probe begins when it accepts the connection, which may be later.
  await delay(100)
  await work()
  socket.end()
  let text = ''
  for await (const piece of socket) text += piece
  return Number(text)
}

interface Measurement {
  readonly load: Load
  readonly rounds: number
  readonly units: number
  /** Counts what the cost is for: requests, or events of streams. */
  readonly done?: () => number
  /** Bytes for each response that are not counted. */
  readonly bytesPerResponse?: number
}

/** Bytes for each unit, once a round; stops the load. */
async function bytesPer({ folder }: Probed, measurement: Measurement): Promise<number[]> {
  const { load, rounds, units, done = load.responses, bytesPerResponse = 0 } = measurement
  const reach = async (count: number) => {
    while (done() < count) await delay(20)
  }
  await reach(done() + Math.max(units, warmUpUnits))
  const samples: number[] = []
  for (let round = 0; round < rounds; round++) {
    const from = { done: done(), responses: load.responses() }
    const allocated = await allocatedDuring(folder, () => reach(from.done + units))
    const responses = load.responses() - from.responses
    samples.push((allocated - responses * bytesPerResponse) / (done() - from.done))
  }
  await load.stop()
  return samples
}

const rowOf = (id: string, own: readonly number[], atMost: number): Row => ({
  id: `proxy.garbage.${id}`,
  unit: 'B',
  own,
  bound: { atMost },
})

const loadOf = ({ proxy }: Probed, scenario: Scenario) =>
  startLoad(proxy.port, scenario, connections)

async function plainRows({ rounds, quick }: BenchContext): Promise<Row[]> {
  const upstream = await startBenchUpstream()
  const units = quick ? 20_000 : 50_000
  const plain = await withProbe((folder) => startSluice(folder, upstream.port, 10))
  const get = await bytesPer(plain, { load: loadOf(plain, scenarios.get), rounds, units })
  await end(plain)
  const record = 'sample'
  const sampling = await withProbe((folder) => startSluice(folder, upstream.port, 10, { record }))
  const sampled = await bytesPer(sampling, { load: loadOf(sampling, scenarios.get), rounds, units })
  await end(sampling)
  const options = { objects: guarded }
  const full = await withProbe((folder) => startSluice(folder, upstream.port, 10, options))
  const policies = await bytesPer(full, { load: loadOf(full, withToken()), rounds, units })
  await end(full)
  upstream.close()
  return [rowOf('get', get, 100), rowOf('sampled', sampled, 110), rowOf('policies', policies, 300)]
}

async function modelRows({ rounds, quick }: BenchContext): Promise<Row[]> {
  const upstream = await startVendorUpstream()
  const units = quick ? 5_000 : 10_000
  const models = await withProbe((folder) => startModels(folder, upstream.port))
  const whole = await bytesPer(models, { load: loadOf(models, chat(paths.ai)), rounds, units })
  const bytesPerResponse = Math.min(...whole)
  const perEvent = (scenario: Scenario) => {
    const load = loadOf(models, scenario)
    return bytesPer(models, { load, rounds, units, done: upstream.events, bytesPerResponse })
  }
  const asked = await perEvent(chat(paths.ai, { stream: true }))
  upstream.endStreams()
  const guardedEvents = await perEvent(chat(paths.guarded, { stream: true }))
  upstream.endStreams()
  await end(models)
  upstream.close()
  return [
    rowOf('chat', whole, 4_096),
    rowOf('event', asked, 200),
    rowOf('event.guarded', guardedEvents, 400),
  ]
}

async function toolRow({ rounds, quick }: BenchContext): Promise<Row> {
  const upstream = await startMcpBenchUpstream({ tools: 50 })
  const probed = await withProbe((folder) => startMcpSluice(folder, [upstream.port]))
  const { load } = await callsThrough(probed.proxy, '/mcp')
  const own = await bytesPer(probed, { load, rounds, units: quick ? 5_000 : 10_000 })
  await end(probed)
  upstream.close()
  return rowOf('mcp-call', own, 8_192)
}

async function end({ proxy, folder }: Probed): Promise<void> {
  await proxy.stop()
  rmSync(folder, { recursive: true, force: true })
}

export default async function garbage(context: BenchContext): Promise<Row[]> {
  return [...(await plainRows(context)), ...(await modelRows(context)), await toolRow(context)]
}
