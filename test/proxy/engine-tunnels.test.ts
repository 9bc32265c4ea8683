/** How tunnels of CONNECT end: the sockets of the gateway are closed, whatever the client does. */
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { createSecureContext, createServer } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { frameTypes } from '../../src/engines/http/http2/frames.ts'
import { useAuthority } from '../support/fixture.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { clientHello } from '../support/tls-client.ts'
import {
  askHttp2Tunnel,
  askTunnel,
  closed,
  openHttp2,
  readUntil,
} from '../support/tunnel-client.ts'
import { waitFor } from '../support/wait-for.ts'
import { type EngineRig, type RawConnection, RawUpstream, startEngine } from './engine-rig.ts'
import { data, endHeaders, endStream, FrameClient, frame, headers } from './frame-client.ts'

const authority = useAuthority()
const leaf = authority.issue(['a.example.com'])
let rig: EngineRig
let upstream: RawUpstream

const noLimits = { idleTimeoutMs: 0, maxDurationMs: 0 }
/** CANCEL of HTTP/2. */
const cancel = 8

beforeEach(async () => {
  rig = await startEngine()
  upstream = await RawUpstream.start()
  rig.plane.upstream = upstream.address
  rig.plane.options = { ...rig.plane.options, tunnel: noLimits }
})

afterEach(async () => {
  await rig.close()
  upstream.close()
})

/** Writes to the gateway until that fails, as it does once the gateway has closed the socket. */
async function closedByGateway(connection: RawConnection): Promise<void> {
  await waitFor('a connection that the gateway has closed', () => {
    if (!connection.closed) connection.write('x')
    return connection.closed
  })
}

describe('a tunnel over HTTP/2', () => {
  it.each([
    ['NO_ERROR', 0],
    ['CANCEL', cancel],
  ])('is closed if its client ends the stream and resets it with %s at once', async (_, code) => {
    const client = await FrameClient.connect(rig.port)
    client.send(
      headers(
        1,
        [
          [':method', 'CONNECT'],
          [':authority', 'a.example.com:443'],
        ],
        endHeaders,
      ),
    )
    await client.find(({ type }) => type === frameTypes.headers)
    client.send(data(1, 'hi'))
    await waitFor('bytes', () => upstream.connections[0]?.text === 'hi')
    client.send(
      data(1, '', endStream),
      frame(frameTypes.rstStream, 0, 1, `\0\0\0${String.fromCharCode(code)}`),
    )
    await closedByGateway(upstream.connections[0] as RawConnection)
    client.connection.socket.destroy()
  })
})

describe('a tunnel whose client must begin with TLS', () => {
  const clock = new ManualClock()
  const timeoutMs = 15_000

  beforeEach(async () => {
    await rig.close()
    rig = await startEngine({ clock })
    rig.plane.upstream = upstream.address
    const tunnel = { ...noLimits, serverName: 'a.example.com', helloTimeoutMs: timeoutMs }
    rig.plane.options = { ...rig.plane.options, tunnel }
  })

  it.each([0, 60])('is cut if only %s bytes of its ClientHello come in time', async (bytes) => {
    const hello = await clientHello('a.example.com')
    const { status, socket } = await askTunnel(rig.port, 'a.example.com:443')
    expect(status).toBe(200)
    if (bytes > 0) socket.write(hello.subarray(0, bytes))
    clock.advance(timeoutMs - 1_000)
    expect(rig.plane.done).toEqual([])
    const wasReset = closed(socket)
    clock.advance(2_000)
    expect(await wasReset).toBe(true)
    expect(rig.plane.done).toMatchObject([{ error: 'server_name_refused' }])
  })

  it('stays open once its ClientHello has come', async () => {
    const hello = await clientHello('a.example.com')
    const { socket } = await askTunnel(rig.port, 'a.example.com:443')
    socket.write(hello)
    await waitFor('the hello', () => upstream.connections[0]?.received === hello.length)
    clock.advance(10 * timeoutMs)
    upstream.connections[0]?.write('still open')
    expect(await readUntil(socket, 'still open')).toBe('still open')
    socket.destroy()
  })
})

describe('a tunnel to a destination with TLS', () => {
  it.each(['ends and resets', 'resets'])('is closed if its client %s', async (how) => {
    const accepted: Socket[] = []
    const options = { cert: leaf.certificate, key: leaf.key, allowHalfOpen: true }
    const server = createServer(options, (socket) => {
      socket.on('error', () => {})
      socket.resume()
      accepted.push(socket)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const tls = {
      context: createSecureContext({ ca: authority.certificate }),
      serverName: 'a.example.com',
      requiresTrust: true,
      checkName: () => undefined,
      alpn: [],
      statedAlpn: [],
    }
    rig.plane.upstream = { host: '127.0.0.1', port, pool: 'tls', tls }
    const session = await openHttp2(rig.port)
    const { status, stream } = await askHttp2Tunnel(session, 'a.example.com:443')
    expect(status).toBe(200)
    await waitFor('the handshake', () => accepted.length === 1)
    if (how.startsWith('ends')) stream.end()
    stream.close(cancel)
    await waitFor('a connection that the gateway has closed', () => {
      if (accepted[0]?.closed === false) accepted[0].write('x')
      return accepted[0]?.closed === true
    })
    server.close()
    session.destroy()
  })
})
