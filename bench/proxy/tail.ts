/**
 * Claim: few requests wait long. Latency at a fixed rate that leaves the proxy half idle, from the moment
 * when a request was due: the median, p99, p99.9 and maximum of plain requests, over TLS, with policies, of
 * chats, of calls of MCP tools, and of the first events of streams. Peers and the upstream itself are measured
 * in turn. Under full load, the p99 of the gateway is compared with its median.
 */
import { Authority, type Certificate } from '../../test/support/certificates.ts'
import { type BenchContext, interleave, quantile, type Row } from '../harness.ts'
import { chat, paths, startSluice as startModels } from '../llm/setup.ts'
import { startVendorUpstream } from '../llm/upstream.ts'
import { McpBenchClient } from '../mcp/client.ts'
import { startMcpSluice } from '../mcp/sluice.ts'
import { startMcpBenchUpstream } from '../mcp/upstream.ts'
import { guarded, withToken } from '../policies.ts'
import { connections } from './cost.ts'
import { envoy } from './envoy-peer.ts'
import {
  type Dial,
  dialPlain,
  dialTls,
  routing,
  type Scenario,
  scenarios,
  startBenchUpstream,
} from './load.ts'
import { closedLoop, openLoop } from './open-loop.ts'
import { haproxy, nginx } from './peers.ts'
import { type Rig, withRig } from './rig.ts'

interface Target {
  /** The name of the proxy; `direct` for the upstream itself. */
  readonly name: string
  readonly port: number
  /** Default: the request of the scenario. */
  readonly request?: Buffer
}

interface Load {
  readonly id: string
  readonly scenario: Scenario
  readonly perSecond: number
  readonly dial: Dial
  /** Ourselves first. */
  readonly targets: readonly Target[]
  /** How much later than `direct` the slowest of a hundred requests may be, in milliseconds. */
  readonly addedAtMost?: number
}

/** Is the load measured as a full load, too? */
const fullLoads: ReadonlySet<string> = new Set(['get', 'tls', 'policies', 'chat'])

const quantiles = [
  ['p50', 0.5],
  ['p99', 0.99],
  ['p99.9', 0.999],
  ['max', 1],
] as const

async function plainLoads(rig: Rig, note: (text: string) => void): Promise<Load[]> {
  const upstream = rig.use(await startBenchUpstream())
  const authority = new Authority()
  rig.use({ close: () => authority.dispose() })
  const certificate = authority.issue([routing.host])
  const peersWith = async (certificate?: Certificate) => {
    const { running, absent } = await rig.peers([
      await nginx(rig.folder(), upstream.port, certificate),
      await haproxy(rig.folder(), upstream.port, certificate),
      await envoy(rig.folder(), upstream.port, certificate),
    ])
    for (const [name, reason] of absent) note(`${name} is absent: ${reason}`)
    return running
  }
  const own = (options?: Parameters<Rig['sluice']>[2]) => rig.sluice(upstream.port, 10, options)
  const direct = { name: 'direct', port: upstream.port }
  const load = { perSecond: 2_000, dial: dialPlain, scenario: scenarios.get }
  const overTls = [await own({ certificate }), ...(await peersWith(certificate))]
  const guardedTargets = [await own({ objects: guarded }), direct]
  return [
    { ...load, id: 'get', targets: [await own(), ...(await peersWith()), direct] },
    { ...load, id: 'tls', dial: dialTls, targets: overTls },
    { ...load, id: 'policies', scenario: withToken(), targets: guardedTargets },
  ]
}

async function modelLoads(rig: Rig): Promise<Load[]> {
  const vendor = rig.use(await startVendorUpstream())
  const models = await rig.proxy(startModels(rig.folder(), vendor.port))
  const load = { dial: dialPlain, targets: [models, { name: 'direct', port: vendor.port }] }
  const stream = chat(paths.ai, { stream: true })
  return [
    { ...load, id: 'chat', perSecond: 1_000, scenario: chat(paths.ai), addedAtMost: 1 },
    { ...load, id: 'stream', perSecond: 50, scenario: stream },
  ]
}

/** Calls of tools; the session of a target serves all of its connections. */
async function mcpLoad(rig: Rig): Promise<Load> {
  const upstream = rig.use(await startMcpBenchUpstream({ tools: 50 }))
  const own = await rig.proxy(startMcpSluice(rig.folder(), [upstream.port]))
  const targets: Target[] = []
  for (const { name, port } of [own, { name: 'direct', port: upstream.port }]) {
    const client = await McpBenchClient.open(port, '/mcp')
    await client.initialize()
    targets.push({ name, port, request: client.call })
    client.close()
  }
  const scenario = { name: 'tools/call', request: Buffer.alloc(0), response: Buffer.alloc(0) }
  return { id: 'mcp', scenario, perSecond: 300, dial: dialPlain, targets, addedAtMost: 1 }
}

const fullLoad = 'full load'

/** Latencies of each round, by target. */
type Rounds = Readonly<Record<string, readonly (readonly number[])[]>>

async function measure(load: Load, rounds: number, seconds: number): Promise<Rounds> {
  const all: Record<string, number[][]> = {}
  const { scenario, perSecond, dial } = load
  const isStream = scenario.response === undefined
  const measured = (name: string, run: () => Promise<number[]>) => {
    const latencies: number[][] = []
    all[name] = latencies
    return [name, async () => latencies.push(await run())] as const
  }
  const candidates = load.targets.flatMap(({ name, port, request = scenario.request }) => {
    const loop = { port, request, seconds, dial, isStream }
    const atRate = measured(name, () => openLoop({ ...loop, perSecond }))
    if (name !== 'sluice' || !fullLoads.has(load.id)) return [atRate]
    return [atRate, measured(fullLoad, () => closedLoop(loop, connections))]
  })
  await interleave(rounds, Object.fromEntries(candidates))
  // The first round only warms up.
  for (const latencies of Object.values(all)) latencies.shift()
  return all
}

function rowsOf({ id, targets }: Load, rounds: Rounds): Row[] {
  const at = (name: string, share: number) =>
    (rounds[name] ?? []).map((latencies) => quantile(latencies, share))
  const [own = { name: 'sluice' }, ...others] = targets
  return quantiles.flatMap(([name, share]) => {
    const row = { unit: 'ms', own: at(own.name, share) }
    return others.map((other) => ({
      ...row,
      id: `proxy.tail.${id}.${name}.${other.name}`,
      peer: { name: other.name, samples: at(other.name, share) },
    }))
  })
}

/** How much later the gateway makes the slowest of a hundred requests. */
function addedRow({ id }: Load, { sluice = [], direct = [] }: Rounds, atMost: number): Row {
  const own = sluice.map(
    (latencies, round) => quantile(latencies, 0.99) - quantile(direct[round] ?? [], 0.99),
  )
  return { id: `proxy.tail.${id}.added.p99`, unit: 'ms', own, bound: { atMost } }
}

/** How much longer the slowest of a hundred requests takes than the median, under full load. */
function fullLoadRow({ id }: Load, { [fullLoad]: rounds = [] }: Rounds): Row {
  const at = (share: number) => rounds.map((latencies) => quantile(latencies, share))
  return {
    id: `proxy.tail.${id}.full-load.p99`,
    unit: 'ms',
    own: at(0.99),
    peer: { name: 'its median', samples: at(0.5) },
    bound: { atMost: 3 },
  }
}

export default function tail(context: BenchContext): Promise<Row[]> {
  const { rounds, quick, note } = context
  return withRig(context, async (rig) => {
    const loads = [...(await plainLoads(rig, note)), ...(await modelLoads(rig)), await mcpLoad(rig)]
    const rows: Row[] = []
    for (const load of loads) {
      const measured = await measure(load, rounds, quick ? 1 : 5)
      rows.push(...rowsOf(load, measured))
      if (load.addedAtMost !== undefined) rows.push(addedRow(load, measured, load.addedAtMost))
      if (fullLoads.has(load.id)) rows.push(fullLoadRow(load, measured))
    }
    return rows
  })
}
