/**
 * Claim: HTTP/1.1 through `sluice run` costs about the CPU of nginx. Routing by host, path and
 * header, one response header set, access log and metrics on, for every proxy. The figure is user
 * and system time of the proxy's process per request (per event for streams), the proxy pinned to
 * one core, client and upstream on another, all proxies in turn in every round.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../src/testing/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  staticBackend,
  toBackend,
} from '../../src/testing/manifests.ts'
import { type BenchContext, type Bound, interleave, pinSelf, type Row } from '../harness.ts'
import {
  askOnce,
  type BenchUpstream,
  routing,
  type ScenarioName,
  scenarios,
  startBenchUpstream,
  startLoad,
} from './load.ts'
import { findPeers } from './peers.ts'
import { loadCore, type MeasuredProxy, startProxyProcess } from './process.ts'

const connections = 32

/** At most so many times nginx. */
const againstNginx: Record<ScenarioName, Bound> = {
  get: { atMost: 1.25 },
  post: { atMost: 1.25 },
  large: { atMost: 1.3 },
  sse: { atMost: 1.5 },
}

const launcher = join(import.meta.dirname, '..', '..', 'bin', 'sluice')

/** Ourselves, as a user starts us. Ten other routes stand beside the measured one. */
async function startSluice(folder: string, upstream: number): Promise<MeasuredProxy> {
  const manifests = join(folder, 'manifests')
  const port = await freePort()
  mkdirSync(manifests)
  const match = {
    path: { type: 'PathPrefix', value: routing.path },
    headers: [{ name: routing.header, value: routing.value }],
  }
  const header = { name: 'x-served-by', value: 'sluice' }
  const route = httpRoute('measured', {
    hostnames: [routing.host],
    rules: [
      {
        matches: [match],
        filters: [{ type: 'ResponseHeaderModifier', responseHeaderModifier: { set: [header] } }],
        backendRefs: [toBackend('shop')],
      },
    ],
  })
  const others = Array.from({ length: 10 }, (_, n) =>
    httpRoute(`other-${n}`, {
      hostnames: [`other-${n}.example.com`],
      rules: [{ backendRefs: [toBackend('shop')] }],
    }),
  )
  const objects = [gateway(port), staticBackend('shop', upstream), route, ...others]
  writeFileSync(join(manifests, 'all.yaml'), manifest(...objects))
  const own = ['--admin-address', 'off', '--stats-address', '127.0.0.1:0']
  const more = ['--readiness-address', '127.0.0.1:0', '--bind-address', '127.0.0.1']
  const command = [
    launcher,
    'run',
    '-f',
    manifests,
    '--ephemeral',
    '--workers',
    '1',
    ...own,
    ...more,
  ]
  return startProxyProcess({ name: 'sluice', version: '', port, command })
}

/** Every proxy must do the same before it is measured. */
async function check({ name, port }: MeasuredProxy): Promise<void> {
  const head = await askOnce(port, scenarios.get.request)
  const isServed = head.startsWith('HTTP/1.1 200') && /x-served-by: /i.test(head)
  const other = scenarios.get.request.toString('latin1').replace('x-team: a', 'x-team: b')
  const refused = await askOnce(port, Buffer.from(other, 'latin1'))
  if (isServed && refused.startsWith('HTTP/1.1 404')) return
  throw new Error(`${name} does not route as it should:\n${head}\n\n${refused}`)
}

/** Microseconds of the proxy's CPU per response, or per event of a stream. */
async function costOf(
  proxy: MeasuredProxy,
  scenario: ScenarioName,
  upstream: BenchUpstream,
  seconds: number,
): Promise<number> {
  const load = startLoad(proxy.port, scenarios[scenario], connections)
  const done = scenario === 'sse' ? upstream.events : load.responses
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
  await pause(200)
  const before = { cpu: proxy.cpuTime(), done: done() }
  await pause(seconds * 1000)
  const spent = proxy.cpuTime() - before.cpu
  const count = done() - before.done
  await load.stop()
  return spent / 1000 / count
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

export default async function http1({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const upstream = await startBenchUpstream()
  const running: MeasuredProxy[] = []
  const absent = new Map<string, string>()
  try {
    running.push(await startSluice(folder, upstream.port))
    for (const peer of await findPeers(folder, upstream.port)) {
      if ('absent' in peer) absent.set(peer.name, peer.absent)
      else running.push(await startProxyProcess(peer.command))
    }
    for (const proxy of running) await check(proxy)
    note(running.map(({ name, version }) => `${name} ${version}`).join(', '))
    const rows: Row[] = []
    for (const scenario of Object.keys(scenarios) as ScenarioName[]) {
      note(scenarios[scenario].name)
      // Compilers need some ten thousand requests before they are done.
      for (const proxy of running) await costOf(proxy, scenario, upstream, quick ? 1 : 4)
      const candidates = Object.fromEntries(
        running.map((proxy) => [
          proxy.name,
          () => costOf(proxy, scenario, upstream, quick ? 0.5 : 2),
        ]),
      )
      rows.push(...rowsOf(scenario, await interleave(rounds, candidates), absent))
    }
    return rows
  } finally {
    for (const proxy of running) await proxy.stop()
    upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
