/** Claim: a request costs with 10,000 routes at most 1.1 times what it costs with 10. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BenchContext, pinSelf, type Row } from '../harness.ts'
import { check } from './cost.ts'
import { scenarios, startBenchUpstream } from './load.ts'
import { loadCore, type MeasuredProxy } from './process.ts'
import { slicedCosts } from './slices.ts'
import { startSluice } from './sluice.ts'

export default async function routes({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const upstream = await startBenchUpstream()
  const running: MeasuredProxy[] = []
  const many = 10_000
  try {
    running.push(await startSluice(folder, upstream.port, 10))
    running.push(await startSluice(folder, upstream.port, many))
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
  } finally {
    for (const proxy of running) await proxy.stop()
    upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
