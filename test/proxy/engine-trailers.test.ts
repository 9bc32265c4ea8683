import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type EngineRig, RawConnection, RawUpstream, startEngine } from './engine-rig.ts'

let rig: EngineRig
let upstream: RawUpstream
let client: RawConnection
beforeEach(async () => {
  rig = await startEngine()
  upstream = await RawUpstream.start()
  rig.plane.upstream = upstream.address
  client = await RawConnection.connect(rig.port)
})
afterEach(async () => {
  client.socket.destroy()
  await rig.close()
  upstream.close()
})

const request =
  'POST / HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nConnection: TE\r\nTrailer: X-Sum\r\n' +
  'Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-Sum: up\r\n\r\n'
const response =
  'HTTP/1.1 200 OK\r\nTrailer: X-Sum, X-More\r\nTransfer-Encoding: chunked\r\n\r\n' +
  '2\r\ncd\r\n0\r\nX-Sum: down\r\n\r\n'

test('the Trailer field is forwarded with its trailers, in both directions', async () => {
  upstream.onData = (connection) => {
    if (connection.text.endsWith('X-Sum: up\r\n\r\n')) connection.write(response)
  }
  client.write(request)
  await client.until(() => client.text.endsWith('X-Sum: down\r\n\r\n'))
  const [received = ''] = upstream.connections.map(({ text }) => text)
  expect(received).toContain('\r\nTrailer: X-Sum\r\n')
  // RFC 9110 10.1.4: who sends TE names it in Connection.
  expect(received).toContain('te: trailers\r\nconnection: te\r\n')
  expect(client.text).toContain('\r\nTrailer: X-Sum, X-More\r\n')
})

test('the Trailer field is left out if the body gets a length and no trailers', async () => {
  rig.plane.request = (exchange) => {
    exchange.requestBody.replace(Buffer.from('new'))
    exchange.forward(rig.plane.upstream, rig.plane.options)
  }
  rig.plane.response = (exchange) => {
    exchange.responseBody?.replace(Buffer.from('other'))
    exchange.relay()
  }
  upstream.onData = (connection) => {
    if (connection.text.endsWith('new')) connection.write(response)
  }
  client.write(request)
  await client.until(() => client.text.endsWith('other'))
  expect(upstream.connections[0]?.text).not.toMatch(/^trailer:/im)
  expect(client.text).not.toMatch(/^trailer:/im)
})

test('a Trailer field that Connection names is not forwarded', async () => {
  upstream.onData = (connection) => {
    if (connection.text.endsWith('\r\n\r\n')) connection.write('HTTP/1.1 204 No Content\r\n\r\n')
  }
  client.write('GET / HTTP/1.1\r\nHost: x\r\nTrailer: X-Sum\r\nConnection: trailer\r\n\r\n')
  await client.responses(1)
  expect(upstream.connections[0]?.text).not.toMatch(/trailer/i)
})

test('the Trailer field passes from HTTP/1.1 to HTTP/2 and back', async () => {
  let sent: IncomingHttpHeaders = {}
  const server = createServer()
  server.on('stream', (stream, fields) => {
    sent = fields
    stream.respond({ ':status': 200, trailer: 'x-sum' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': 'down' }))
    stream.resume().on('end', () => stream.end('cd'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  rig.plane.upstream = { host: '127.0.0.1', port, pool: 'h2', isHttp2: true }
  client.write(request)
  await client.until(() => client.text.endsWith('x-sum: down\r\n\r\n'))
  server.close()
  expect(sent).toMatchObject({ trailer: 'X-Sum', te: 'trailers' })
  expect(client.text).toContain('\r\ntrailer: x-sum\r\n')
})
