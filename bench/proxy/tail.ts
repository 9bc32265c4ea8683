/**
 * Claim: few requests wait long. Latency at a fixed rate that leaves the proxy half idle, from the moment
 * when a request was due: the median, p99, p99.9 and maximum of plain requests, over TLS, with policies, of
 * chats, of calls of MCP tools, and of the first events of streams. Peers and the upstream itself are measured
 * in turn. Under full load, the p99 of the gateway is compared with its median.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Authority } from '../../test/support/certificates.ts'
import { type BenchContext, interleave, pinSelf, quantile, type Row } from '../harness.ts'
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
import { haproxy, nginx, type Peer, startPeers } from './peers.ts'
import { loadCore, type MeasuredProxy } from './process.ts'
import { startSluice } from './sluice.ts'

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

/** Starts what is measured, and stops and removes all of it at the end. */
class Setup {
  readonly #context: BenchContext
  readonly #running: MeasuredProxy[] = []
  readonly #folders: string[] = []
  readonly #upstreams: { close(): unknown }[] = []
  readonly #authority = new Authority()

  constructor(context: BenchContext) {
    this.#context = context
  }

  folder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
    this.#folders.push(folder)
    return folder
  }

  async #own(starting: Promise<MeasuredProxy>): Promise<Target> {
    const proxy = await starting
    this.#running.push(proxy)
    return { name: 'sluice', port: proxy.port }
  }

  async #peers(peers: readonly Peer[]): Promise<readonly Target[]> {
    const { running, absent } = await startPeers(peers)
    this.#running.push(...running)
    for (const [name, reason] of absent) this.#context.note(`${name} is absent: ${reason}`)
    return running
  }

  /** Calls of tools; the session of a target serves all of its connections. */
  async #mcp(): Promise<Load> {
    const upstream = await startMcpBenchUpstream({ tools: 50 })
    this.#upstreams.push(upstream)
    const own = await this.#own(startMcpSluice(this.folder(), [upstream.port]))
    const targets: Target[] = []
    for (const target of [own, { name: 'direct', port: upstream.port }]) {
      const client = await McpBenchClient.open(target.port, '/mcp')
      await client.initialize()
      targets.push({ ...target, request: client.call })
      client.close()
    }
    const scenario = { name: 'tools/call', request: Buffer.alloc(0), response: Buffer.alloc(0) }
    return { id: 'mcp', scenario, perSecond: 300, dial: dialPlain, targets, addedAtMost: 1 }
  }

  async loads(): Promise<Load[]> {
    const upstream = await startBenchUpstream()
    const vendor = await startVendorUpstream()
    this.#upstreams.push(upstream, vendor)
    const certificate = this.#authority.issue([routing.host])
    const own = (options?: Parameters<typeof startSluice>[3]) =>
      this.#own(startSluice(this.folder(), upstream.port, 10, options))
    const peers = await this.#peers([
      await nginx(this.folder(), upstream.port),
      await haproxy(this.folder(), upstream.port),
      await envoy(this.folder(), upstream.port),
    ])
    const tlsPeers = await this.#peers([
      await nginx(this.folder(), upstream.port, certificate),
      await haproxy(this.folder(), upstream.port, certificate),
      await envoy(this.folder(), upstream.port, certificate),
    ])
    const models = await this.#own(startModels(this.folder(), vendor.port))
    const direct = { name: 'direct', port: upstream.port }
    const directVendor = { name: 'direct', port: vendor.port }
    const { get } = scenarios
    const plain = { perSecond: 2_000, dial: dialPlain }
    return [
      { ...plain, id: 'get', scenario: get, targets: [await own(), ...peers, direct] },
      {
        ...plain,
        id: 'tls',
        scenario: get,
        dial: dialTls,
        targets: [await own({ certificate }), ...tlsPeers],
      },
      {
        ...plain,
        id: 'policies',
        scenario: withToken(),
        targets: [await own({ objects: guarded }), direct],
      },
      {
        ...plain,
        id: 'chat',
        perSecond: 1_000,
        scenario: chat(paths.ai),
        targets: [models, directVendor],
        addedAtMost: 1,
      },
      {
        ...plain,
        id: 'stream',
        perSecond: 50,
        scenario: chat(paths.ai, { stream: true }),
        targets: [models, directVendor],
      },
      await this.#mcp(),
    ]
  }

  async stop(): Promise<void> {
    for (const proxy of this.#running) await proxy.stop()
    for (const upstream of this.#upstreams) await upstream.close()
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true })
    this.#authority.dispose()
  }
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

export default async function tail(context: BenchContext): Promise<Row[]> {
  const { rounds, quick, note } = context
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const setup = new Setup(context)
  try {
    const rows: Row[] = []
    for (const load of await setup.loads()) {
      const measured = await measure(load, rounds, quick ? 1 : 5)
      rows.push(...rowsOf(load, measured))
      if (load.addedAtMost !== undefined) rows.push(addedRow(load, measured, load.addedAtMost))
      if (fullLoads.has(load.id)) rows.push(fullLoadRow(load, measured))
    }
    return rows
  } finally {
    await setup.stop()
  }
}
