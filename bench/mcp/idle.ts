/**
 * Claim: an idle session costs at most 3 kB: the growth of resident memory over sessions that were
 * begun, have had one tool called, and are kept. The first 5,000 are not counted: they make the heap
 * as large as the work itself needs it, so that what grows after is what sessions keep.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type BenchContext, pinSelf, type Row } from '../harness.ts'
import { loadCore, type MeasuredProxy } from '../proxy/process.ts'
import { McpBenchClient } from './client.ts'
import { startMcpSluice } from './sluice.ts'
import { startMcpBenchUpstream } from './upstream.ts'

const atOnce = 25

/** Sessions over a few connections, which all of them share one after the other. */
async function begin({ port }: MeasuredProxy, count: number): Promise<void> {
  const clients = await Promise.all(
    Array.from({ length: atOnce }, () => McpBenchClient.open(port, '/mcp')),
  )
  await Promise.all(
    clients.map(async (client) => {
      for (let n = 0; n < count / atOnce; n++) {
        client.session = undefined
        await client.initialize()
        await client.send(client.call)
      }
      client.close()
    }),
  )
}

export default async function idle({ quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const count = quick ? 5_000 : 15_000
  const own: number[] = []
  for (let round = 0; round < (quick ? 1 : 3); round++) {
    // A process of its own each round: memory that was freed once is not taken again.
    const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
    const upstream = await startMcpBenchUpstream({ tools: 50 })
    const proxy = await startMcpSluice(folder, [upstream.port])
    try {
      await begin(proxy, 5_000)
      await delay(500)
      const before = proxy.residentBytes()
      await begin(proxy, count)
      await delay(1_500)
      own.push((proxy.residentBytes() - before) / 1024 / count)
    } finally {
      await proxy.stop()
      upstream.close()
      rmSync(folder, { recursive: true, force: true })
    }
  }
  return [{ id: 'mcp.idle', unit: 'kB', own, bound: { atMost: 3 } }]
}
