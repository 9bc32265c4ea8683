/**
 * Claims: a chat completion through the gateway is hardly later than without it, and a prompt of
 * 100,000 tokens does not hold up the streams of others. Latency at 1,000 requests a second, as the
 * difference to the direct way in the same round; gaps between the pieces of twenty streams, as the
 * difference between times with large prompts and without.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BenchContext, pinSelf, quantile, type Row } from '../harness.ts'
import { askOnce } from '../proxy/load.ts'
import { loadCore } from '../proxy/process.ts'
import { gapsOf, paced } from './paced.ts'
import { chat, paths, startSluice } from './setup.ts'
import { startVendorUpstream } from './upstream.ts'

const perSecond = 1_000
const streams = 20
/** About 100,000 tokens of English. */
const largeBytes = 450_000
const pauseMs = 100

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

export default async function delay({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const upstream = await startVendorUpstream()
  const sluice = await startSluice(folder, upstream.port)
  const seconds = quick ? 1 : 3
  const added = { p50: [] as number[], p99: [] as number[] }
  const held = { chat: [] as number[], count: [] as number[] }
  const small = chat(paths.ai).request
  const stream = chat(paths.ai, { stream: true }).request
  const large = {
    chat: chat(paths.ai, { bytes: largeBytes }).request,
    count: chat(paths.count, { bytes: largeBytes }).request,
  }
  /** The 99th percentile of gaps, with one large request after the other or with none. */
  const gapsWith = async (request: Buffer | undefined): Promise<number> => {
    const meanwhile = async () => {
      const until = performance.now() + seconds * 1000
      while (performance.now() < until) {
        if (request !== undefined) await askOnce(sluice.port, request)
        await pause(pauseMs)
      }
    }
    return quantile(await gapsOf(sluice.port, stream, streams, meanwhile), 0.99)
  }
  try {
    const warm = await paced(sluice.port, small, perSecond, quick ? 2 : 8)
    if (warm.length < perSecond) note('the machine is too busy for this rate: times say nothing')
    for (let round = 0; round < rounds; round++) {
      const direct = await paced(upstream.port, small, perSecond, seconds)
      const through = await paced(sluice.port, small, perSecond, seconds)
      added.p50.push(quantile(through, 0.5) - quantile(direct, 0.5))
      added.p99.push(quantile(through, 0.99) - quantile(direct, 0.99))
      const alone = await gapsWith(undefined)
      held.chat.push((await gapsWith(large.chat)) - alone)
      held.count.push((await gapsWith(large.count)) - alone)
    }
  } finally {
    await sluice.stop()
    upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
  const row = (id: string, own: readonly number[], atMost: number): Row => ({
    id,
    unit: 'ms',
    own,
    bound: { atMost },
    boundOf: 'value',
  })
  return [
    row('llm.latency.p50', added.p50, 0.35),
    row('llm.latency.p99', added.p99, 1),
    row('llm.large-prompt.chat', held.chat, 5),
    row('llm.large-prompt.count', held.count, 5),
  ]
}
