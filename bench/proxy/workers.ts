/**
 * Claim: with two workers a request costs at most 1.1 times what it costs with one, and the kernel
 * spreads connections over them, 35 to 65 % each. Both workers share the core of the proxy, so that
 * only what sharing costs is measured. The spread is that of their CPU time under 256 connections
 * that all do the same: each round opens new ones.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BenchContext, interleave, pinSelf, type Row } from '../harness.ts'
import { check, costOf } from './cost.ts'
import type { BenchUpstream } from './event-upstream.ts'
import { scenarios, startBenchUpstream, startLoad } from './load.ts'
import { loadCore, type MeasuredProxy } from './process.ts'
import { startSluice } from './sluice.ts'

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

export default async function workers({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const upstream = await startBenchUpstream()
  const running: MeasuredProxy[] = []
  const seconds = quick ? 0.5 : 1.5
  try {
    const one = await startSluice(folder, upstream.port, 10)
    running.push(one)
    const two = await startSluice(folder, upstream.port, 10, { workers: 2 })
    running.push(two)
    for (const proxy of running) {
      await check(proxy)
      await costOf(proxy, 'get', upstream, 3 * seconds)
    }
    const samples = await interleave(rounds, {
      one: () => costOf(one, 'get', upstream, seconds),
      two: () => costOf(two, 'get', upstream, seconds),
      spread: () => busierShare(two, upstream, seconds),
    })
    return [
      {
        id: 'proxy.http1.get.two-workers',
        unit: 'µs',
        own: samples.two,
        peer: { name: 'one worker', samples: samples.one },
        bound: { atMost: 1.1 },
      },
      {
        id: 'proxy.workers.busier-share',
        unit: '%',
        own: samples.spread,
        bound: { atMost: 65 },
        note: '50 is even',
      },
    ]
  } finally {
    for (const proxy of running) await proxy.stop()
    upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
