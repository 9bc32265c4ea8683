import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../support/manual-clock.ts'
import {
  type EngineRig,
  eventually,
  ok,
  RawConnection,
  RawUpstream,
  startEngine,
} from './engine-rig.ts'

const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

let rig: EngineRig
let upstream: RawUpstream
let clock: ManualClock

beforeEach(async () => {
  clock = new ManualClock()
  rig = await startEngine({ clock })
  upstream = await RawUpstream.start()
  rig.plane.upstream = upstream.address
})

afterEach(async () => {
  await rig.close()
  upstream.close()
})

test.each([
  ['timeout=5', 4_000],
  ['timeout=5, max=100', 4_000],
  ['max=100,timeout=60', 59_000],
  ['Timeout = "2"', 1_000],
  ['timeout=1', 500],
  ['timeout=600', 90_000],
  ['max=100', 90_000],
])('closes an idle connection before the server does, which states %s', async (stated, limit) => {
  upstream.onData = (connection) =>
    connection.write(`HTTP/1.1 200 OK\r\nKeep-Alive: ${stated}\r\nContent-Length: 2\r\n\r\nok`)
  const client = await RawConnection.connect(rig.port)
  const ask = async (count: number) => {
    client.write(get)
    await client.responses(count)
  }
  await ask(1)
  clock.advance(limit - 50)
  await ask(2)
  expect(upstream.connections).toHaveLength(1)
  clock.advance(limit + 50)
  await upstream.connections[0]?.untilEnd()
  await ask(3)
  expect(upstream.connections).toHaveLength(2)
})

test('does not reuse a connection if the server states a timeout of zero', async () => {
  upstream.onData = (connection) =>
    connection.write('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=0\r\nContent-Length: 2\r\n\r\nok')
  const client = await RawConnection.connect(rig.port)
  for (const count of [1, 2]) {
    client.write(get)
    await client.responses(count)
  }
  expect(upstream.connections).toHaveLength(2)
})

describe('a server that does not state its timeout', () => {
  /** Asks once, and lets the server close the connection after `ms`. */
  async function closeAfter(ms: number, lastWords = ''): Promise<void> {
    const before = upstream.connections.length
    const client = await RawConnection.connect(rig.port)
    client.write(get)
    await client.responses(1)
    client.socket.destroy()
    expect(upstream.connections).toHaveLength(before + 1)
    clock.advance(ms)
    const connection = upstream.connections.at(-1)
    connection?.socket.end(lastWords)
    await connection?.untilEnd()
    await eventually(() => rig.engine.counters.upstreamConnectionsOpen === 0)
  }

  /** Asks twice, with so many milliseconds in between. Returns whether the connection was reused. */
  async function isReusedAfter(ms: number): Promise<boolean> {
    const before = upstream.connections.length
    const client = await RawConnection.connect(rig.port)
    client.write(get)
    await client.responses(1)
    clock.advance(ms)
    client.write(get)
    await client.responses(2)
    client.socket.destroy()
    const opened = upstream.connections.length - before
    for (const connection of upstream.connections) connection.socket.destroy()
    await eventually(() => rig.engine.counters.upstreamConnectionsOpen === 0)
    return opened === 1
  }

  beforeEach(() => {
    upstream.onData = (connection) => connection.write(ok)
  })

  test('is left a second before it closes, once it has closed twice after the same time', async () => {
    await closeAfter(5_000)
    expect(await isReusedAfter(4_500)).toBe(true)
    await closeAfter(4_950)
    expect(await isReusedAfter(3_900)).toBe(true)
    expect(await isReusedAfter(4_050)).toBe(false)
  })

  test('is left before it closes, also if it says 408 first', async () => {
    const timeout = 'HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n'
    await closeAfter(5_000, timeout)
    await closeAfter(5_000, timeout)
    expect(await isReusedAfter(4_050)).toBe(false)
  })

  test.each([
    ['after different times', [5_000, 9_000, 20_000]],
    ['at once, as when it stops', [100, 100, 100]],
  ])('is used as long as any other if it closes %s', async (_title, times) => {
    for (const ms of times) await closeAfter(ms)
    expect(await isReusedAfter(80_000)).toBe(true)
  })

  test('is used as long as any other if it closes several connections at the same moment', async () => {
    const clients = await Promise.all([1, 2, 3].map(() => RawConnection.connect(rig.port)))
    const held: RawConnection[] = []
    upstream.onData = (connection) => held.push(connection)
    for (const client of clients) client.write(get)
    await eventually(() => held.length === 3)
    for (const connection of held) connection.write(ok)
    for (const client of clients) await client.responses(1)
    clock.advance(5_000)
    for (const connection of held) connection.socket.end()
    await eventually(() => rig.engine.counters.upstreamConnectionsOpen === 0)
    upstream.onData = (connection) => connection.write(ok)
    expect(await isReusedAfter(80_000)).toBe(true)
  })
})
