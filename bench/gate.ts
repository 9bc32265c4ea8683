/**
 * Claim: no usual workload became slower since the last release. Measures ten workloads with this build and with that
 * of the last release (or of `SLUICE_BENCH_REFERENCE`) in turn, and the bytes that three of them allocate. Takes about
 * seven minutes. Its table is for the changelog of a release.
 */
import { join } from 'node:path'
import { Authority } from '../test/support/certificates.ts'
import { freePort } from '../test/support/gateway.ts'
import { type BenchContext, interleave, launcher, type Row } from './harness.ts'
import { chat, paths, startSluice as startModels } from './llm/setup.ts'
import { startVendorUpstream } from './llm/upstream.ts'
import { callsThrough } from './mcp/calls.ts'
import { startMcpSluice } from './mcp/sluice.ts'
import { startMcpBenchUpstream } from './mcp/upstream.ts'
import { guarded, withToken } from './policies.ts'
import { allocations } from './proxy/garbage.ts'
import { streamCosts } from './proxy/http1.ts'
import { dialTls, routing, scenarios, startBenchUpstream } from './proxy/load.ts'
import type { MeasuredProxy } from './proxy/process.ts'
import { type Rig, withRig } from './proxy/rig.ts'
import { slicedCosts, slicedLoads } from './proxy/slices.ts'
import { type SluiceOptions, startSluice } from './proxy/sluice.ts'
import { findReference } from './reference.ts'
import { start, writeQuickStart } from './start.ts'

/** Samples of this build, and of the reference. */
type Pair = readonly (readonly number[])[]

interface Gate {
  readonly context: BenchContext
  readonly rig: Rig
  readonly slices: Parameters<typeof slicedLoads>[1]
  /** The command lines of this build and of the reference. */
  readonly programs: readonly string[]
  row(id: string, unit: string, pair: Pair, atMost?: number): Row
}

/** Starts a gateway with each build. */
async function both(
  { rig, programs }: Gate,
  startWith: (folder: string, program: string) => Promise<MeasuredProxy>,
): Promise<MeasuredProxy[]> {
  const pair: MeasuredProxy[] = []
  for (const program of programs) pair.push(await rig.proxy(startWith(rig.folder(), program)))
  return pair
}

async function httpRows(gate: Gate): Promise<Row[]> {
  const { rig, slices, context } = gate
  const upstream = rig.use(await startBenchUpstream())
  const authority = new Authority()
  rig.use({ close: () => authority.dispose() })
  const pairOf = (options: SluiceOptions = {}) =>
    both(gate, (folder, program) => startSluice(folder, upstream.port, 10, { ...options, program }))
  const plain = await pairOf()
  const rows: Row[] = []
  for (const name of ['get', 'post', 'large'] as const) {
    const scenario = scenarios[name]
    rows.push(gate.row(name, 'µs', await slicedCosts(plain, { ...slices, scenario })))
  }
  const events = await streamCosts(plain, upstream, context.rounds, context.quick)
  const resident = plain.map((proxy) => [proxy.residentBytes() / 2 ** 20])
  const tls = await pairOf({ certificate: authority.issue([routing.host]) })
  const overTls = { ...slices, scenario: scenarios.get, dial: dialTls }
  const policies = await pairOf({ objects: guarded })
  return [
    ...rows,
    gate.row('event', 'µs', events),
    gate.row('resident', 'MB', resident),
    gate.row('tls', 'µs', await slicedCosts(tls, overTls)),
    gate.row('policies', 'µs', await slicedCosts(policies, { ...slices, scenario: withToken() })),
  ]
}

async function chatRow(gate: Gate): Promise<Row> {
  const upstream = gate.rig.use(await startVendorUpstream())
  const pair = await both(gate, (folder, program) => startModels(folder, upstream.port, program))
  const scenario = chat(paths.ai)
  return gate.row('chat', 'µs', await slicedCosts(pair, { ...gate.slices, scenario }))
}

async function callRow(gate: Gate): Promise<Row> {
  const upstream = gate.rig.use(await startMcpBenchUpstream({ tools: 50 }))
  const pair = await both(gate, (folder, program) =>
    startMcpSluice(folder, [upstream.port], {}, program),
  )
  const loads = await Promise.all(pair.map((proxy) => callsThrough(proxy, '/mcp')))
  return gate.row('mcp-call', 'µs', await slicedLoads(loads, gate.slices))
}

async function startRow(gate: Gate): Promise<Row> {
  const manifests = join(gate.rig.folder(), 'quickstart')
  writeQuickStart(manifests, await freePort())
  const timed = (program: string) => async () => {
    const log = join(gate.rig.folder(), 'events.db')
    const { ms, end } = await start(manifests, log, program)
    await end('SIGTERM')
    return ms
  }
  const [own = '', old = ''] = gate.programs
  const samples = await interleave(gate.context.rounds, { own: timed(own), old: timed(old) })
  return gate.row('start', 'ms', [samples.own, samples.old])
}

/** Allocated bytes vary less than times, so their bound is tighter. */
async function garbageRows({ context, programs, row }: Gate): Promise<Row[]> {
  const rows: Row[] = []
  for (const [name, measure] of Object.entries(allocations)) {
    const pair: number[][] = []
    for (const program of programs) {
      pair.push(await measure({ rounds: context.quick ? 2 : 3, quick: true }, program))
    }
    rows.push(row(`garbage.${name}`, 'B', pair, 1.02))
  }
  return rows
}

export default async function gateAgainstRelease(context: BenchContext): Promise<Row[]> {
  const { rounds, quick, note } = context
  const reference = findReference(note)
  const row: Gate['row'] = (id, unit, [own = [], old = []], atMost = 1.05) => ({
    id: `gate.${id}`,
    unit,
    own,
    peer: { name: reference.name, samples: old },
    bound: { atMost },
  })
  const programs = [launcher, reference.program]
  const slices = { rounds, seconds: quick ? 0.6 : 1.5, warmUpSeconds: quick ? 2 : 4 }
  return withRig(context, async (rig) => {
    const gate = { context, rig, slices, programs, row }
    return [
      ...(await httpRows(gate)),
      await chatRow(gate),
      await callRow(gate),
      await startRow(gate),
      ...(await garbageRows(gate)),
    ]
  })
}
