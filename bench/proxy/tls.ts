/**
 * Claim: a GET of a client over TLS costs at most 1.4 times the CPU of nginx. HTTP/1.1 on connections
 * that are kept, so that handshakes are not in it; otherwise as in http1.ts.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Authority } from '../../src/testing/certificates.ts'
import { type BenchContext, interleave, pinSelf, type Row } from '../harness.ts'
import { check, costOf } from './cost.ts'
import { dialTls, routing, startBenchUpstream } from './load.ts'
import { nginx } from './peers.ts'
import { loadCore, type MeasuredProxy, startProxyProcess } from './process.ts'
import { startSluice } from './sluice.ts'

export default async function tls({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const authority = new Authority()
  const upstream = await startBenchUpstream()
  const running: MeasuredProxy[] = []
  let absent: string | undefined
  try {
    const certificate = authority.issue([routing.host])
    running.push(await startSluice(folder, upstream.port, 10, { certificate }))
    const peer = await nginx(folder, upstream.port, certificate)
    if ('absent' in peer) absent = peer.absent
    else running.push(await startProxyProcess(peer.command))
    const cost = (proxy: MeasuredProxy, seconds: number) =>
      costOf(proxy, 'get', upstream, seconds, dialTls)
    for (const proxy of running) {
      await check(proxy, dialTls)
      await cost(proxy, quick ? 1 : 4)
    }
    const candidates = running.map(
      (proxy) => [proxy.name, () => cost(proxy, quick ? 0.5 : 1.5)] as const,
    )
    const samples = await interleave(rounds, Object.fromEntries(candidates))
    return [
      {
        id: 'proxy.tls.get.nginx',
        unit: 'µs',
        own: samples.sluice ?? [],
        peer: { name: 'nginx', samples: samples.nginx ?? [] },
        bound: { atMost: 1.4 },
        ...(absent && { note: `nginx is absent: ${absent}` }),
      },
    ]
  } finally {
    for (const proxy of running) await proxy.stop()
    upstream.close()
    authority.dispose()
    rmSync(folder, { recursive: true, force: true })
  }
}
