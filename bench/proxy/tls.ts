/**
 * Claim: a GET of a client over TLS costs at most 1.15 times the CPU of nginx. HTTP/1.1 on connections
 * that are kept, so that handshakes are not in it; otherwise as in http1.ts. Handshakes have rows of
 * their own: full ones with a P-256 certificate and X25519, the same with ML-KEM-768 in the exchange
 * (against ours without), and sessions that are resumed with tickets; TLS 1.3.
 */
import { Authority } from '../../test/support/certificates.ts'
import { type BenchContext, interleave, type Row } from '../harness.ts'
import { check } from './cost.ts'
import { envoy } from './envoy-peer.ts'
import { type HandshakeKind, handshakeCost } from './handshakes.ts'
import { dialTls, routing, scenarios, startBenchUpstream } from './load.ts'
import { byName, haproxy, nginx, rowsAgainst } from './peers.ts'
import type { MeasuredProxy } from './process.ts'
import { withRig } from './rig.ts'
import { slicedCosts } from './slices.ts'

export default function tls(context: BenchContext): Promise<Row[]> {
  const { rounds, quick } = context
  return withRig(context, async (rig) => {
    const authority = new Authority()
    rig.use({ close: () => authority.dispose() })
    const upstream = rig.use(await startBenchUpstream())
    const certificate = authority.issue([routing.host])
    const own = await rig.sluice(upstream.port, 10, { certificate })
    const peers = await rig.peers([
      await nginx(rig.folder(), upstream.port, certificate),
      await haproxy(rig.folder(), upstream.port, certificate),
      await envoy(rig.folder(), upstream.port, certificate),
    ])
    const running = [own, ...peers.running]
    for (const proxy of running) await check(proxy, dialTls)
    const samples = await slicedCosts(running, {
      scenario: scenarios.get,
      rounds,
      seconds: quick ? 0.6 : 1.5,
      warmUpSeconds: quick ? 2 : 5,
      dial: dialTls,
    })
    const boundOf = (peer: string) => (peer === 'nginx' ? { atMost: 1.15 } : undefined)
    const shaken = await handshakes(running, rounds, quick ? 0.5 : 1.5)
    const handshakeRows = (['full', 'resumed'] as const).flatMap((kind) => {
      const costs = running.map(({ name }) => shaken[`${name} ${kind}`] ?? [])
      return rowsAgainst(peers, `proxy.tls.${kind}`, byName(running, costs), () => undefined)
    })
    return [
      ...rowsAgainst(peers, 'proxy.tls.get', byName(running, samples), boundOf),
      ...handshakeRows,
      {
        id: 'proxy.tls.hybrid.full',
        unit: 'µs',
        own: shaken['sluice hybrid'] ?? [],
        peer: { name: 'sluice, X25519 alone', samples: shaken['sluice full'] ?? [] },
      },
    ]
  })
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
