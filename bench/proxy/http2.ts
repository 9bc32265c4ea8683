/**
 * Claim: a GET through HTTP/2 costs at most 0.75 times the CPU of nginx. Prior knowledge in plaintext,
 * 8 connections with 4 requests under way on each, and HTTP/1.1 to the upstream for both; otherwise
 * as in http1.ts.
 */

import { once } from 'node:events'
import { connect, type IncomingHttpHeaders } from 'node:http2'
import { type BenchContext, interleave, type Row } from '../harness.ts'
import { cpuPerResponse } from './cost.ts'
import { envoy } from './envoy-peer.ts'
import type { BenchUpstream } from './event-upstream.ts'
import { routing, scenarios, startBenchUpstream } from './load.ts'
import { startHttp2Load } from './load-http2.ts'
import { haproxy, nginx, rowsAgainst } from './peers.ts'
import type { MeasuredProxy } from './process.ts'
import { withRig } from './rig.ts'

const connections = 8
const streamsEach = 4

/** Every proxy must do the same before it is measured. */
async function check({ name, port }: MeasuredProxy): Promise<void> {
  const session = connect(`http://127.0.0.1:${port}`)
  const ask = async (team: string) => {
    const path = `${routing.path}get`
    const stream = session.request({
      ':path': path,
      ':authority': routing.host,
      [routing.header]: team,
    })
    const [head] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    stream.resume()
    return head
  }
  try {
    const served = await ask(routing.value)
    const refused = await ask('b')
    const isServed = Number(served[':status']) === 200 && served['x-served-by'] !== undefined
    if (isServed && Number(refused[':status']) === 404) return
    throw new Error(`${name} does not route as it should`)
  } finally {
    session.destroy()
  }
}

function costOf(proxy: MeasuredProxy, upstream: BenchUpstream, seconds: number): Promise<number> {
  const load = startHttp2Load(proxy.port, scenarios.get, connections, streamsEach)
  return cpuPerResponse(proxy, load, upstream, seconds)
}

export default function http2(context: BenchContext): Promise<Row[]> {
  const { rounds, quick, note } = context
  return withRig(context, async (rig) => {
    const upstream = rig.use(await startBenchUpstream())
    const own = await rig.sluice(upstream.port, 10, { policies: { http: { version: 'HTTP1' } } })
    const peers = await rig.peers([
      await nginx(rig.folder(), upstream.port, 'http2'),
      await haproxy(rig.folder(), upstream.port, 'http2'),
      await envoy(rig.folder(), upstream.port),
    ])
    const running = [own, ...peers.running]
    for (const proxy of running) await check(proxy)
    note(running.map(({ name, version }) => `${name} ${version}`).join(', '))
    for (const proxy of running) await costOf(proxy, upstream, quick ? 1 : 4)
    const candidates = running.map(
      (proxy) => [proxy.name, () => costOf(proxy, upstream, quick ? 0.5 : 1.5)] as const,
    )
    const samples = await interleave(rounds, Object.fromEntries(candidates))
    return rowsAgainst(peers, 'proxy.http2.get', samples, (peer) =>
      peer === 'nginx' ? { atMost: 0.75 } : undefined,
    )
  })
}
