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
import { findPeers } from './peers.ts'
import { loadCore, type MeasuredProxy, type ProxyCommand, startProxyProcess } from './process.ts'
import { slicedCosts } from './slices.ts'
import { startSluice } from './sluice.ts'

/** At most so many times nginx. */
const againstNginx: Record<ScenarioName, Bound> = {
  get: { atMost: 1.05 },
  post: { atMost: 1.05 },
  large: { atMost: 1.05 },
  sse: { atMost: 1.15 },
}

function rowsOf(
  scenario: ScenarioName,
  samples: Readonly<Record<string, number[]>>,
  absent: ReadonlyMap<string, string>,
): Row[] {
  const peers = [...Object.keys(samples).filter((name) => name !== 'sluice'), ...absent.keys()]
  return peers.map((name): Row => {
    const isFarBehind = name === 'http-proxy' && (scenario === 'get' || scenario === 'post')
    const bound: Bound | undefined =
      name === 'nginx' ? againstNginx[scenario] : isFarBehind ? { atLeast: 7 } : undefined
    const reason = absent.get(name)
    return {
      id: `proxy.http1.${scenario}.${name}`,
      unit: 'µs',
      own: samples.sluice ?? [],
      peer: { name, samples: samples[name] ?? [] },
      ...(bound && { bound }),
      ...(reason && { note: `${name} is absent: ${reason}` }),
    }
  })
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
  const absent = new Map<string, string>()
  const startPeer = async (command: ProxyCommand) => {
    try {
      running.push(await startProxyProcess(command))
    } catch (error) {
      absent.set(command.name, (error as Error).message)
    }
  }
  try {
    running.push(await startSluice(folder, upstream.port, 10))
    for (const peer of await findPeers(folder, upstream.port)) {
      if ('absent' in peer) absent.set(peer.name, peer.absent)
      else await startPeer(peer.command)
    }
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
      rows.push(...rowsOf(scenario, Object.fromEntries(named), absent))
    }
    return rows
  } finally {
    for (const proxy of running) await proxy.stop()
    upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
