import { afterEach, beforeEach, expect, test } from 'vitest'
import { GatewayError } from '../../src/ground/errors/index.ts'
import type { ManualClock } from '../support/manual-clock.ts'
import {
  type EngineRig,
  eventually,
  ok,
  RawConnection,
  type RawUpstream,
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

test('a head larger than the limit is 431, a request line larger than it 414', async () => {
  const fields = await RawConnection.connect(rig.port)
  fields.write(`GET / HTTP/1.1\r\nHost: x\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`)
  await fields.untilEnd()
  expect(fields.text).toMatch(/^HTTP\/1\.1 431 [\s\S]*request header fields too large$/)
  const line = await RawConnection.connect(rig.port)
  line.write(`GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await line.untilEnd()
  expect(line.text).toMatch(/^HTTP\/1\.1 414 [\s\S]*request target too long$/)
  expect(rig.plane.badHeads).toEqual(['headers_too_large', 'uri_too_long'])
})

test('more fields than the limit of the port are 431; up to the limit pass', async () => {
  const port = await rig.engine.listen(0, { maxHeaders: 10 })
  const client = await RawConnection.connect(port)
  client.write(`GET / HTTP/1.1\r\nHost: x\r\n${'X: a\r\n'.repeat(9)}\r\n`)
  await client.responses(1)
  client.text = ''
  client.write(`GET / HTTP/1.1\r\nHost: x\r\n${'X: a\r\n'.repeat(10)}\r\n`)
  await client.untilEnd()
  expect(client.text).toMatch(/^HTTP\/1\.1 431 /)
})

test('an HTTP/2 preface after an HTTP/1.1 request is refused', async () => {
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  await client.responses(1)
  client.text = ''
  client.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  await client.untilEnd()
  expect(client.text).toMatch(/^HTTP\/1\.1 505 [\s\S]*connection: close\r\n/)
})

test('an idle connection is closed silently after its timeout', async () => {
  const client = await RawConnection.connect(rig.port)
  await eventually(() => rig.engine.counters.connectionsOpen === 1)
  client.write(get)
  await client.responses(1)
  clock.advance(599_000)
  expect(rig.engine.counters.connectionsOpen).toBe(1)
  clock.advance(2_000)
  await client.untilEnd()
  expect(client.text).toBe(ok)
})

test('an incomplete head is answered 408 after its timeout', async () => {
  const client = await RawConnection.connect(rig.port)
  client.write('GET / HTTP/1.1\r\nHost: x\r\nX: ')
  await eventually(() => rig.engine.counters.receivedBytes > 0)
  clock.advance(29_000)
  client.write('a')
  await eventually(() => rig.engine.counters.receivedBytes > 28)
  clock.advance(1_100)
  await client.untilEnd()
  expect(client.text).toMatch(/^HTTP\/1\.1 408 /)
  expect(rig.plane.badHeads).toEqual(['request_timeout'])
})

test('a stalled body is given up; one that is allowed to be slow is not', async () => {
  rig.engine.configure(rig.port, { limits: { minBodyBytesPerSecond: 0 } })
  const client = await RawConnection.connect(rig.port)
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhell')
  await eventually(() => upstream.connections[0]?.text.endsWith('hell') === true)
  clock.advance(400_000)
  client.write('o')
  await eventually(() => upstream.connections[0]?.text.endsWith('hello') === true)
  clock.advance(400_000)
  expect(rig.engine.counters.connectionsOpen).toBe(1)
  clock.advance(1_200_000)
  await client.untilEnd()
  await upstream.connections[0]?.untilEnd()
  expect(rig.plane.done[0]?.ending).toBe('client-closed')
})

test('a long wait for the upstream does not close the connection', async () => {
  upstream.onData = () => {}
  const client = await RawConnection.connect(rig.port)
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na')
  await eventually(() => upstream.connections[0]?.text.endsWith('a') === true)
  clock.advance(3_600_000)
  upstream.connections[0]?.write(ok)
  await client.responses(1)
  expect(client.text).toBe(ok)
})

test('no 100 Continue is sent for a request that is refused; the connection closes', async () => {
  rig.plane.request = (exchange) => exchange.respond(403, [], 'no')
  const client = await RawConnection.connect(rig.port)
  client.write('POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n')
  await client.untilEnd()
  expect(client.text).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n[\s\S]*connection: close\r\n\r\nno$/)
})

test('a short unread body is discarded and the connection kept', async () => {
  rig.plane.request = (exchange) => exchange.respond(403, [], 'no')
  const client = await RawConnection.connect(rig.port)
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n')
  await client.responses(1)
  client.write('G'.repeat(20_000))
  client.write(get)
  await client.responses(2)
  expect(client.text.match(/HTTP\/1\.1 403 /g)).toHaveLength(2)
  expect(client.text).not.toContain('connection: close')
})

test('a long unread body closes the connection, and the client still gets its answer', async () => {
  rig.plane.request = (exchange) => exchange.respond(403, [], 'no')
  const client = await RawConnection.connect(rig.port)
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n')
  client.write('a'.repeat(1_000_000))
  await client.untilEnd()
  expect(client.text).toMatch(/^HTTP\/1\.1 403 [\s\S]*connection: close\r\n\r\nno$/)
})

test('an endless unread chunked body closes the connection', async () => {
  rig.plane.request = (exchange) => exchange.respond(403, [], 'no')
  const client = await RawConnection.connect(rig.port)
  client.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
  for (let count = 0; count < 20; count++) client.write(`2000\r\n${'a'.repeat(8192)}\r\n`)
  await client.untilEnd()
  expect(client.text).toMatch(/^HTTP\/1\.1 403 /)
})

test('a HEAD response has the fields of GET and no body, from the upstream and from the gateway', async () => {
  upstream.onData = (connection) => {
    connection.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n')
  }
  const client = await RawConnection.connect(rig.port)
  client.write('HEAD / HTTP/1.1\r\nHost: x\r\n\r\n')
  await client.until(() => client.text.endsWith('\r\n\r\n'))
  expect(client.text).toBe('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n')
  rig.plane.request = (exchange) => exchange.respond(200, [], 'body')
  client.text = ''
  client.write('HEAD / HTTP/1.1\r\nHost: x\r\n\r\n')
  await client.until(() => client.text.endsWith('\r\n\r\n'))
  expect(client.text).toContain('content-length: 4\r\n')
  expect(upstream.connections).toHaveLength(1)
})

test('204 and 304 of the gateway have neither body nor length', async () => {
  const client = await RawConnection.connect(rig.port)
  for (const status of [204, 304]) {
    rig.plane.request = (exchange) => exchange.respond(status, [], 'ignored')
    client.text = ''
    client.write(get)
    await client.until(() => client.text.includes('\r\n\r\n'))
    expect(client.text).not.toMatch(/content-length|ignored/)
  }
})

test('an HTTP/1.0 client gets no chunked body, and its connection is closed', async () => {
  upstream.onData = (connection) => {
    connection.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n')
  }
  const client = await RawConnection.connect(rig.port)
  client.write('GET / HTTP/1.0\r\nHost: x\r\n\r\n')
  await client.untilEnd()
  expect(client.text).toBe('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello')
})

test('an HTTP/1.0 connection is kept if the client asks for it', async () => {
  const client = await RawConnection.connect(rig.port)
  client.write('GET / HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n')
  const [response] = await client.responses(1)
  expect(response).toContain('connection: keep-alive\r\n')
  client.write('GET / HTTP/1.0\r\nHost: x\r\n\r\n')
  await client.untilEnd()
  expect(client.text.match(/HTTP\/1\.1 200 /g)).toHaveLength(2)
})

test('thousands of pipelined requests are answered in order', async () => {
  rig.plane.request = (exchange) => {
    if (exchange.request.path.endsWith('7')) exchange.forward(rig.plane.upstream, rig.plane.options)
    else exchange.respond(200, [], exchange.request.path)
  }
  const client = await RawConnection.connect(rig.port)
  const count = 5_000
  let requests = ''
  for (let id = 0; id < count; id++) requests += `GET /${id} HTTP/1.1\r\nHost: x\r\n\r\n`
  client.write(requests)
  await client.until(() => client.text.split('HTTP/1.1 200').length > count)
  const responses = await client.responses(count)
  responses.forEach((response, id) => {
    expect(response.endsWith(id % 10 === 7 ? '\r\n\r\nok' : `\r\n\r\n/${id}`)).toBe(true)
  })
})

test('a header value that would split the message is refused when it is set', async () => {
  const thrown: unknown[] = []
  rig.plane.request = (exchange) => {
    const { headers } = exchange.request
    const attempts = [
      () => headers.set('x-a', 'a\r\nEvil: 1'),
      () => headers.add('x a', 'b'),
      () => headers.set('x-a', '\u010a'),
      () => {
        exchange.request.path = '/a b'
      },
      () => {
        exchange.request.authority = 'a\r\nb'
      },
      () => {
        exchange.request.method = 'GET /'
      },
    ]
    for (const attempt of attempts) {
      try {
        attempt()
      } catch (error) {
        thrown.push(error instanceof GatewayError && error.code)
      }
    }
    exchange.forward(rig.plane.upstream, rig.plane.options)
  }
  const seen: string[] = []
  const answer = upstream.onData
  upstream.onData = (connection) => {
    seen.push(connection.text)
    answer(connection)
  }
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  await client.responses(1)
  expect(thrown).toEqual(Array(6).fill('filter_failed'))
  expect(seen).toEqual([get])
})

test('fields are read without case, in order, without hop-by-hop fields', async () => {
  const seen: unknown[] = []
  rig.plane.request = (exchange) => {
    const { headers } = exchange.request
    headers.add('x-b', '3')
    seen.push(headers.get('X-a'), headers.getAll('x-B'), headers.has('x-c'), headers.has('hop'))
    headers.remove('x-A')
    headers.set('X-B', '4')
    seen.push([...headers.entries()], exchange.request.authority, exchange.request.version)
    exchange.respond(200, [], undefined)
  }
  const client = await RawConnection.connect(rig.port)
  client.write(
    'GET / HTTP/1.1\r\nHost: x:8\r\nX-A: 1\r\nX-B: 2\r\nx-b:  2b \r\nConnection: hop\r\nHop: 1\r\nX^: a\r\nX~: b\r\n\r\n',
  )
  await client.responses(1)
  expect(seen).toEqual([
    '1',
    ['2', '2b', '3'],
    false,
    false,
    [
      ['X^', 'a'],
      ['X~', 'b'],
      ['X-B', '4'],
    ],
    'x:8',
    '1.1',
  ])
})

test('the data plane cannot set framing and hop-by-hop fields', async () => {
  rig.plane.request = (exchange) => {
    for (const name of ['Content-Length', 'transfer-encoding', 'Connection', 'Upgrade']) {
      exchange.request.headers.set(name, '7')
      exchange.request.headers.remove(name)
    }
    expect(exchange.request.headers.get('host')).toBeUndefined()
    exchange.request.headers.set('Host', 'other')
    exchange.forward(rig.plane.upstream, rig.plane.options)
  }
  let seen = ''
  upstream.onData = (connection) => {
    seen += connection.text
    if (connection.text.endsWith('hello')) connection.write(ok)
  }
  const client = await RawConnection.connect(rig.port)
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello')
  await client.responses(1)
  expect(seen).toBe('POST / HTTP/1.1\r\nhost: other\r\nContent-Length: 5\r\n\r\nhello')
})
