/**
 * Claim: HTTP/1.1 through `sluice run` costs about the CPU of nginx. Routing by host, path and
 * header, one response header set, access log and metrics on, for every proxy. The figure is user
 * and system time of the proxy's process per request (per event for streams), the proxy pinned to
 * one core, client and upstream on another, all proxies in turn in every round.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BenchContext, type Bound, pinSelf, type Row } from '../harness.ts'
import { check, costOf } from './cost.ts'
import type { BenchUpstream } from './event-upstream.ts'
import { type ScenarioName, scenarios, startBenchUpstream } from './load.ts'
import { findPeers, rowsAgainst, startPeers } from './peers.ts'
import { loadCore, type MeasuredProxy } from './process.ts'
import { slicedCosts } from './slices.ts'
import { startSluice } from './sluice.ts'

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
async function streamCosts(
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

export default async function http1({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const upstream = await startBenchUpstream()
  const running: MeasuredProxy[] = []
  try {
    running.push(await startSluice(folder, upstream.port, 10))
    const peers = await startPeers(await findPeers(folder, upstream.port))
    running.push(...peers.running)
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
      const named = running.map(({ name }, index) => [name, samples[index] ?? []] as const)
      const byName = Object.fromEntries(named)
      rows.push(...rowsAgainst(peers, `proxy.http1.${scenario}`, byName, boundsOf(scenario)))
    }
    return rows
  } finally {
    for (const proxy of running) await proxy.stop()
    upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
