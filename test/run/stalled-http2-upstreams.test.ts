import { createServer as createHttp2Server } from 'node:http2'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { startExtAuthServer } from '../support/ext-auth-server.ts'
import { useFixture, useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { send } from '../support/http-client.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

interface Relay {
  readonly port: number
  /** Stops all connections that exist, without closing them. New ones work. */
  silence(): void
  close(): void
}

/** Passes bytes on to a port, until it is silenced. */
async function startRelay(target: number): Promise<Relay> {
  const sockets: Socket[] = []
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    client.pipe(upstream).pipe(client)
    for (const socket of [client, upstream]) {
      socket.on('error', () => undefined)
      sockets.push(socket)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    silence() {
      for (const socket of sockets.splice(0)) socket.unpipe().pause()
    },
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

const http2 = createHttp2Server({ maxSessionMemory: 1_000 }, (request, response) => {
  const size = Number(new URL(request.url, 'http://any').searchParams.get('size'))
  // Node may reset the stream before it marks the last data. The length shows that it was the last.
  response.writeHead(200, { 'content-length': size }).end('x'.repeat(size))
})
const answering = useListening(http2 as never)
const relay = useFixture(() => startRelay(answering.port))
const extAuth = useFixture(startExtAuthServer)
const toExtAuth = useFixture(() => startRelay(extAuth.port))
const port = await freePort()
useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('big', answering.port, { http: { version: 'HTTP2' } }),
    staticBackend('silent', relay.port, { http: { version: 'HTTP2' } }),
    staticBackend('ext-auth', toExtAuth.port),
    httpRoute('big', { hostnames: [hostOf('big')], rules: [{ backendRefs: [toBackend('big')] }] }),
    httpRoute('silent', {
      hostnames: [hostOf('silent')],
      rules: [{ backendRefs: [toBackend('silent')], timeouts: { request: '1s' } }],
    }),
    httpRoute('guarded', {
      hostnames: [hostOf('guarded')],
      rules: [{ backendRefs: [toBackend('big')] }],
    }),
    policy('guarded', 'HTTPRoute/guarded', {
      traffic: { extAuth: { backendRef: toBackend('ext-auth'), grpc: {} } },
    }),
  ],
}))

const ask = (name: string, path = '/?size=2') =>
  send(port, { path, headers: { host: hostOf(name) } })

/** Sends a request and never reads the response. Resolves once its first bytes have arrived. */
async function neverRead(): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  socket.write(`GET /?size=20000000 HTTP/1.1\r\nhost: ${hostOf('big')}\r\n\r\n`)
  await new Promise((resolve) => socket.once('readable', resolve))
  return socket
}

describe('a gateway with HTTP/2 upstreams', () => {
  it('answers others while clients of the same upstream do not read', async () => {
    const readers = await Promise.all([1, 2, 3, 4].map(neverRead))
    for (const size of [2, 300_000, 2_000_000]) {
      const { status, body } = await ask('big', `/?size=${size}`)
      expect([status, body.length]).toEqual([200, size])
    }
    for (const socket of readers) socket.destroy()
  })

  it('opens another connection if that to a backend is silent', async () => {
    expect((await ask('silent')).status).toBe(200)
    relay.silence()
    expect((await ask('silent')).status).toBe(504)
    await waitFor('an answer over a new connection', async () => {
      return (await ask('silent')).status === 200
    })
  })

  it('opens another connection if that to an authorization service is silent', async () => {
    expect((await ask('guarded')).status).toBe(200)
    toExtAuth.silence()
    expect((await ask('guarded')).status).toBe(403)
    await waitFor('an answer of the service over a new connection', async () => {
      return (await ask('guarded')).status === 200
    })
  })
})
