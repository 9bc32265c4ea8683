/** Claim: a request costs with 10,000 routes at most 1.1 times what it costs with 10. */
import type { BenchContext, Row } from '../harness.ts'
import { check } from './cost.ts'
import { scenarios, startBenchUpstream } from './load.ts'
import { withRig } from './rig.ts'
import { slicedCosts } from './slices.ts'

export default function routes(context: BenchContext): Promise<Row[]> {
  const { rounds, quick } = context
  const many = 10_000
  return withRig(context, async (rig) => {
    const { port } = rig.use(await startBenchUpstream())
    const running = [await rig.sluice(port, 10), await rig.sluice(port, many)]
    for (const proxy of running) await check(proxy)
    const [withFew = [], withMany = []] = await slicedCosts(running, {
      scenario: scenarios.get,
      rounds,
      seconds: quick ? 0.6 : 2,
      warmUpSeconds: quick ? 2 : 5,
    })
    return [
      {
        id: `proxy.http1.get.${many}-routes`,
        unit: 'µs',
        own: withMany,
        peer: { name: 'the same with 10 routes', samples: withFew },
        bound: { atMost: 1.1 },
      },
    ]
  })
}
