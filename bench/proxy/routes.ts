/** Claim: a request costs with 10,000 routes at most 1.1 times what it costs with 10. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BenchContext, interleave, pinSelf, type Row } from '../harness.ts'
import { check, costOf } from './cost.ts'
import { startBenchUpstream } from './load.ts'
import { loadCore, type MeasuredProxy } from './process.ts'
import { startSluice } from './sluice.ts'

export default async function routes({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const upstream = await startBenchUpstream()
  const running: MeasuredProxy[] = []
  const seconds = quick ? 0.5 : 2
  const many = 10_000
  try {
    const few = await startSluice(folder, upstream.port, 10)
    running.push(few)
    const full = await startSluice(folder, upstream.port, many)
    running.push(full)
    for (const proxy of running) {
      await check(proxy)
      await costOf(proxy, 'get', upstream, 2 * seconds)
    }
    const samples = await interleave(rounds, {
      few: () => costOf(few, 'get', upstream, seconds),
      full: () => costOf(full, 'get', upstream, seconds),
    })
    return [
      {
        id: `proxy.http1.get.${many}-routes`,
        unit: 'µs',
        own: samples.full,
        peer: { name: 'the same with 10 routes', samples: samples.few },
        bound: { atMost: 1.1 },
      },
    ]
  } finally {
    for (const proxy of running) await proxy.stop()
    upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
