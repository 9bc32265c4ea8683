/**
 * Claim: the ratio to nginx does not depend on how busy the proxy is. CPU time of a GET with 1 to 1,024 connections
 * that send at once, and of responses of 0 B to 1 MB with 32 of them; otherwise as in http1.ts. Without bounds: the
 * rows show at which load another row would give another ratio.
 */
import type { BenchContext, Row } from '../harness.ts'
import { check } from './cost.ts'
import { envoy } from './envoy-peer.ts'
import { getOfSize, type Scenario, scenarios, startBenchUpstream } from './load.ts'
import { byName, nginx, rowsAgainst } from './peers.ts'
import { withRig } from './rig.ts'
import { slicedCosts } from './slices.ts'

const loads = [1, 4, 16, 64, 256, 1_024]
const sizes = [0, 1_024, 16_384, 65_536, 262_144, 1_048_576]

export default function sweep(context: BenchContext): Promise<Row[]> {
  const { rounds, quick, note } = context
  const bodies = sizes.map((bytes) => getOfSize(bytes))
  return withRig(context, async (rig) => {
    const upstream = rig.use(await startBenchUpstream(bodies))
    const own = await rig.sluice(upstream.port)
    const peers = await rig.peers([
      await nginx(rig.folder(), upstream.port),
      await envoy(rig.folder(), upstream.port),
    ])
    const running = [own, ...peers.running]
    for (const proxy of running) await check(proxy)
    const rowsOf = async (id: string, scenario: Scenario, connections?: number) => {
      note(id)
      const samples = await slicedCosts(running, {
        scenario,
        rounds,
        seconds: quick ? 0.6 : 1.5,
        warmUpSeconds: quick ? 1 : 3,
        ...(connections !== undefined && { connections }),
      })
      const named = byName(running, samples)
      return rowsAgainst(peers, `proxy.sweep.${id}`, named, () => undefined)
    }
    const rows: Row[] = []
    for (const connections of loads) {
      rows.push(...(await rowsOf(`connections-${connections}`, scenarios.get, connections)))
    }
    for (const [index, bytes] of sizes.entries()) {
      rows.push(...(await rowsOf(`bytes-${bytes}`, bodies[index] ?? scenarios.get)))
    }
    return rows
  })
}
