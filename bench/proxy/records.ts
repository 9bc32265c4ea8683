/**
 * Claim: a record of every decision costs at most 8 % of the CPU of a plain GET, and records of failed
 * requests only, which is the default, cost nothing. The gateways differ in `--record` alone.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BenchContext, pinSelf, type Row } from '../harness.ts'
import { check } from './cost.ts'
import { scenarios, startBenchUpstream } from './load.ts'
import { loadCore, type MeasuredProxy } from './process.ts'
import { slicedCosts } from './slices.ts'
import { startSluice } from './sluice.ts'

const bounds = { errors: 1.02, '10%': 1.03, all: 1.08 } as const

export default async function records({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const upstream = await startBenchUpstream()
  const running: MeasuredProxy[] = []
  const modes = Object.keys(bounds) as (keyof typeof bounds)[]
  try {
    for (const record of ['off', ...modes]) {
      running.push(await startSluice(folder, upstream.port, 10, { record }))
    }
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
  } finally {
    for (const proxy of running) await proxy.stop()
    upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
