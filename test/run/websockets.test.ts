/** WebSockets between clients and backends of either version of HTTP (RFC 6455, RFC 8441). */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { useFixture, useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, httpRoute, staticBackend, toBackend } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

/** Frames of a WebSocket on a stream of HTTP/2, by a library that knows nothing of that. */
function webSocketOn(stream: object, isServer: boolean): WebSocket {
  type Unbound = new (address: null, protocols: undefined, options: object) => WebSocket
  const options = { autoPong: true, closeTimeout: 1_000 }
  const socket = new (WebSocket as unknown as Unbound)(null, undefined, options)
  Object.assign(socket, { _isServer: isServer })
  const whole = socket as unknown as {
    setSocket(socket: object, head: Buffer, options: object): void
  }
  whole.setSocket(stream, Buffer.alloc(0), { maxPayload: 1 << 24 })
  return socket
}

const echo = (socket: WebSocket) => {
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
}

const open = new Set<ServerHttp2Stream>()
const heads: Record<string, unknown>[] = []

const webSocket = (path: string) =>
  new WebSocket(`ws://127.0.0.1:${port}${path}`, ['chat'], { headers: { 'x-from': 'client' } })

async function extended(path: string) {
  const stream = session.request({
    ':method': 'CONNECT',
    ':protocol': 'websocket',
    ':scheme': 'http',
    ':authority': 'a.example.com',
    ':path': path,
    'sec-websocket-version': '13',
  })
  const [headers] = await once(stream, 'response')
  return { stream, status: Number(headers[':status']) }
}

/** Large enough for windows to close on the way. */
const large = Buffer.alloc(1 << 20, 'sluice')

async function echoes(socket: WebSocket): Promise<void> {
  for (const piece of [Buffer.from('hello'), large]) {
    socket.send(piece)
    const [data] = (await once(socket, 'message')) as [Buffer]
    expect(data.equals(piece)).toBe(true)
  }
}

const sockets = new WebSocketServer({ noServer: true })
const http1 = useListening(
  createServer((_, response) => response.end('no socket')).on('upgrade', (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, echo),
  ),
)
const http2 = useListening(
  createHttp2Server({ settings: { enableConnectProtocol: true } }).on(
    'stream',
    (stream, headers) => {
      heads.push(headers)
      if (headers[':path'] === '/refused') {
        stream.respond({ ':status': 403, 'content-type': 'text/plain' })
        stream.end('not you')
        return
      }
      open.add(stream)
      stream.once('close', () => open.delete(stream))
      stream.on('error', () => {})
      stream.respond({ ':status': 200, 'sec-websocket-protocol': 'chat' })
      echo(webSocketOn(stream, true))
    },
  ),
)
const bare = useListening(
  createHttp2Server().on('stream', (stream) =>
    stream.respond({ ':status': 200 }, { endStream: true }),
  ),
)
const port = await freePort()
useGateway(() => {
  const spoken = { http: { version: 'HTTP2' } }
  const route = (name: string, value: string) =>
    httpRoute(name, {
      rules: [
        { matches: [{ path: { type: 'PathPrefix', value } }], backendRefs: [toBackend(name)] },
      ],
    })
  return {
    args: ['--workers', '1'],
    manifests: [
      gateway(port),
      staticBackend('one', http1.port),
      staticBackend('two', http2.port, spoken),
      staticBackend('bare', bare.port, spoken),
      route('one', '/one'),
      route('two', '/'),
      route('bare', '/bare'),
    ],
  }
})
const session = useFixture(
  async () => {
    const session = connect(`http://127.0.0.1:${port}`)
    await once(session, 'remoteSettings')
    return session
  },
  (session) => session.destroy(),
)

it('connects a WebSocket from HTTP/1.1 to a backend of HTTP/2', async () => {
  const socket = webSocket('/chat?room=1')
  const [response] = (await once(socket, 'upgrade')) as [{ headers: Record<string, string> }]
  expect(response.headers['sec-websocket-protocol']).toBe('chat')
  await echoes(socket)
  const head = heads.at(-1)
  expect(head).toMatchObject({
    ':method': 'CONNECT',
    ':protocol': 'websocket',
    ':path': '/chat?room=1',
    'x-from': 'client',
    'sec-websocket-version': '13',
  })
  expect(head).not.toHaveProperty('sec-websocket-key')
  socket.close(1000, 'done')
  const [code] = await once(socket, 'close')
  expect(code).toBe(1000)
  await waitFor('the end of the stream', () => open.size === 0)
})

it('connects a WebSocket from HTTP/2 to backends of HTTP/1.1 and of HTTP/2', async () => {
  for (const path of ['/one', '/two']) {
    const { stream, status } = await extended(path)
    expect(status).toBe(200)
    const socket = webSocketOn(stream, false)
    await echoes(socket)
    socket.terminate()
  }
  await waitFor('the end of the stream', () => open.size === 0)
})

it('forwards the refusal of a WebSocket, and reports a backend without extended CONNECT', async () => {
  const refused = webSocket('/refused')
  const [, response] = (await once(refused, 'unexpected-response')) as [
    unknown,
    Socket & { statusCode: number },
  ]
  expect(response.statusCode).toBe(403)
  const [text] = await once(response, 'data')
  expect(String(text)).toBe('not you')
  refused.on('error', () => {})
  refused.terminate()
  expect((await extended('/refused')).status).toBe(403)
  expect((await extended('/bare')).status).toBe(502)
  // The backend connection still serves other requests.
  const plain = session.request({ ':path': '/bare' })
  const [headers] = await once(plain, 'response')
  expect(headers[':status']).toBe(200)
  plain.close()
})

it('ends the backend stream of a WebSocket if the client disconnects', async () => {
  const socket = webSocket('/gone')
  await once(socket, 'open')
  await waitFor('the stream', () => open.size === 1)
  const resets = [...open].map((stream) => once(stream, 'close'))
  socket.terminate()
  await Promise.all(resets)
  expect(open.size).toBe(0)
})
