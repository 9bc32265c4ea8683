import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  type EngineRig,
  eventually,
  headOf,
  ok,
  RawConnection,
  RawUpstream,
  startScene,
} from './engine-rig.ts'

const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

let rig: EngineRig
let upstream: RawUpstream

beforeEach(async () => {
  ;({ rig, upstream } = await startScene())
})

afterEach(async () => {
  await rig.close()
  upstream.close()
})

const upgrade =
  'GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n'
const switching =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: a\r\n\r\n'

test('an upgrade becomes a tunnel in both directions until one side ends', async () => {
  let head = ''
  upstream.onData = (connection) => {
    if (head === '') {
      head = connection.text
      connection.write(`${switching}welcome`)
      connection.socket.on('data', (chunk) => connection.socket.write(chunk))
    }
  }
  const client = await RawConnection.connect(rig.port)
  client.write(upgrade)
  await client.until(() => client.text.includes('welcome'))
  expect(head).toBe(
    'GET /ws HTTP/1.1\r\nHost: x\r\nSec-WebSocket-Key: k\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
  )
  expect(headOf(client.text)).toBe(
    'HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: a\r\nconnection: upgrade\r\nupgrade: WebSocket\r\n\r\n',
  )
  const big = 'x'.repeat(3_000_000)
  client.text = ''
  client.write(`GET / HTTP/1.1\r\n\r\n${big}`)
  await client.until(() => client.text.length >= big.length + 18)
  expect(client.text).toBe(`GET / HTTP/1.1\r\n\r\n${big}`)
  client.socket.end()
  await upstream.connections[0]?.untilEnd()
  upstream.connections[0]?.socket.end()
  await client.untilEnd()
  await eventually(() => rig.plane.done.length === 1)
  expect(rig.plane.done[0]).toMatchObject({ status: 101, ending: 'complete' })
  expect(rig.engine.counters.upstreamConnectionsOpen).toBe(0)
})

test('bytes that a client sends right after an upgrade wait for the tunnel', async () => {
  upstream.onData = (connection) => {
    if (connection.text.endsWith('\r\n\r\n')) {
      connection.text = ''
      setImmediate(() => connection.write(switching))
    } else if (connection.text === 'early') connection.write('seen')
  }
  const client = await RawConnection.connect(rig.port)
  client.write(`${upgrade}early`)
  await client.until(() => client.text.endsWith('seen'))
})

test('an answer other than 101 is forwarded; another protocol is answered 502', async () => {
  const client = await RawConnection.connect(rig.port)
  client.write(upgrade)
  await client.responses(1)
  expect(client.text).toBe(ok)
  upstream.onData = (connection) => connection.write(switching.replace('WebSocket', 'other'))
  client.text = ''
  client.write(upgrade)
  await client.responses(1)
  expect(client.text).toMatch(/^HTTP\/1\.1 502 [\s\S]*upgrade failed$/)
  expect(rig.plane.errors).toEqual(['upstream_upgrade'])
})

// --- mirrors ---

test('a mirror gets head and body; its answer and failures do not affect the client', async () => {
  const mirror = await RawUpstream.start()
  mirror.onData = (connection) => {
    if (connection.text.endsWith('0\r\n\r\n'))
      connection.write('HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n')
  }
  rig.plane.request = (exchange) => {
    exchange.mirror({ ...mirror.address, pool: 'mirror' })
    exchange.mirror({ host: '127.0.0.1', port: 1, pool: 'dead' })
    exchange.forward(rig.plane.upstream, rig.plane.options)
  }
  upstream.onData = (connection) => {
    if (connection.text.endsWith('0\r\n\r\n')) connection.write(ok)
  }
  const client = await RawConnection.connect(rig.port)
  client.write('POST /m HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n')
  await eventually(() => mirror.connections[0]?.text.endsWith('hello\r\n') === true)
  client.write('0\r\n\r\n')
  await client.responses(1)
  expect(client.text).toBe(ok)
  await eventually(() => mirror.connections[0]?.text.endsWith('0\r\n\r\n') === true)
  expect(mirror.connections[0]?.text).toBe(upstream.connections[0]?.text)
  mirror.close()
})

test('a mirror gets the request although the upstream cannot be reached', async () => {
  const mirror = await RawUpstream.start()
  rig.plane.request = (exchange) => {
    exchange.mirror({ ...mirror.address, pool: 'mirror' })
    exchange.forward({ host: '127.0.0.1', port: 1, pool: 'dead' }, rig.plane.options)
  }
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  const [response] = await client.responses(1)
  expect(response).toMatch(/^HTTP\/1\.1 503 /)
  await eventually(() => mirror.connections[0]?.text === get)
  mirror.close()
})

test('a mirror that does not read is abandoned, and the request continues', async () => {
  const mirror = await RawUpstream.start()
  mirror.onConnection = (connection) => connection.socket.pause()
  const total = 30_000_000
  upstream.onData = (connection) => {
    if (connection.received > total) connection.write(ok)
  }
  upstream.onConnection = (connection) => {
    connection.keepsText = false
  }
  rig.plane.request = (exchange) => {
    exchange.mirror({ ...mirror.address, pool: 'mirror' })
    exchange.forward(rig.plane.upstream, rig.plane.options)
  }
  const client = await RawConnection.connect(rig.port)
  client.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${total}\r\n\r\n`)
  client.write(Buffer.alloc(total))
  await client.responses(1)
  expect(client.text).toBe(ok)
  mirror.connections[0]?.socket.resume()
  await mirror.connections[0]?.until(
    () => mirror.connections[0]?.closed === true || mirror.connections[0]?.ended === true,
  )
  expect(mirror.connections[0]?.received).toBeLessThan(total)
  mirror.close()
})
