/**
 * Claim: a GET of a client over TLS costs at most 1.15 times the CPU of nginx. HTTP/1.1 on connections
 * that are kept, so that handshakes are not in it; otherwise as in http1.ts. Handshakes have rows of
 * their own: full ones with a P-256 certificate and X25519, the same with ML-KEM-768 in the exchange
 * (against ours without), and sessions that are taken up by tickets; TLS 1.3.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Authority } from '../../test/support/certificates.ts'
import { type BenchContext, interleave, pinSelf, type Row } from '../harness.ts'
import { check } from './cost.ts'
import { envoy } from './envoy-peer.ts'
import { type HandshakeKind, handshakeCost } from './handshakes.ts'
import { dialTls, routing, scenarios, startBenchUpstream } from './load.ts'
import { haproxy, nginx, rowsAgainst, startPeers } from './peers.ts'
import { loadCore, type MeasuredProxy } from './process.ts'
import { slicedCosts } from './slices.ts'
import { startSluice } from './sluice.ts'

export default async function tls({ rounds, quick, ...context }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore))
    context.note('nothing is pinned: taskset is missing, or there is one core only')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const authority = new Authority()
  const upstream = await startBenchUpstream()
  const running: MeasuredProxy[] = []
  try {
    const certificate = authority.issue([routing.host])
    running.push(await startSluice(folder, upstream.port, 10, { certificate }))
    const peers = await startPeers([
      await nginx(folder, upstream.port, certificate),
      await haproxy(folder, upstream.port, certificate),
      await envoy(folder, upstream.port, certificate),
    ])
    running.push(...peers.running)
    for (const proxy of running) await check(proxy, dialTls)
    const samples = await slicedCosts(running, {
      scenario: scenarios.get,
      rounds,
      seconds: quick ? 0.6 : 1.5,
      warmUpSeconds: quick ? 2 : 5,
      dial: dialTls,
    })
    const byName = Object.fromEntries(
      running.map(({ name }, index) => [name, samples[index] ?? []] as const),
    )
    const shaken = await handshakes(running, rounds, quick ? 0.5 : 1.5)
    const handshakeRows = (['full', 'resumed'] as const).flatMap((kind) => {
      const costs = running.map(({ name }) => [name, shaken[`${name} ${kind}`] ?? []] as const)
      return rowsAgainst(peers, `proxy.tls.${kind}`, Object.fromEntries(costs), () => undefined)
    })
    return [
      ...rowsAgainst(peers, 'proxy.tls.get', byName, (peer) =>
        peer === 'nginx' ? { atMost: 1.15 } : undefined,
      ),
      ...handshakeRows,
      {
        id: 'proxy.tls.hybrid.full',
        unit: 'µs',
        own: shaken['sluice hybrid'] ?? [],
        peer: { name: 'sluice, X25519 alone', samples: shaken['sluice full'] ?? [] },
      },
    ]
  } finally {
    for (const proxy of running) await proxy.stop()
    upstream.close()
    authority.dispose()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Microseconds of each proxy's CPU for each kind of handshake, interleaved. */
async function handshakes(
  running: readonly MeasuredProxy[],
  rounds: number,
  seconds: number,
): Promise<Record<string, number[]>> {
  const kinds: readonly HandshakeKind[] = ['full', 'hybrid', 'resumed']
  const candidates = running.flatMap((proxy) =>
    kinds
      .filter((kind) => kind !== 'hybrid' || proxy.name === 'sluice')
      .map((kind) => [`${proxy.name} ${kind}`, () => handshakeCost(proxy, kind, seconds)] as const),
  )
  return interleave(rounds, Object.fromEntries(candidates))
}
