import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  answering,
  type EngineRig,
  headOf,
  RawConnection,
  type RawUpstream,
  startEngine,
} from './engine-rig.ts'

const hello = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-From: upstream\r\n\r\nhello'

let rig: EngineRig
let upstream: RawUpstream

beforeEach(async () => {
  rig = await startEngine()
  upstream = await answering(hello)
  rig.plane.upstream = upstream.address
})

afterEach(async () => {
  await rig.close()
  upstream.close()
})

test('a GET passes through unchanged, and both connections are kept', async () => {
  const client = await RawConnection.connect(rig.port)
  for (let count = 1; count <= 3; count++) {
    client.write(`GET /a?b=${count} HTTP/1.1\r\nHost: x.example\r\nX-One: 1\r\n\r\n`)
    const responses = await client.responses(count)
    expect(responses[count - 1]).toBe(hello)
  }
  expect(upstream.connections).toHaveLength(1)
  expect(upstream.connections[0]?.text).toBe(
    [1, 2, 3]
      .map((count) => `GET /a?b=${count} HTTP/1.1\r\nHost: x.example\r\nX-One: 1\r\n\r\n`)
      .join(''),
  )
  expect(rig.plane.done.map((done) => [done.status, done.respondedBy, done.ending])).toEqual([
    [200, 'upstream', 'complete'],
    [200, 'upstream', 'complete'],
    [200, 'upstream', 'complete'],
  ])
})

test('hop-by-hop fields and fields named by Connection are not forwarded', async () => {
  const client = await RawConnection.connect(rig.port)
  client.write(
    'GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n' +
      'Proxy-Connection: x\r\nTE: trailers, gzip\r\nX-End: 2\r\n\r\n',
  )
  await client.responses(1)
  expect(headOf(upstream.connections[0]?.text ?? '')).toBe(
    'GET / HTTP/1.1\r\nHost: x\r\nX-End: 2\r\nte: trailers\r\nconnection: te\r\n\r\n',
  )
})

test('edits of the request reach the upstream', async () => {
  rig.plane.request = (exchange) => {
    exchange.request.headers.set('x-one', 'new')
    exchange.request.headers.remove('X-TWO')
    exchange.request.headers.add('x-three', '3')
    exchange.request.path = '/other'
    exchange.request.authority = 'inner.example'
    exchange.forward(rig.plane.upstream, rig.plane.options)
  }
  const client = await RawConnection.connect(rig.port)
  client.write('GET /a?q=1 HTTP/1.1\r\nHost: x\r\nX-One: 1\r\nX-Two: 2\r\nX-Keep: k\r\n\r\n')
  await client.responses(1)
  expect(upstream.connections[0]?.text).toBe(
    'GET /other?q=1 HTTP/1.1\r\nhost: inner.example\r\nX-Keep: k\r\nx-one: new\r\nx-three: 3\r\n\r\n',
  )
})

test('edits of the response reach the client', async () => {
  rig.plane.response = (exchange) => {
    exchange.response?.headers.set('x-from', 'gateway')
    if (exchange.response !== undefined) exchange.response.status = 202
    exchange.relay()
  }
  const client = await RawConnection.connect(rig.port)
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const [response] = await client.responses(1)
  expect(response).toBe(
    'HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\nx-from: gateway\r\n\r\nhello',
  )
})

test('pipelined requests are answered one after the other', async () => {
  const client = await RawConnection.connect(rig.port)
  client.write('GET /1 HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(50))
  const responses = await client.responses(50)
  expect(responses).toHaveLength(50)
  expect(upstream.connections).toHaveLength(1)
})

test('responses of the gateway have Content-Length and Date', async () => {
  rig.plane.request = (exchange) => exchange.respond(404, [['x-a', 'b']], 'nope')
  const client = await RawConnection.connect(rig.port)
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\nHEAD / HTTP/1.1\r\nHost: x\r\n\r\n')
  await client.until(() => client.allText.split('\r\n\r\n').length >= 3)
  expect(client.allText).toMatch(
    /^HTTP\/1.1 404 Not Found\r\nx-a: b\r\ncontent-length: 4\r\ndate: [^\r]+ GMT\r\n\r\nnopeHTTP\/1.1 404 Not Found\r\nx-a: b\r\ncontent-length: 4\r\ndate: [^\r]+\r\n\r\n$/,
  )
})

test('a forwarded response gets a Date if it has none', async () => {
  const date = 'Tue, 15 Nov 1994 08:12:31 GMT'
  upstream.onData = (connection) => {
    const own = connection.text.includes('/dated') ? `Date: ${date}\r\n` : ''
    connection.write(
      `HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\nHTTP/1.1 200 OK\r\n${own}Content-Length: 0\r\n\r\n`,
    )
  }
  const client = await RawConnection.connect(rig.port)
  client.write('GET /plain HTTP/1.1\r\nHost: x\r\n\r\n')
  await client.until(() => client.text.includes('Length: 0\r\n\r\n'))
  const [interim = '', final = ''] = client.allText.split('\r\n\r\n')
  expect(interim).not.toMatch(/date:/i)
  expect(final).toMatch(/\r\ndate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/)
  const before = client.allText.length
  client.write('GET /dated HTTP/1.1\r\nHost: x\r\n\r\n')
  await client.until(() => client.allText.slice(before).includes('Length: 0\r\n\r\n'))
  expect(client.allText.slice(before).match(/date: .*/gi)).toEqual([`Date: ${date}`])
})

test('empty lines before a request line are ignored, but only a few', async () => {
  const get = 'GET /1 HTTP/1.1\r\nHost: x\r\n\r\n'
  const client = await RawConnection.connect(rig.port)
  client.write(`\r\n\r\n${get}\r\n${get}`)
  expect(await client.responses(2)).toHaveLength(2)
  for (const byte of `\r\n\r\n\r\n${get}`) client.write(byte)
  expect(await client.responses(3)).toHaveLength(3)
  expect(client.text.match(/HTTP\/1.1 200/g)).toHaveLength(3)
  for (const bad of ['\r\n'.repeat(9), '\n', ' ', '\r\n ', '\r\r\n', '\r\n\n']) {
    const refused = await RawConnection.connect(rig.port)
    refused.write(`${bad}${get}`)
    await refused.untilEnd()
    expect(refused.text).toMatch(/^HTTP\/1.1 400 /)
  }
})

test('empty lines alone do not begin the time limit for a head', async () => {
  const port = await rig.engine.listen(0, { headTimeoutMs: 300 })
  const client = await RawConnection.connect(port)
  client.write('\r\n\r\n')
  const half = await RawConnection.connect(port)
  half.write('GET /')
  await half.untilEnd()
  expect(half.text).toMatch(/^HTTP\/1.1 408 /)
  expect(client.text).toBe('')
})
