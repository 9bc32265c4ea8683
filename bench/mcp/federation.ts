/**
 * Claims: a call through a federation of 10 targets takes at most 1.3 times the CPU of one through a single target; a
 * list of 1,024 tools by 32 targets, the most that a backend may have, takes 2 ms from the cache, and a search among 500 tools 1 ms.
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
import { slicedLoads } from '../proxy/slices.ts'
import { callsThrough } from './calls.ts'
import { McpBenchClient } from './client.ts'
import { startMcpSluice } from './sluice.ts'
import { type McpBenchUpstream, startMcpBenchUpstream, type UpstreamShape } from './upstream.ts'

type Started = Awaited<ReturnType<typeof startMcpSluice>>

/** Runs `measure` with servers behind a gateway of their own. */
async function withFederation<Result>(
  count: number,
  shape: UpstreamShape,
  settings: Readonly<Record<string, unknown>>,
  measure: (proxy: Started) => Promise<Result>,
): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const upstreams: McpBenchUpstream[] = []
  for (let n = 0; n < count; n++) upstreams.push(await startMcpBenchUpstream(shape))
  const ports = upstreams.map(({ port }) => port)
  const proxy = await startMcpSluice(folder, ports, settings)
  try {
    return await measure(proxy)
  } finally {
    await proxy.stop()
    for (const upstream of upstreams) upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** CPU of calls through 10 targets, and through one. */
const calls = ({ rounds, quick }: BenchContext): Promise<Row> =>
  withFederation(10, { tools: 50 }, {}, (several) =>
    withFederation(1, { tools: 50 }, {}, async (single) => {
      const loads = [
        await callsThrough(several, '/mcp', 'legacy', 'server-7_tool-1'),
        await callsThrough(single, '/mcp'),
      ]
      const [own = [], one = []] = await slicedLoads(loads, {
        rounds,
        seconds: quick ? 0.6 : 1.5,
        warmUpSeconds: quick ? 2 : 5,
      })
      return {
        id: 'mcp.federation.call.cpu',
        unit: 'µs',
        own,
        peer: { name: 'a single target', samples: one },
        bound: { atMost: 1.3 },
      }
    }),
  )

/** Requests before the first that counts: V8 compiles what runs often. */
const warmUp = 3_000

/** Median milliseconds of a request, one after the other. */
async function medianOf(client: McpBenchClient, bytes: Buffer, times: number): Promise<number> {
  const took: number[] = []
  for (let n = 0; n < times; n++) took.push(await milliseconds(() => client.send(bytes)))
  return median(took)
}

const cachedList = ({ rounds, quick }: BenchContext): Promise<Row> =>
  withFederation(32, { tools: 32, ttlMs: 3_600_000 }, {}, async (proxy) => {
    const client = await McpBenchClient.open(proxy.port, '/mcp')
    const { body } = await client.send(client.modernList)
    const listed = body.toString().split('"inputSchema"').length - 1
    if (listed !== 1_024) throw new Error(`the list has ${listed} tools`)
    const times = quick ? 50 : 200
    await medianOf(client, client.modernList, warmUp)
    const { own } = await interleave(rounds, {
      own: () => medianOf(client, client.modernList, times),
    })
    client.close()
    return { id: 'mcp.list.cached', unit: 'ms', own, bound: { atMost: 2 } }
  })

const search = ({ rounds, quick }: BenchContext): Promise<Row> =>
  withFederation(10, { tools: 50 }, { toolSearch: {} }, async (proxy) => {
    const client = await McpBenchClient.open(proxy.port, '/mcp')
    await client.initialize()
    const bytes = client.callOf('search_tools', { query: 'look something up in the catalogue' })
    const { body } = await client.send(bytes)
    if (!body.includes('inputSchema')) throw new Error(`nothing was found: ${body}`)
    const times = quick ? 50 : 200
    await medianOf(client, bytes, warmUp)
    const { own } = await interleave(rounds, { own: () => medianOf(client, bytes, times) })
    client.close()
    return {
      id: 'mcp.search',
      unit: 'ms',
      own,
      bound: { atMost: 1 },
      note: `a whole request after ${warmUp} others; every tool has all words of the query`,
    }
  })

export default async function federation(context: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) {
    context.note('nothing is pinned: taskset is missing, or there is one core only')
  }
  return [await calls(context), await cachedList(context), await search(context)]
}
