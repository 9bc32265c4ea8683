import { afterEach, beforeEach, expect, test } from 'vitest'
import { ManualClock } from '../support/manual-clock.ts'
import { type EngineRig, RawConnection, RawUpstream, startEngine } from './engine-rig.ts'

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
