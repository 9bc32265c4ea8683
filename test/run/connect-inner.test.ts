/** Tunnels that end at listeners of the same Gateway (`frontend.connect.mode: Tunnel`). */
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { createServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { useAuthority, useGateway, useListening, useUpstream } from '../support/fixture.ts'
import { freePort, freePorts, sluice } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  streamRoute,
  tlsSecret,
  toBackend,
} from '../support/manifests.ts'
import {
  type Answered,
  askTunnel as ask1,
  askHttp2Tunnel,
  closed,
  openHttp2,
  readUntil,
} from '../support/tunnel-client.ts'
import { waitFor } from '../support/wait-for.ts'

const authority = useAuthority()
const upstream = useUpstream('main')
const sockets: Socket[] = []
const echo = useListening(
  createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.pipe(socket)
  }),
)
const port = await freePorts(
  'proxy',
  'secure',
  'plain',
  'bytes',
  'guarded',
  'other',
  'listed',
  'prompt',
)
const stats = `127.0.0.1:${await freePort()}`

const { certificate, key } = authority.issue(['shop.example.com'])
const listener = (name: string, protocol: string, to: number, more: object = {}) => ({
  name,
  protocol,
  port: to,
  ...more,
})
const users = ['alice'].map((user) => `${user}:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=`)

const running = useGateway(() => ({
  args: ['--stats-address', stats],
  manifests: {
    'all.yaml': manifest(
      gateway(port.proxy, {
        listeners: [
          listener('proxy', 'HTTP', port.proxy),
          listener('plain', 'HTTP', port.plain),
          listener('bytes', 'TCP', port.bytes),
          listener('guarded', 'HTTP', port.guarded),
          listener('secure', 'HTTPS', port.secure, {
            hostname: 'shop.example.com',
            tls: { certificateRefs: [{ name: 'shop' }] },
          }),
        ],
      }),
      gateway(port.other, {}, 'other'),
      gateway(
        port.listed,
        {
          listeners: [
            listener('listed', 'HTTP', port.listed),
            listener('prompt', 'HTTP', port.prompt),
          ],
        },
        'listed',
      ),
      tlsSecret('shop', { certificate, key }),
      staticBackend('main', upstream.port),
      staticBackend('echo', echo.port),
      httpRoute('shop', {
        parentRefs: [
          { name: 'edge', sectionName: 'secure' },
          { name: 'edge', sectionName: 'plain' },
          { name: 'other' },
        ],
        hostnames: [],
        rules: [{ backendRefs: [toBackend('main')] }],
      }),
      httpRoute('guarded', {
        parentRefs: [{ name: 'edge', sectionName: 'guarded' }],
        hostnames: [],
        rules: [{ backendRefs: [toBackend('main')] }],
      }),
      streamRoute('TCPRoute', 'bytes', 'bytes', [toBackend('echo')]),
      policy('tunnels', 'Gateway/edge', {
        frontend: { connect: { mode: 'Tunnel' } },
        traffic: {
          transformation: {
            response: {
              set: [
                { name: 'x-tenant', value: 'source.connectHeaders["x-tenant"]' },
                { name: 'x-connect', value: 'string(has(source.connectHeaders))' },
                {
                  name: 'x-credentials',
                  value:
                    'string("authorization" in source.connectHeaders || "proxy-authorization" in source.connectHeaders)',
                },
                { name: 'x-source', value: 'source.address + " " + string(source.port)' },
                { name: 'x-destination', value: 'string(destination.port)' },
              ],
            },
          },
        },
      }),
      policy('guarded', 'HTTPRoute/guarded', {
        traffic: {
          authorization: {
            policy: { matchExpressions: ['source.connectHeaders["x-tenant"] == "a"'] },
          },
        },
      }),
      policy('other', 'Gateway/other', { frontend: { connect: { mode: 'Tunnel' } } }),
      policy('listed', 'Gateway/listed', {
        frontend: { connect: { mode: 'Tunnel', ports: [port.listed] } },
        traffic: { phase: 'PreRouting', basicAuthentication: { users, realm: 'proxy' } },
      }),
    ),
  },
}))

/** What this test has opened, so that it can close everything. */
const opened: { destroy(): void }[] = []

async function askTunnel(...parameters: Parameters<typeof ask1>): Promise<Answered> {
  const answered = await ask1(...parameters)
  opened.push(answered.socket)
  return answered
}

interface Got {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

/** Sends a request on a stream that carries HTTP/1.1. */
function ask(stream: Duplex, options: object = {}, body?: Buffer): Promise<Got> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { createConnection: () => stream, host: 'shop.example.com', path: '/', ...options },
      async (response) => {
        const parts: Buffer[] = []
        for await (const part of response) parts.push(part)
        const { statusCode: status = 0, headers } = response
        resolve({ status, headers, body: Buffer.concat(parts).toString() })
      },
    )
    request.on('error', reject)
    request.end(body)
  })
}

/** Opens a tunnel over HTTP/1.1 or HTTP/2. */
async function open(over: '1.1' | '2', to: number, fields = {}): Promise<Duplex> {
  if (over === '1.1') {
    const { status, socket, rest } = await askTunnel(port.proxy, `edge.example.com:${to}`, fields)
    expect([status, rest.length]).toEqual([200, 0])
    return socket
  }
  const session = await openHttp2(port.proxy)
  opened.push(session)
  const { status, stream } = await askHttp2Tunnel(session, `edge.example.com:${to}`, fields)
  expect(status).toBe(200)
  return stream
}

const secured = async (stream: Duplex, alpn: string[] = ['http/1.1']) => {
  const socket = connectTls({
    socket: stream,
    ca: authority.certificate,
    servername: 'shop.example.com',
    ALPNProtocols: alpn,
  })
  await once(socket, 'secureConnect')
  return socket
}

describe.each(['1.1', '2'] as const)('mode Tunnel over HTTP/%s', (over) => {
  it('terminates TLS of the listener in the tunnel', async () => {
    const socket = await secured(await open(over, port.secure))
    const { status, headers, body } = await ask(socket)
    expect(status).toBe(200)
    expect(body).toContain('main')
    expect(headers['x-destination']).toBe(`${port.secure}`)
    socket.destroy()
  })

  it('carries HTTP/2 over TLS in the tunnel', async () => {
    const socket = await secured(await open(over, port.secure), ['h2'])
    const session = connectHttp2('https://shop.example.com', { createConnection: () => socket })
    const [head] = await once(session.request({ ':path': '/' }), 'response')
    expect(head[':status']).toBe(200)
    session.destroy()
  })

  it('gives expressions of inner requests the headers of the CONNECT, without credentials', async () => {
    const stream = await open(over, port.plain, {
      'x-tenant': 'a',
      'proxy-authorization': 'Basic eA==',
    })
    const { headers } = await ask(stream)
    expect(headers['x-tenant']).toBe('a')
    expect(headers['x-credentials']).toBe('false')
    expect(String(headers['x-source'])).toMatch(/^127\.0\.0\.1 [1-9]/)
    stream.destroy()
  })

  it('moves megabytes both ways with back-pressure, with and without TLS', async () => {
    const size = 8 * 1024 * 1024
    const bytes = await open(over, port.bytes)
    bytes.end(Buffer.alloc(size, 'x'))
    expect((await readUntil(bytes as Socket, '')).length).toBe(size)
    const socket = await secured(await open(over, port.secure))
    const content = Buffer.alloc(size, 'abcdefg')
    const { status, body } = await ask(socket, { method: 'POST', path: '/echo' }, content)
    expect(status).toBe(200)
    expect(JSON.parse(body).body).toBe(content.toString())
    socket.destroy()
  })
})

describe('mode Tunnel', () => {
  it('applies the policies of the inner listener to requests in the tunnel', async () => {
    for (const [tenant, status] of [
      ['a', 200],
      ['b', 403],
    ] as const) {
      const { socket } = await askTunnel(port.proxy, `edge:${port.guarded}`, { 'x-tenant': tenant })
      expect((await ask(socket)).status).toBe(status)
      socket.destroy()
    }
    const response = await fetch(`http://127.0.0.1:${port.guarded}/`, {
      headers: { 'x-tenant': 'a' },
    })
    expect(response.status).toBe(403)
  })

  it('refuses ports of other Gateways, ports without a listener, and ports that are not listed', async () => {
    expect((await askTunnel(port.proxy, `edge:${port.other}`)).status).toBe(403)
    expect((await askTunnel(port.other, `edge:${port.plain}`)).status).toBe(403)
    expect((await askTunnel(port.proxy, `127.0.0.1:${upstream.port}`)).status).toBe(403)
    expect((await askTunnel(port.proxy, 'edge:443')).status).toBe(403)
  })

  it('refuses a tunnel within a tunnel', async () => {
    const { socket } = await askTunnel(port.proxy, `edge:${port.proxy}`)
    socket.write(`CONNECT edge:${port.plain} HTTP/1.1\r\nhost: edge\r\n\r\n`)
    expect(await readUntil(socket, '')).toMatch(/^HTTP\/1\.1 403 /)
  })

  it('lets policies of phase PreRouting decide who may open tunnels', async () => {
    const to = `edge:${port.listed}`
    expect((await askTunnel(port.listed, to)).status).toBe(407)
    const credentials = `Basic ${Buffer.from('alice:pw').toString('base64')}`
    const fields = { 'proxy-authorization': credentials }
    expect((await askTunnel(port.listed, to, fields)).status).toBe(200)
    expect((await askTunnel(port.listed, `edge:${port.prompt}`, fields)).status).toBe(403)
  })

  it('resets the client if the backend of the inner connection resets, and the backend if the client does', async () => {
    const { socket } = await askTunnel(port.proxy, `edge:${port.bytes}`)
    const before = sockets.length
    socket.write('x')
    const server = await waitFor('the backend', () => sockets[before])
    const reset = closed(socket)
    server.resetAndDestroy()
    expect(await reset).toBe(true)
    const { socket: next } = await askTunnel(port.proxy, `edge:${port.bytes}`)
    next.write('x')
    const another = await waitFor('the backend', () => sockets[before + 1])
    const cut = closed(another)
    next.resetAndDestroy()
    expect(await cut).toBe(true)
  })

  it.each(['explain', 'simulate'] as const)('is known to sluice %s', async (command) => {
    const ask = (to: number) => {
      const parts = command === 'explain' ? ['explain', 'request'] : ['simulate']
      const options = ['--method', 'CONNECT', '--host', `edge:${to}`, '--port', `${port.proxy}`]
      return sluice(...parts, ...options, '-f', running.folder)
    }
    expect((await ask(port.plain)).stdout).toContain(
      command === 'explain' ? `the tunnel is a connection to port ${port.plain}` : 'forwards',
    )
    expect((await ask(port.other)).stdout).toContain('answers 403')
  })

  it('leaves no tunnel open when clients are gone', async () => {
    for (const client of opened) client.destroy()
    await waitFor('no open tunnel', async () => {
      const text = await (await fetch(`http://${stats}/metrics`)).text()
      return /^sluice_tunnels(?:\{[^}]*\})? 0$/m.test(text)
    })
  })

  it('writes a line about the tunnel and one about each request in it', async () => {
    const line = await waitFor('the line', () =>
      running.stdout
        .split('\n')
        .find(
          (text) =>
            text.includes('CONNECT') &&
            text.includes(`:${port.plain}`) &&
            text.includes('http.status=200'),
        ),
    )
    expect(line).toContain(`endpoint=listener:${port.plain}`)
  })
})
