/**
 * Claim: to know what MCP clients do costs little. A call of a tool, in either era, takes at most three times the CPU
 * of the same bytes through the plain proxy. At 500 calls a second the gateway adds at most 0.2 milliseconds to the
 * median, and at 300 calls a second 1 millisecond to the 99th percentile. One target, one worker; proxy and load on a core each.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type BenchContext, interleave, median, pinSelf, quantile, type Row } from '../harness.ts'
import { loadCore, type MeasuredProxy } from '../proxy/process.ts'
import { type SlicedLoad, slicedLoads } from '../proxy/slices.ts'
import { McpBenchClient } from './client.ts'
import { startMcpSluice } from './sluice.ts'
import { startMcpBenchUpstream } from './upstream.ts'

const connections = 32
const callsPerSecond = 500
const tailCallsPerSecond = 300

/** Clients with a session each. */
async function openAll(port: number, path: string, count: number): Promise<McpBenchClient[]> {
  const clients = await Promise.all(
    Array.from({ length: count }, () => McpBenchClient.open(port, path)),
  )
  await Promise.all(clients.map((client) => client.initialize()))
  return clients
}

/** Calls through a proxy; every connection sends the next one at once. */
export async function callsThrough(
  proxy: MeasuredProxy,
  path: string,
  era: 'legacy' | 'modern' = 'legacy',
  tool?: string,
): Promise<SlicedLoad> {
  const clients = await openAll(proxy.port, path, connections)
  let calls = 0
  let isPaused = false
  const loop = async (client: McpBenchClient) => {
    const legacy = tool === undefined ? client.call : client.callOf(tool)
    const bytes = era === 'modern' ? client.modernCall : legacy
    while (!isPaused) {
      await client.send(bytes)
      calls++
    }
  }
  let loops = clients.map(loop)
  const pause = async () => {
    isPaused = true
    await Promise.all(loops)
  }
  const resume = () => {
    isPaused = false
    loops = clients.map(loop)
  }
  const stop = async () => {
    await pause()
    for (const client of clients) client.close()
  }
  return { proxy, load: { responses: () => calls, pause, resume, stop } }
}

/** Milliseconds of calls that come at a fixed rate. */
async function timesOfCalls(
  port: number,
  path: string,
  perSecond: number,
  seconds: number,
): Promise<number[]> {
  const clients = await openAll(port, path, 16)
  const free = clients.map((client) => ({ client, bytes: client.call }))
  const took: number[] = []
  const underWay = new Set<Promise<void>>()
  const begun = performance.now()
  let sent = 0
  while (performance.now() - begun < seconds * 1000) {
    const due = Math.floor(((performance.now() - begun) / 1000) * perSecond)
    for (; sent < due; sent++) {
      const one = free.pop()
      if (one === undefined) break
      const from = performance.now()
      const call = one.client.send(one.bytes).then(() => {
        took.push(performance.now() - from)
        free.push(one)
        underWay.delete(call)
      })
      underWay.add(call)
    }
    await delay(1)
  }
  await Promise.all(underWay)
  for (const client of clients) client.close()
  return took
}

export default async function calls({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const upstream = await startMcpBenchUpstream({ tools: 50 })
  const proxy = await startMcpSluice(folder, [upstream.port])
  const seconds = quick ? 0.5 : 1.5
  const medianOfCalls = async (port: number, path: string) =>
    median(await timesOfCalls(port, path, callsPerSecond, seconds))
  const tailOfCalls = async (port: number) =>
    quantile(await timesOfCalls(port, '/mcp', tailCallsPerSecond, quick ? 3 : 10), 0.99)
  try {
    const loads = [
      await callsThrough(proxy, '/mcp'),
      await callsThrough(proxy, '/mcp', 'modern'),
      await callsThrough(proxy, '/plain'),
      await callsThrough(proxy, '/plain', 'modern'),
    ]
    const [known = [], modern = [], plain = [], plainModern = []] = await slicedLoads(loads, {
      rounds,
      seconds: quick ? 0.6 : 1.5,
      warmUpSeconds: quick ? 2 : 5,
    })
    const latency = await interleave(rounds, {
      mcp: () => medianOfCalls(proxy.port, '/mcp'),
      direct: () => medianOfCalls(upstream.port, '/mcp'),
      // What the machine adds to any process in between, which is not what knowing MCP costs.
      plain: () => medianOfCalls(proxy.port, '/plain'),
    })
    const tails = await interleave(rounds, {
      mcp: () => tailOfCalls(proxy.port),
      direct: () => tailOfCalls(upstream.port),
    })
    return [
      {
        id: 'mcp.call.cpu',
        unit: 'µs',
        own: known,
        peer: { name: 'the plain proxy', samples: plain },
        bound: { atMost: 3 },
      },
      {
        id: 'mcp.call.modern.cpu',
        unit: 'µs',
        own: modern,
        peer: { name: 'the plain proxy', samples: plainModern },
        bound: { atMost: 3 },
      },
      {
        id: 'mcp.call.added',
        unit: 'ms',
        own: latency.mcp.map((one, at) => one - (latency.direct[at] ?? Number.NaN)),
        bound: { atMost: 0.2 },
        note: `median at ${callsPerSecond} calls/s; without the gateway ${median(latency.direct).toFixed(3)} ms, through the plain proxy ${median(latency.plain).toFixed(3)} ms`,
      },
      {
        id: 'mcp.call.p99',
        unit: 'ms',
        own: tails.mcp.map((one, n) => one - (tails.direct[n] ?? Number.NaN)),
        bound: { atMost: 1 },
        note: `99th percentile at ${tailCallsPerSecond} calls/s, added; without the gateway ${median(tails.direct).toFixed(3)} ms`,
      },
    ]
  } finally {
    await proxy.stop()
    upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
