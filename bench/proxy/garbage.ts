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
import { type BenchContext, launcher, type Row } from '../harness.ts'
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
import { type SluiceOptions, startSluice } from './sluice.ts'

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

type Allocations = Pick<BenchContext, 'rounds' | 'quick'>

/** Bytes for a GET of a gateway with these options. */
async function bytesOfGet(
  { rounds, quick }: Allocations,
  options: SluiceOptions,
  scenario: Scenario = scenarios.get,
): Promise<number[]> {
  const upstream = await startBenchUpstream()
  const probed = await withProbe((folder) => startSluice(folder, upstream.port, 10, options))
  const load = loadOf(probed, scenario)
  const own = await bytesPer(probed, { load, rounds, units: quick ? 20_000 : 50_000 })
  await end(probed)
  upstream.close()
  return own
}

async function bytesOfChat({ rounds, quick }: Allocations, program: string): Promise<number[]> {
  const upstream = await startVendorUpstream()
  const probed = await withProbe((folder) => startModels(folder, upstream.port, program))
  const load = loadOf(probed, chat(paths.ai))
  const own = await bytesPer(probed, { load, rounds, units: quick ? 5_000 : 10_000 })
  await end(probed)
  upstream.close()
  return own
}

async function eventRows({ rounds, quick }: BenchContext, bytesPerResponse: number) {
  const upstream = await startVendorUpstream()
  const models = await withProbe((folder) => startModels(folder, upstream.port))
  const units = quick ? 5_000 : 10_000
  const perEvent = async (scenario: Scenario) => {
    const load = loadOf(models, scenario)
    const done = upstream.events
    const own = await bytesPer(models, { load, rounds, units, done, bytesPerResponse })
    upstream.endStreams()
    return own
  }
  const asked = await perEvent(chat(paths.ai, { stream: true }))
  const guardedEvents = await perEvent(chat(paths.guarded, { stream: true }))
  await end(models)
  upstream.close()
  return [rowOf('event', asked, 200), rowOf('event.guarded', guardedEvents, 400)]
}

async function bytesOfCall({ rounds, quick }: Allocations, program: string): Promise<number[]> {
  const upstream = await startMcpBenchUpstream({ tools: 50 })
  const probed = await withProbe((folder) => startMcpSluice(folder, [upstream.port], {}, program))
  const { load } = await callsThrough(probed.proxy, '/mcp')
  const own = await bytesPer(probed, { load, rounds, units: quick ? 5_000 : 10_000 })
  await end(probed)
  upstream.close()
  return own
}

/** Bytes that a build allocates for a unit of work, once a round. */
export const allocations = {
  get: (context: Allocations, program = launcher) => bytesOfGet(context, { program }),
  chat: (context: Allocations, program = launcher) => bytesOfChat(context, program),
  'mcp-call': (context: Allocations, program = launcher) => bytesOfCall(context, program),
} as const

async function end({ proxy, folder }: Probed): Promise<void> {
  await proxy.stop()
  rmSync(folder, { recursive: true, force: true })
}

export default async function garbage(context: BenchContext): Promise<Row[]> {
  const sampled = await bytesOfGet(context, { record: 'sample' })
  const policies = await bytesOfGet(context, { objects: guarded }, withToken())
  const whole = await allocations.chat(context)
  return [
    rowOf('get', await allocations.get(context), 100),
    rowOf('sampled', sampled, 110),
    rowOf('policies', policies, 300),
    rowOf('chat', whole, 4_096),
    ...(await eventRows(context, Math.min(...whole))),
    rowOf('mcp-call', await allocations['mcp-call'](context), 8_192),
  ]
}
