/**
 * Claim: with two workers a request costs at most 1.1 times what it costs with one, and the kernel
 * spreads connections over them, 35 to 65 % each. Both workers share the core of the proxy, so that
 * only what sharing costs is measured. The spread is that of their CPU time under 256 connections
 * that all do the same: each round opens new ones.
 */

import { type BenchContext, interleave, type Row } from '../harness.ts'
import { check } from './cost.ts'
import type { BenchUpstream } from './event-upstream.ts'
import { scenarios, startBenchUpstream, startLoad } from './load.ts'
import type { MeasuredProxy } from './process.ts'
import { withRig } from './rig.ts'
import { slicedCosts } from './slices.ts'

const spreadConnections = 256

/** How much of the work the busier one of two workers does, in percent. */
async function busierShare(
  proxy: MeasuredProxy,
  upstream: BenchUpstream,
  seconds: number,
): Promise<number> {
  const before = proxy.threadTimes()
  const load = startLoad(proxy.port, scenarios.get, spreadConnections)
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  const spent = [...proxy.threadTimes()].map(([thread, time]) => time - (before.get(thread) ?? 0))
  await load.stop()
  upstream.endStreams()
  const [most = 0, next = 0] = spent.sort((a, b) => b - a)
  return (100 * most) / (most + next)
}

export default function workers(context: BenchContext): Promise<Row[]> {
  const { rounds, quick } = context
  return withRig(context, async (rig) => {
    const upstream = rig.use(await startBenchUpstream())
    const one = await rig.sluice(upstream.port)
    const two = await rig.sluice(upstream.port, 10, { workers: 2 })
    for (const proxy of [one, two]) await check(proxy)
    const [withOne = [], withTwo = []] = await slicedCosts([one, two], {
      scenario: scenarios.get,
      rounds,
      seconds: quick ? 0.6 : 1.5,
      // Each of two workers gets half of it.
      warmUpSeconds: quick ? 3 : 6,
    })
    const { spread } = await interleave(rounds, {
      spread: () => busierShare(two, upstream, quick ? 0.5 : 1.5),
    })
    return [
      {
        id: 'proxy.http1.get.two-workers',
        unit: 'µs',
        own: withTwo,
        peer: { name: 'one worker', samples: withOne },
        bound: { atMost: 1.1 },
      },
      {
        id: 'proxy.workers.busier-share',
        unit: '%',
        own: spread,
        bound: { atMost: 65 },
        note: '50 is even',
      },
    ]
  })
}
