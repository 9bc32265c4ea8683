/**
 * Claim: to look into a chat completion costs little. CPU of the proxy's process per request with a
 * prompt of 1 KB, of a stored answer, and per event of a stream, against the plain proxy of the same process and against
 * another gateway for models; and what five builtins add to an answer and to an event. Client and
 * upstream are on another core, and all take turns in every round.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BenchContext, interleave, pinSelf, type Row } from '../harness.ts'
import { cpuPer } from '../proxy/cost.ts'
import type { BenchUpstream } from '../proxy/event-upstream.ts'
import { askOnce, type Scenario, startLoad } from '../proxy/load.ts'
import { loadCore, type MeasuredProxy } from '../proxy/process.ts'
import {
  chat,
  converse,
  generate,
  get,
  paths,
  portkeyHeaders,
  startPortkey,
  startSluice,
} from './setup.ts'
import { startVendorUpstream } from './upstream.ts'

const connections = 32

interface Measured {
  readonly proxy: MeasuredProxy
  readonly scenario: Scenario
}

async function check({ proxy, scenario }: Measured): Promise<void> {
  const head = await askOnce(proxy.port, scenario.request)
  if (head.startsWith('HTTP/1.1 200')) return
  throw new Error(`${proxy.name} does not serve ${scenario.name}:\n${head}`)
}

function costOf({ proxy, scenario }: Measured, upstream: BenchUpstream, seconds: number) {
  const load = startLoad(proxy.port, scenario, connections)
  const done = scenario.response === undefined ? upstream.events : load.responses
  return cpuPer(done, proxy, load, upstream, seconds)
}

type Samples = Readonly<Record<string, number[]>>

function rowsOf(samples: Samples, absent: string | undefined): Row[] {
  const { plain = [], ai = [], checked = [], portkey = [] } = samples
  const { cached = [], fetched = [] } = samples
  const { sse = [], stream = [], guarded = [], generated = [], conversed = [] } = samples
  const proxy = { name: 'plain proxy', samples: plain }
  const events = { name: 'plain proxy', samples: sse }
  const relayed = { name: 'a relayed event of a model', samples: stream }
  const unguarded = { name: 'without guards', samples: ai }
  const other = { name: '@portkey-ai/gateway', samples: portkey }
  const completion = { name: 'a chat completion', samples: ai }
  const unit = 'µs'
  return [
    { id: 'llm.chat.plain', unit, own: ai, peer: proxy, bound: { atMost: 4 } },
    {
      id: 'llm.chat.portkey',
      unit,
      own: ai,
      peer: other,
      bound: { atLeast: 20 },
      ...(absent !== undefined && { note: `it is absent: ${absent}` }),
    },
    {
      id: 'llm.chat.cached',
      unit,
      own: cached,
      peer: { name: 'a plain GET', samples: fetched },
      bound: { atMost: 1.2 },
    },
    { id: 'llm.chat.gemini', unit, own: generated, peer: completion, bound: { atMost: 1.2 } },
    { id: 'llm.chat.converse', unit, own: conversed, peer: completion, bound: { atMost: 1.2 } },
    { id: 'llm.stream.plain', unit, own: stream, peer: events, bound: { atMost: 2 } },
    { id: 'llm.stream.guarded', unit, own: guarded, peer: relayed, bound: { atMost: 1.3 } },
    { id: 'llm.chat.guarded', unit, own: checked, peer: unguarded, bound: { atMost: 1.15 } },
  ]
}

export default async function chatBench({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const upstream = await startVendorUpstream()
  const running: MeasuredProxy[] = []
  let absent: string | undefined
  try {
    const sluice = await startSluice(folder, upstream.port)
    running.push(sluice)
    const ours = (scenario: Scenario): Measured => ({ proxy: sluice, scenario })
    const measured: Record<string, Measured> = {
      plain: ours(chat(paths.plain)),
      ai: ours(chat(paths.ai)),
      cached: ours(chat(paths.cached)),
      fetched: ours(get(paths.plain)),
      checked: ours(chat(paths.guarded)),
      generated: ours(generate(paths.generate)),
      conversed: ours(converse(paths.converse)),
      sse: ours(chat(paths.plain, { stream: true })),
      stream: ours(chat(paths.ai, { stream: true })),
      guarded: ours(chat(paths.guarded, { stream: true })),
    }
    try {
      const proxy = await startPortkey()
      running.push(proxy)
      const headers = portkeyHeaders(upstream.port)
      measured.portkey = { proxy, scenario: chat('/v1/chat/completions', { headers }) }
    } catch (error) {
      absent = (error as Error).message.split('\n')[0]
    }
    for (const one of Object.values(measured)) await check(one)
    upstream.endStreams()
    for (const one of Object.values(measured)) await costOf(one, upstream, quick ? 1 : 4)
    const seconds = quick ? 0.7 : 2
    const candidates = Object.fromEntries(
      Object.entries(measured).map(([name, one]) => [name, () => costOf(one, upstream, seconds)]),
    )
    return rowsOf(await interleave(rounds, candidates), absent)
  } finally {
    for (const proxy of running) await proxy.stop()
    upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
