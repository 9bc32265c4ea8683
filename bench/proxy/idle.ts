/**
 * Claim: an idle plaintext HTTP/1.1 connection costs at most 8 kB: the growth of resident memory over
 * 10,000 connections, each of which has had one request answered and is kept open.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type BenchContext, pinSelf, type Row } from '../harness.ts'
import { check } from './cost.ts'
import { scenarios, startBenchUpstream, startLoad } from './load.ts'
import { findPeers } from './peers.ts'
import { loadCore, type MeasuredProxy, startProxyProcess } from './process.ts'
import { startSluice } from './sluice.ts'

const openedAtOnce = 50
/** Until heaps have the size that requests give them, which is no cost of connections. */
const warmUpMs = 3_000

/** Opens a connection, has one request answered and leaves it alone. */
function openIdle(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(scenarios.get.request))
    socket.once('error', reject)
    socket.once('data', () => resolve(socket))
  })
}

/** Kilobytes a connection. */
async function costOfIdle(proxy: MeasuredProxy, count: number): Promise<number> {
  const load = startLoad(proxy.port, scenarios.get, openedAtOnce)
  await delay(warmUpMs)
  await load.stop()
  const warm = await Promise.all(Array.from({ length: openedAtOnce }, () => openIdle(proxy.port)))
  for (const socket of warm) socket.destroy()
  await delay(500)
  const before = proxy.residentBytes()
  const open: Socket[] = []
  while (open.length < count) {
    const batch = Array.from({ length: openedAtOnce }, () => openIdle(proxy.port))
    open.push(...(await Promise.all(batch)))
  }
  await delay(1_500)
  const after = proxy.residentBytes()
  const closed = open.filter((socket) => socket.destroyed).length
  for (const socket of open) socket.destroy()
  if (closed > 0) throw new Error(`${proxy.name} closed ${closed} idle connections`)
  return (after - before) / 1024 / count
}

export default async function idle({ quick, note }: BenchContext): Promise<Row[]> {
  pinSelf(loadCore)
  const count = quick ? 1_000 : 10_000
  const rounds = quick ? 1 : 3
  const upstream = await startBenchUpstream()
  const samples = new Map<string, number[]>()
  for (let round = 0; round < rounds; round++) {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
    // A process of its own each round: memory that was freed once is not taken again.
    const starts = [() => startSluice(folder, upstream.port, 10)]
    for (const peer of await findPeers(folder, upstream.port)) {
      // Two descriptors a connection, reserved at the start: more than most limits allow.
      if (peer.name === 'haproxy') continue
      if ('absent' in peer) note(`${peer.name} is absent: ${peer.absent}`)
      else starts.push(() => startProxyProcess(peer.command))
    }
    for (const start of starts) {
      const proxy = await start()
      try {
        await check(proxy)
        const known = samples.get(proxy.name) ?? []
        samples.set(proxy.name, [...known, await costOfIdle(proxy, count)])
      } finally {
        await proxy.stop()
      }
    }
    rmSync(folder, { recursive: true, force: true })
  }
  upstream.close()
  return [...samples].map(
    ([name, own]): Row => ({
      id: name === 'sluice' ? 'proxy.idle' : `proxy.idle.${name}`,
      unit: 'kB',
      own,
      ...(name === 'sluice' ? { bound: { atMost: 8 } } : { note: 'the peer itself' }),
    }),
  )
}
