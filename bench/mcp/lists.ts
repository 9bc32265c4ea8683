/**
 * Claim: a list over 32 targets of 50 tools each takes at most 1.5 times as long as the slowest of
 * them alone, and 5 ms. Targets take from 1 to 32 ms.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type BenchContext,
  interleave,
  median,
  milliseconds,
  pinSelf,
  type Row,
} from '../harness.ts'
import { loadCore } from '../proxy/process.ts'
import { McpBenchClient } from './client.ts'
import { startMcpSluice } from './sluice.ts'
import { startMcpBenchUpstream } from './upstream.ts'

const targets = 32
const tools = 50

export default async function lists({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const upstreams = await Promise.all(
    Array.from({ length: targets }, (_, n) => startMcpBenchUpstream({ tools, delayMs: n + 1 })),
  )
  const proxy = await startMcpSluice(
    folder,
    upstreams.map(({ port }) => port),
  )
  try {
    const all = await McpBenchClient.open(proxy.port, '/mcp')
    const slowest = await McpBenchClient.open(upstreams.at(-1)?.port ?? 0, '/mcp')
    for (const client of [all, slowest]) await client.initialize()
    const { body } = await all.send(all.list)
    const listed = body.toString().split('"inputSchema"').length - 1
    if (listed !== targets * tools) throw new Error(`the list has ${listed} tools`)
    const times = quick ? 10 : 30
    const medianOf = async (client: McpBenchClient): Promise<number> => {
      const bytes = client.list
      const took: number[] = []
      for (let n = 0; n < times; n++) took.push(await milliseconds(() => client.send(bytes)))
      return median(took)
    }
    const found = await interleave(rounds, {
      all: () => medianOf(all),
      slowest: () => medianOf(slowest),
    })
    for (const client of [all, slowest]) client.close()
    return [
      {
        id: 'mcp.list.beyond',
        unit: 'ms',
        own: found.all.map((one, at) => one - 1.5 * (found.slowest[at] ?? Number.NaN)),
        bound: { atMost: 5 },
        note: `${median(found.all).toFixed(1)} ms for all, ${median(found.slowest).toFixed(1)} ms for the slowest alone`,
      },
    ]
  } finally {
    await proxy.stop()
    for (const upstream of upstreams) upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
