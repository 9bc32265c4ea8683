/**
 * Claim: HTTP/1.1 through `sluice run` costs about the CPU of nginx. Routing by host, path and
 * header, one response header set, access log and metrics on, for every proxy. The figure is user
 * and system time of the proxy's process per request (per event for streams), the proxy pinned to
 * one core, client and upstream on another, all proxies in turn in every round.
 */
import type { BenchContext, Bound, Row } from '../harness.ts'
import { check, costOf } from './cost.ts'
import type { BenchUpstream } from './event-upstream.ts'
import { type ScenarioName, scenarios, startBenchUpstream } from './load.ts'
import { byName, findPeers, rowsAgainst } from './peers.ts'
import type { MeasuredProxy } from './process.ts'
import { withRig } from './rig.ts'
import { slicedCosts } from './slices.ts'

/** At most so many times nginx. */
export const againstNginx: Record<ScenarioName, Bound> = {
  get: { atMost: 1.05 },
  post: { atMost: 1.05 },
  large: { atMost: 1.05 },
  sse: { atMost: 1.15 },
}

const boundsOf = (scenario: ScenarioName) => (peer: string) => {
  if (peer === 'nginx') return againstNginx[scenario]
  const isFarBehind = peer === 'http-proxy' && (scenario === 'get' || scenario === 'post')
  return isFarBehind ? ({ atLeast: 7 } as const) : undefined
}

/** How long the streams of the upstream last: a turn is not much longer. */
const turnSeconds = 0.4

/** Streams cannot pause, so each turn opens new ones. A sample has several turns. */
export async function streamCosts(
  running: readonly MeasuredProxy[],
  upstream: BenchUpstream,
  rounds: number,
  quick: boolean,
): Promise<number[][]> {
  const turn = (proxy: MeasuredProxy, seconds: number) => costOf(proxy, 'sse', upstream, seconds)
  for (const proxy of running) await turn(proxy, quick ? 1 : 8)
  const samples = running.map((): number[] => [])
  for (let round = 0; round < rounds; round++) {
    const sums = running.map(() => 0)
    const turns = quick ? 2 : 6
    for (let at = 0; at < turns * running.length; at++) {
      const index = at % running.length
      const proxy = running[index]
      if (proxy !== undefined) sums[index] = (sums[index] ?? 0) + (await turn(proxy, turnSeconds))
    }
    samples.forEach((of, index) => {
      of.push((sums[index] ?? 0) / turns)
    })
  }
  return samples
}

export default function http1(context: BenchContext): Promise<Row[]> {
  const { rounds, quick, note } = context
  return withRig(context, async (rig) => {
    const upstream = rig.use(await startBenchUpstream())
    const own = await rig.sluice(upstream.port)
    const peers = await rig.peers(await findPeers(rig.folder(), upstream.port))
    const running = [own, ...peers.running]
    for (const proxy of running) await check(proxy)
    note(running.map(({ name, version }) => `${name} ${version}`).join(', '))
    const rows: Row[] = []
    for (const scenario of Object.keys(scenarios) as ScenarioName[]) {
      note(scenarios[scenario].name)
      const samples =
        scenario === 'sse'
          ? await streamCosts(running, upstream, rounds, quick)
          : await slicedCosts(running, {
              scenario: scenarios[scenario],
              rounds,
              seconds: quick ? 0.6 : 1.5,
              warmUpSeconds: quick ? 2 : 5,
            })
      const named = byName(running, samples)
      rows.push(...rowsAgainst(peers, `proxy.http1.${scenario}`, named, boundsOf(scenario)))
    }
    return rows
  })
}
