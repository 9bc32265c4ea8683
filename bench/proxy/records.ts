/**
 * Claim: a record of every decision costs at most 8 % of the CPU of a plain GET, and a sample, which is the default,
 * and records of failed requests only cost nothing. The gateways differ in `--record` alone.
 */
import type { BenchContext, Row } from '../harness.ts'
import { check } from './cost.ts'
import { scenarios, startBenchUpstream } from './load.ts'
import type { MeasuredProxy } from './process.ts'
import { withRig } from './rig.ts'
import { slicedCosts } from './slices.ts'

const bounds = { errors: 1.02, sample: 1.02, '10%': 1.03, all: 1.08 } as const

export default function records(context: BenchContext): Promise<Row[]> {
  const { rounds, quick } = context
  const modes = Object.keys(bounds) as (keyof typeof bounds)[]
  return withRig(context, async (rig) => {
    const { port } = rig.use(await startBenchUpstream())
    const running: MeasuredProxy[] = []
    for (const record of ['off', ...modes]) running.push(await rig.sluice(port, 10, { record }))
    for (const proxy of running) await check(proxy)
    const [off = [], ...samples] = await slicedCosts(running, {
      scenario: scenarios.get,
      rounds,
      seconds: quick ? 0.6 : 1.5,
      warmUpSeconds: quick ? 2 : 5,
    })
    return modes.map((mode, index) => ({
      id: `proxy.records.${mode}`,
      unit: 'µs',
      own: samples[index] ?? [],
      peer: { name: 'off', samples: off },
      bound: { atMost: bounds[mode] },
    }))
  })
}
