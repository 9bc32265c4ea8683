import { createServer } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createIoCore } from '../../src/engines/core/index.ts'
import type { ManualClock } from '../support/manual-clock.ts'
import {
  type EngineRig,
  eventually,
  ok,
  RawConnection,
  type RawUpstream,
  startEngine,
  startScene,
} from './engine-rig.ts'

const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

let rig: EngineRig
let upstream: RawUpstream
let clock: ManualClock

beforeEach(async () => {
  ;({ rig, upstream, clock } = await startScene())
})

afterEach(async () => {
  await rig.close()
  upstream.close()
})

test('listening on a port in use fails with port_in_use', async () => {
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  const { port } = taken.address() as { port: number }
  await expect(rig.engine.listen(port)).rejects.toMatchObject({ code: 'port_in_use' })
  taken.close()
})

test('a port can be released and bound again; its idle connections are closed', async () => {
  const port = await rig.engine.listen(0)
  const client = await RawConnection.connect(port)
  client.write(get)
  await client.responses(1)
  await rig.engine.unlisten(port)
  await client.untilEnd()
  await expect(RawConnection.connect(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  expect(await rig.engine.listen(port)).toBe(port)
  const again = await RawConnection.connect(port)
  again.write(get)
  await again.responses(1)
})

test('two engines share a port with reusePort', async () => {
  const first = await startEngine({ reusePort: true })
  const second = await startEngine({ reusePort: true })
  expect(await second.engine.listen(first.port)).toBe(first.port)
  await first.close()
  await second.close()
})

test('IPv6 addresses can be bound and are reported', async () => {
  const six = await startEngine({ bindAddress: '::1' })
  six.plane.request = (exchange) => exchange.respond(200, [], exchange.source.address)
  const client = await RawConnection.connect(six.port, '::1')
  client.write(get)
  const [response] = await client.responses(1)
  expect(response).toMatch(/::1$/)
  await six.close()
})

test('a client of IPv4 has an IPv4 address if the port is bound for both families', async () => {
  const both = await startEngine({ bindAddress: '::' })
  const addresses: string[] = []
  both.plane.request = ({ source, rawSource, local }) => {
    addresses.push(source.address, rawSource.address, local.address)
  }
  const client = await RawConnection.connect(both.port)
  client.write(get)
  await eventually(() => addresses.length > 0)
  expect(addresses).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.1'])
  await both.close()
})

test('a drain sends connection: close, stops accepting after min, and waits for the last response', async () => {
  let finish = (): void => {}
  upstream.onData = (connection) => {
    finish = () => connection.write(ok)
  }
  const busy = await RawConnection.connect(rig.port)
  const idle = await RawConnection.connect(rig.port)
  busy.write(get)
  await eventually(() => upstream.connections[0]?.text === get)
  await eventually(() => rig.engine.counters.connectionsOpen === 2)
  let drained = false
  const drain = rig.engine.drain(1_000, 60_000).then(() => {
    drained = true
  })
  rig.plane.request = (exchange) => exchange.respond(200, [], 'still here')
  const early = await RawConnection.connect(rig.port)
  early.write(get)
  await early.untilEnd()
  expect(early.text).toMatch(/connection: close\r\n[\s\S]*still here$/)
  clock.advance(1_020)
  await idle.untilEnd()
  await expect(RawConnection.connect(rig.port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  expect(drained).toBe(false)
  finish()
  await drain
  await busy.untilEnd()
  expect(busy.text).toBe('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nconnection: close\r\n\r\nok')
})

test('a drain closes open connections after max', async () => {
  upstream.onData = () => {}
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  await eventually(() => upstream.connections[0]?.text === get)
  const drain = rig.engine.drain(0, 5_000)
  clock.advance(5_020)
  await drain
  await client.untilEnd()
  expect(client.text).toBe('')
})

test('a trap of the core fails the request with 500, is counted, and does not end the process', async () => {
  const core = createIoCore({ memoryPages: 64 })
  const trapped = await startEngine({ core, head: core.createHead() })
  core.failed('test', new WebAssembly.RuntimeError('unreachable'))
  const client = await RawConnection.connect(trapped.port)
  client.write(get)
  await client.untilEnd()
  expect(client.text).toMatch(/^HTTP\/1\.1 500 [\s\S]*internal error$/)
  expect(trapped.engine.counters.coreTraps).toBe(1)
  await trapped.close()
})

test('bytes are read outside the memory of the core once it is full', async () => {
  const core = createIoCore({ memoryPages: 24 })
  const small = await startEngine({ core, head: core.createHead() })
  small.plane.upstream = upstream.address
  const body = 'z'.repeat(100_000)
  upstream.onData = (connection) => {
    connection.text = ''
    connection.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    connection.write(`${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`)
  }
  const clients = await Promise.all(
    Array.from({ length: 30 }, () => RawConnection.connect(small.port)),
  )
  for (const client of clients) client.write(get)
  await Promise.all(clients.map((client) => client.until(() => client.text.endsWith('0\r\n\r\n'))))
  for (const client of clients) expect(client.text.match(/z/g)).toHaveLength(body.length)
  expect(core.untouchedBytes).toBeLessThan(1_200_000)
  await small.close()
})

test('counters count connections and bytes', async () => {
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  await client.responses(1)
  client.socket.destroy()
  await eventually(() => rig.engine.counters.connectionsOpen === 0)
  expect(rig.engine.counters).toMatchObject({
    connectionsTotal: 1,
    receivedBytes: get.length,
    sentBytes: client.allText.length,
    upstreamConnectionsTotal: 1,
    upstreamConnectionsOpen: 1,
    badHeads: 0,
    coreTraps: 0,
  })
})
