/**
 * Claim: an idle HTTP/1.1 connection costs at most 8 kB without TLS: the growth of resident memory over
 * 10,000 connections, each of which has had one request answered and is kept open. The same with TLS.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Authority } from '../../test/support/certificates.ts'
import { type BenchContext, pinSelf, type Row } from '../harness.ts'
import { check } from './cost.ts'
import {
  type Dial,
  dialPlain,
  dialTls,
  routing,
  scenarios,
  startBenchUpstream,
  startLoad,
} from './load.ts'
import { findPeers, nginx } from './peers.ts'
import { loadCore, type MeasuredProxy, startProxyProcess } from './process.ts'
import { startSluice } from './sluice.ts'

const openedAtOnce = 50
/** Until heaps have the size that requests give them, which is no cost of connections. */
const warmUpMs = 3_000

/** Opens a connection, has one request answered and leaves it alone. */
function openIdle(port: number, dial: Dial): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = dial(port)
    socket.once('connect', () => socket.write(scenarios.get.request))
    socket.once('error', reject)
    socket.once('data', () => resolve(socket))
  })
}

/** Kilobytes a connection. */
async function costOfIdle(proxy: MeasuredProxy, count: number, dial: Dial): Promise<number> {
  const load = startLoad(proxy.port, scenarios.get, openedAtOnce, dial)
  await delay(warmUpMs)
  await load.stop()
  const openBatch = () =>
    Promise.all(Array.from({ length: openedAtOnce }, () => openIdle(proxy.port, dial)))
  const warm = await openBatch()
  for (const socket of warm) socket.destroy()
  await delay(500)
  const before = proxy.residentBytes()
  const open: Socket[] = []
  while (open.length < count) open.push(...(await openBatch()))
  await delay(1_500)
  const after = proxy.residentBytes()
  const closed = open.filter((socket) => socket.destroyed).length
  for (const socket of open) socket.destroy()
  if (closed > 0) throw new Error(`${proxy.name} closed ${closed} idle connections`)
  return (after - before) / 1024 / count
}

const ownIds = new Set(['proxy.idle', 'proxy.idle.tls'])

export default async function idle({ quick, note }: BenchContext): Promise<Row[]> {
  pinSelf(loadCore)
  const count = quick ? 1_000 : 10_000
  const rounds = quick ? 1 : 3
  const upstream = await startBenchUpstream()
  const authority = new Authority()
  const certificate = authority.issue([routing.host])
  const samples = new Map<string, number[]>()
  const measure = async (id: string, start: Promise<MeasuredProxy>, dial: Dial) => {
    const proxy = await start
    try {
      await check(proxy, dial)
      samples.set(id, [...(samples.get(id) ?? []), await costOfIdle(proxy, count, dial)])
    } finally {
      await proxy.stop()
    }
  }
  for (let round = 0; round < rounds; round++) {
    for (const [suffix, tls] of [
      ['', undefined],
      ['.tls', certificate],
    ] as const) {
      const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
      const dial = tls === undefined ? dialPlain : dialTls
      // A process of its own each round: memory that was freed once is not taken again.
      const own = startSluice(folder, upstream.port, 10, tls && { certificate: tls })
      await measure(`proxy.idle${suffix}`, own, dial)
      const peers =
        tls === undefined
          ? await findPeers(folder, upstream.port)
          : [await nginx(folder, upstream.port, tls)]
      for (const peer of peers) {
        // Two descriptors a connection, reserved at the start: more than most limits allow.
        if (peer.name === 'haproxy') continue
        const id = `proxy.idle${suffix}.${peer.name}`
        if ('absent' in peer) note(`${peer.name} is absent: ${peer.absent}`)
        else await measure(id, startProxyProcess(peer.command), dial)
      }
      rmSync(folder, { recursive: true, force: true })
    }
  }
  upstream.close()
  authority.dispose()
  return [...samples].map(
    ([id, own]): Row => ({
      id,
      unit: 'kB',
      own,
      ...(id === 'proxy.idle' && { bound: { atMost: 8 } }),
      ...(!ownIds.has(id) && { note: 'the peer itself' }),
    }),
  )
}
