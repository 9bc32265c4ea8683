import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { createSecureContext, createServer, type Server } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { useAuthority } from '../support/fixture.ts'
import { type EngineRig, eventually, RawConnection, startEngine } from './engine-rig.ts'

const authority = useAuthority()
const leaf = authority.issue(['127.0.0.1'])
const pieces = Array.from({ length: 20 }, (_, at) => String.fromCharCode(97 + at).repeat(1_000))
const body = pieces.join('')
const chunks = `${pieces.map((piece) => `3e8\r\n${piece}\r\n`).join('')}0\r\n\r\n`
const head = 'HTTP/1.1 200 OK\r\n'

let rig: EngineRig
let server: Server
const sockets = new Set<Socket>()
/** Relays the response, which the data plane holds back. */
let relay: (() => void) | undefined

async function serve(onRequest: (socket: Socket) => void): Promise<void> {
  server = createServer({ cert: leaf.certificate, key: leaf.key }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => onRequest(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  rig.plane.upstream = {
    host: '127.0.0.1',
    port,
    pool: `${port}`,
    tls: {
      context: createSecureContext({ ca: authority.certificate }),
      serverName: '',
      requiresTrust: true,
      checkName: () => undefined,
      alpn: ['http/1.1'],
      statedAlpn: [],
    },
  }
}

/** Asks for `fields`, and relays the response only after the upstream has sent everything and its end. */
async function askSlowly(fields = ''): Promise<RawConnection> {
  const client = await RawConnection.connect(rig.port)
  client.write(`GET / HTTP/1.1\r\nHost: a\r\n${fields}\r\n`)
  await eventually(() => relay !== undefined)
  await eventually(() => [...sockets].every(({ writableFinished }) => writableFinished))
  // The engine reads the last bytes and the end, which the kernel has already.
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  relay?.()
  return client
}

beforeEach(async () => {
  rig = await startEngine()
  relay = undefined
  rig.plane.response = (exchange) => {
    relay = () => exchange.relay()
  }
})
afterEach(async () => {
  await rig.close()
  for (const socket of sockets) socket.destroy()
  sockets.clear()
  server.close()
})

describe('a TLS upstream that closes after its response', () => {
  it.each([
    ['without a length', `${head}\r\n${body}`],
    ['with a length', `${head}content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`],
  ])('delivers a response %s that was not read yet', async (_title, response) => {
    await serve((socket) => socket.end(response))
    const client = await askSlowly('connection: close\r\n')
    await client.untilEnd()
    const got = client.text.slice(client.text.indexOf('\r\n\r\n') + 4)
    const text = /chunked/i.test(client.text)
      ? got.replace(/(^|\r\n)[0-9a-f]+\r\n/g, '').replace(/\r\n$/, '')
      : got
    expect(text === body, `${text.length} bytes`).toBe(true)
    expect(rig.plane.done).toMatchObject([{ status: 200, error: undefined, ending: 'complete' }])
  })

  it('delivers a chunked response that was not read yet', async () => {
    await serve((socket) => socket.end(`${head}transfer-encoding: chunked\r\n\r\n${chunks}`))
    const client = await askSlowly()
    const [response] = await client.responses(1)
    expect(response?.match(/[a-t]{1000}/g)?.length).toBe(20)
    expect(rig.plane.done).toMatchObject([{ responseBytes: body.length, ending: 'complete' }])
  })

  it('cuts a chunked response that misses its last chunk', async () => {
    await serve((socket) =>
      socket.end(`${head}transfer-encoding: chunked\r\n\r\n${chunks.slice(0, -5)}`),
    )
    const client = await askSlowly()
    await client.untilEnd()
    expect(client.text.endsWith('0\r\n\r\n')).toBe(false)
    expect(rig.plane.done).toMatchObject([{ ending: 'upstream-cut', error: 'upstream_reset' }])
  })

  it('answers 503 if bytes of the length are missing and nothing was relayed', async () => {
    await serve((socket) => socket.end(`${head}content-length: 30000\r\n\r\n${body}`))
    const client = await RawConnection.connect(rig.port)
    client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    const [response] = await client.responses(1)
    expect(response).toMatch(/^HTTP\/1.1 503/)
  })

  it('delivers what it has sent into a tunnel before the tunnel was open', async () => {
    await serve((socket) =>
      socket.end(
        `HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n${body}`,
      ),
    )
    const client = await askSlowly(
      'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n',
    )
    await client.untilEnd()
    expect(client.text).toMatch(/^HTTP\/1.1 101/)
    expect(client.text.endsWith(body)).toBe(true)
  })

  it('delivers every byte to clients of HTTP/2 that read slowly', async () => {
    rig.plane.response = (exchange) => exchange.relay()
    const big = body.repeat(20)
    await serve((socket) => socket.end(`${head}\r\n${big}`))
    const { connect } = await import('node:http2')
    const client = connect(`http://127.0.0.1:${rig.port}`)
    const sizes = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const stream = client.request({ ':path': '/' })
        await once(stream, 'response')
        let size = 0
        for await (const piece of stream) {
          size += (piece as Buffer).length
          await new Promise((resolve) => setImmediate(resolve))
        }
        return size
      }),
    )
    client.destroy()
    expect(sizes).toEqual(Array(8).fill(big.length))
  })
})
