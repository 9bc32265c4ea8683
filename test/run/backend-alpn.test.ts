/** What TLS offers to backends that list application protocols, and what is spoken then (RFC 7301). */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { createServer as createTlsServer, type Server } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import type { Certificate } from '../support/certificates.ts'
import { useAuthority, useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { send } from '../support/http-client.ts'
import {
  aiBackend,
  configMap,
  gateway,
  hostOf,
  httpRoute,
  mcpBackend,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

/** Speaks both versions of HTTP over TLS, and records what connections offer. */
class AlpnServer {
  readonly offers: string[] = []
  /** The version and method of every request. */
  readonly requests: string[] = []
  /** The protocol that new connections get. */
  selects: string
  readonly #sockets = new Set<Socket>()
  readonly #tls: Server

  /** With an empty `selects`, the server knows nothing of ALPN. */
  constructor({ certificate: cert, key }: Certificate, selects: string) {
    this.selects = selects
    const onOffer = ({ protocols }: { protocols: string[] }): string => {
      this.offers.push(protocols.join(' '))
      return this.selects
    }
    this.#tls = createTlsServer({ cert, key, ...(selects !== '' && { ALPNCallback: onOffer }) })
    const http1 = createServer((request, response) => this.#answer(request, response))
    const http2 = createHttp2Server((request, response) =>
      this.#answer(request as unknown as IncomingMessage, response as unknown as ServerResponse),
    )
    const webSockets = new WebSocketServer({ noServer: true })
    http1.on('upgrade', (request, socket, head) => {
      webSockets.handleUpgrade(request, socket, head, (one) => one.send(request.httpVersion))
    })
    this.#tls.on('secureConnection', (socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      ;(socket.alpnProtocol === 'h2' ? http2 : http1).emit('connection', socket)
    })
    this.#tls.on('tlsClientError', () => {})
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    let size = 0
    request.on('data', (piece: Buffer) => {
      size += piece.length
    })
    request.on('end', () => {
      this.requests.push(`${request.httpVersion} ${request.method} ${size}`)
      response.end(request.httpVersion)
    })
  }

  async listen(): Promise<this> {
    this.#tls.listen(0, '127.0.0.1')
    await once(this.#tls, 'listening')
    return this
  }

  get port(): number {
    return (this.#tls.address() as AddressInfo).port
  }

  disconnect(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#sockets.clear()
  }

  close(): void {
    this.disconnect()
    this.#tls.close()
  }
}

interface Backend {
  readonly alpn: readonly string[]
  readonly selects: string
  readonly more?: object
}

const both = ['h2', 'http/1.1']
const backends: Readonly<Record<string, Backend>> = {
  'first-h2': { alpn: both, selects: 'h2' },
  'first-http1': { alpn: both, selects: 'http/1.1' },
  'second-h2': { alpn: ['http/1.1', 'h2'], selects: 'h2' },
  'second-http1': { alpn: ['http/1.1', 'h2'], selects: 'http/1.1' },
  'acme-h2': { alpn: ['acme/1', 'h2'], selects: 'h2' },
  acme: { alpn: ['acme/1', 'h2'], selects: 'acme/1' },
  'acme-http1': { alpn: ['acme/1', 'http/1.1'], selects: 'http/1.1' },
  silent: { alpn: both, selects: '' },
  'silent-h2': { alpn: ['h2'], selects: '' },
  posts: { alpn: both, selects: 'http/1.1' },
  crowd: { alpn: both, selects: 'http/1.1' },
  mirrored: { alpn: both, selects: 'http/1.1' },
  fickle: { alpn: both, selects: 'h2' },
  sockets: { alpn: both, selects: 'http/1.1' },
  calls: { alpn: ['http/1.1', 'h2'], selects: 'h2' },
  'calls-http1': { alpn: both, selects: 'http/1.1' },
  'needs-h2': { alpn: both, selects: '', more: { http: { version: 'HTTP2' } } },
  'needs-http1': { alpn: both, selects: 'http/1.1', more: { http: { version: 'HTTP1' } } },
}

const trust = { sni: 'backend.example.com', caCertificateRefs: [{ name: 'ca' }] }

function serverOf(name: string): AlpnServer {
  const server = servers.get(name)
  if (server === undefined) throw new Error(`no server ${name}`)
  return server
}

/** The status, and the version that the backend was spoken to in. */
async function get(name: string): Promise<string> {
  const { status, body } = await send(port, { host: hostOf(name) })
  return `${status} ${body}`
}

function routed(name: string) {
  const mirror = { type: 'RequestMirror', requestMirror: { backendRef: toBackend('mirrored') } }
  const rule = { backendRefs: [toBackend(name)] }
  return httpRoute(name, {
    hostnames: [hostOf(name)],
    rules: [name === 'silent' ? { ...rule, filters: [mirror] } : rule],
  })
}

/** A provider of models and an MCP target at the servers of two other backends. */
function agents(): Readonly<Record<string, unknown>>[] {
  const tls = { ...trust, alpnProtocols: ['acme/1', 'h2'] }
  const model = { vendorA: {}, host: '127.0.0.1', port: serverOf('acme-h2').port }
  const target = { host: '127.0.0.1', port: serverOf('acme-h2').port }
  return [
    aiBackend('model', { provider: model }, { tls }),
    mcpBackend('tools', [{ name: 'only', static: { ...target, policies: { tls } } }]),
    routed('model'),
    routed('tools'),
  ]
}

const authority = useAuthority()
const certificate = authority.issue(['backend.example.com'])
const servers = new Map(
  Object.entries(backends).map(([name, { selects }]) => [
    name,
    useFixture(() => new AlpnServer(certificate, selects).listen()),
  ]),
)
const port = await freePort()
useGateway(() => ({
  manifests: [
    gateway(port),
    configMap('ca', { 'ca.crt': authority.certificate }),
    ...agents(),
    ...Object.entries(backends).flatMap(([name, { alpn, more }]) => [
      staticBackend(name, serverOf(name).port, {
        tls: { ...trust, alpnProtocols: alpn },
        ...more,
      }),
      routed(name),
    ]),
  ],
}))
const http2 = useFixture(() => connect(`http://127.0.0.1:${port}`))

describe('[BackendTLS.alpnProtocols] the list is offered in its order, and the server selects', () => {
  it.each([
    ['first-h2', '200 2.0', 'h2 http/1.1'],
    ['first-http1', '200 1.1', 'h2 http/1.1'],
    ['second-h2', '200 2.0', 'http/1.1 h2'],
    ['second-http1', '200 1.1', 'http/1.1 h2'],
    ['acme-h2', '200 2.0', 'acme/1 h2'],
    ['acme', '200 1.1', 'acme/1 h2'],
    ['acme-http1', '200 1.1', 'acme/1 http/1.1'],
  ])('%s is answered with %s after the offer %s', async (name, answer, offer) => {
    expect(await get(name)).toBe(answer)
    expect(await get(name)).toBe(answer)
    expect(new Set(serverOf(name).offers)).toEqual(new Set([offer]))
    expect(serverOf(name).requests).toHaveLength(2)
  })

  it('a server without ALPN is spoken to in HTTP/1.1', async () => {
    expect(await get('silent')).toBe('200 1.1')
    expect(await get('silent-h2')).toBe('200 1.1')
  })

  it('a plaintext HTTP/2 client does not determine the version for the backend', async () => {
    const stream = http2.request({ ':path': '/', ':authority': hostOf('first-http1') })
    expect(await textOf(stream)).toBe('1.1')
  })
})

async function textOf(stream: AsyncIterable<Buffer | string>): Promise<string> {
  let text = ''
  for await (const piece of stream) text += String(piece)
  return text
}

describe('a server that selects another version than the gateway expected', () => {
  it('receives bodies of any size exactly once', async () => {
    const server = serverOf('posts')
    const sizes = [0, 10, 300_000]
    for (const size of sizes) {
      server.disconnect()
      server.selects = server.selects === 'h2' ? 'http/1.1' : 'h2'
      const body = 'x'.repeat(size)
      const answer = await send(port, { method: 'POST', host: hostOf('posts'), body })
      expect([answer.status, server.requests.pop()]).toEqual([
        200,
        `${server.selects === 'h2' ? '2.0' : '1.1'} POST ${size}`,
      ])
      expect(server.requests).toEqual([])
    }
  })

  it('has its choice remembered, so that later requests need one connection', async () => {
    const server = serverOf('crowd')
    expect(await get('crowd')).toBe('200 1.1')
    expect(server.offers).toHaveLength(2)
    server.disconnect()
    await waitFor('the gateway to lose its connection', async () => {
      const before = server.offers.length
      expect(await get('crowd')).toBe('200 1.1')
      return server.offers.length > before
    })
    expect(server.offers).toHaveLength(3)
  })

  it('may change its mind between connections', async () => {
    const server = serverOf('fickle')
    expect(await get('fickle')).toBe('200 2.0')
    server.selects = 'http/1.1'
    server.disconnect()
    await waitFor('HTTP/1.1', async () => (await get('fickle')) === '200 1.1')
    server.selects = 'h2'
    server.disconnect()
    await waitFor('HTTP/2', async () => (await get('fickle')) === '200 2.0')
  })

  it('answers all requests that waited for the first connection', async () => {
    const server = serverOf('calls-http1')
    const answers = await Promise.all(Array.from({ length: 20 }, () => get('calls-http1')))
    expect(new Set(answers)).toEqual(new Set(['200 1.1']))
    expect(server.requests).toHaveLength(20)
  })

  it('receives the copies of mirrored requests', async () => {
    const before = serverOf('mirrored').requests.length
    await send(port, { method: 'POST', host: hostOf('silent'), body: 'copied' })
    await waitFor('the copy', () =>
      serverOf('mirrored').requests.slice(before).includes('1.1 POST 6'),
    )
  })
})

it('model providers and MCP targets follow the list', async () => {
  const { offers, requests } = serverOf('acme-h2')
  const post = async (name: string, path: string, message: object) => {
    const before = requests.length
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    }
    const body = JSON.stringify(message)
    await send(port, { method: 'POST', path, host: hostOf(name), headers, body })
    return requests[before]
  }
  const messages = [{ role: 'user', content: 'hello' }]
  expect(await post('model', '/v1/chat/completions', { model: 'm', messages })).toMatch(
    /^2\.0 POST/,
  )
  const params = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  }
  const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params }
  expect(await post('tools', '/mcp', initialize)).toMatch(/^2\.0 POST/)
  expect(new Set(offers)).toEqual(new Set(['acme/1 h2']))
})

describe('an HTTP version that ALPN does not determine', () => {
  it('is HTTP/1.1 for a WebSocket, which offers no h2', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`, {
      headers: { host: hostOf('sockets') },
    })
    const [message] = (await once(socket, 'message')) as [Buffer]
    socket.close()
    expect(String(message)).toBe('1.1')
    expect(serverOf('sockets').offers).toEqual(['http/1.1'])
  })

  it('is HTTP/2 for gRPC, which fails if the server selects another one', async () => {
    const call = (name: string) =>
      http2.request({
        ':method': 'POST',
        ':path': '/a.B/C',
        ':authority': hostOf(name),
        'content-type': 'application/grpc',
        te: 'trailers',
      })
    const whole = call('calls')
    whole.end(Buffer.alloc(5))
    expect(await textOf(whole)).toBe('2.0')
    expect(serverOf('calls').offers).toEqual(['http/1.1 h2'])
    const failing = call('calls-http1')
    failing.end(Buffer.alloc(5))
    const [headers] = await once(failing, 'response')
    expect(headers['grpc-status']).toBe('14')
  })

  it('is the version of backend.http', async () => {
    expect(await get('needs-h2')).toMatch(/^50[23] /)
    expect(await get('needs-http1')).toBe('200 1.1')
    expect(serverOf('needs-http1').offers).toEqual(['http/1.1'])
  })
})
