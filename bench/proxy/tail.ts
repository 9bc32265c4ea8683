/**
 * Claim: few requests wait long. Latency at a fixed rate that leaves the proxy half idle, from the moment
 * when a request was due: the median, p99, p99.9 and maximum of plain requests, over TLS, with policies, of
 * chats, and of the first events of streams. Peers and the upstream itself are measured in turn.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Authority } from '../../test/support/certificates.ts'
import { type BenchContext, interleave, pinSelf, quantile, type Row } from '../harness.ts'
import { chat, paths, startSluice as startModels } from '../llm/setup.ts'
import { startVendorUpstream } from '../llm/upstream.ts'
import { guarded, withToken } from '../policies.ts'
import type { BenchUpstream } from './event-upstream.ts'
import {
  type Dial,
  dialPlain,
  dialTls,
  routing,
  type Scenario,
  scenarios,
  startBenchUpstream,
} from './load.ts'
import { openLoop } from './open-loop.ts'
import { haproxy, nginx, type Peer } from './peers.ts'
import { loadCore, type MeasuredProxy, startProxyProcess } from './process.ts'
import { startSluice } from './sluice.ts'

interface Target {
  /** The name of the proxy; `direct` for the upstream itself. */
  readonly name: string
  readonly port: number
}

interface Load {
  readonly id: string
  readonly scenario: Scenario
  readonly perSecond: number
  readonly dial: Dial
  /** Ourselves first. */
  readonly targets: readonly Target[]
}

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
  readonly #upstreams: BenchUpstream[] = []
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

  async #peers(peers: readonly Peer[]): Promise<Target[]> {
    const targets: Target[] = []
    for (const peer of peers) {
      if ('absent' in peer) this.#context.note(`${peer.name} is absent: ${peer.absent}`)
      else {
        const { port } = await this.#own(startProxyProcess(peer.command))
        targets.push({ name: peer.name, port })
      }
    }
    return targets
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
    ])
    const tlsPeers = await this.#peers([await nginx(this.folder(), upstream.port, certificate)])
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
      },
      {
        ...plain,
        id: 'stream',
        perSecond: 50,
        scenario: chat(paths.ai, { stream: true }),
        targets: [models, directVendor],
      },
    ]
  }

  async stop(): Promise<void> {
    for (const proxy of this.#running) await proxy.stop()
    for (const upstream of this.#upstreams) upstream.close()
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true })
    this.#authority.dispose()
  }
}

/** Latencies of each round, by target. */
type Rounds = Readonly<Record<string, readonly (readonly number[])[]>>

async function measure(load: Load, rounds: number, seconds: number): Promise<Rounds> {
  const all: Record<string, number[][]> = {}
  const candidates = load.targets.map(({ name, port }) => {
    const latencies: number[][] = []
    all[name] = latencies
    const run = async () => {
      const { scenario, perSecond, dial } = load
      const isStream = scenario.response === undefined
      const { request } = scenario
      latencies.push(await openLoop({ port, request, perSecond, seconds, dial, isStream }))
      return latencies.length
    }
    return [name, run] as const
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

/** How much later the gateway makes the slowest of a hundred chats. */
function addedRow(rounds: Rounds): Row {
  const { sluice = [], direct = [] } = rounds
  const own = sluice.map(
    (latencies, round) => quantile(latencies, 0.99) - quantile(direct[round] ?? [], 0.99),
  )
  return { id: 'proxy.tail.chat.added.p99', unit: 'ms', own, bound: { atMost: 1 } }
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
      if (load.id === 'chat') rows.push(addedRow(measured))
    }
    return rows
  } finally {
    await setup.stop()
  }
}
