import { createHash } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { TicketKeyring } from '../../src/engines/http/tls/session-tickets.ts'
import type { ChooseTls } from '../../src/engines/http/tls/tls-choice.ts'
import { ListenerContexts } from '../../src/engines/http/tls/tls-context.ts'
import { Authority } from '../support/certificates.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { handshake } from '../support/tls-client.ts'
import { waitFor } from '../support/wait-for.ts'
import { answering, type EngineRig, RawConnection, RawUpstream, startEngine } from './engine-rig.ts'

let authority: Authority
let choose: ChooseTls

beforeAll(() => {
  authority = new Authority()
  const { certificate, key } = authority.issue(['a.example.com'])
  const pair = { certificate: Buffer.from(certificate), privateKey: Buffer.from(key) }
  const contexts = new ListenerContexts({ key: 'a', pairs: [pair] }, {}, new TicketKeyring())
  const place = { gateway: 'ns/gw', listener: 'a' }
  const choice = { listener: 'a', place, carries: 'http', contexts } as const
  choose = (name) => (name === 'a.example.com' ? choice : undefined)
})
afterAll(() => authority.dispose())

const client = () => ({ ca: authority.certificate, servername: 'a.example.com' })

const ways = [
  ['past the streams of Node', true],
  ['through streams', false],
] as const

describe.each(ways)('TLS connections of the engine, %s,', (_, usesNodeHandles) => {
  let rig: EngineRig
  let port: number
  const clock = new ManualClock()
  const cleanups: (() => unknown)[] = []

  beforeEach(async () => {
    rig = await startEngine({ clock, usesNodeHandles })
    port = await rig.engine.listen(0, undefined, choose)
  })
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup()
    await rig.close()
  })

  const open = async (): Promise<TLSSocket> => {
    const socket = await handshake(port, client())
    cleanups.push(() => socket.destroy())
    return socket
  }

  it('[limit.tls-handshake-timeout] have 15 seconds for the handshake', async () => {
    const silent = await RawConnection.connect(port)
    const slow = await RawConnection.connect(port)
    slow.write(Buffer.from([22, 3, 1, 2, 0, 1]))
    const served = await open()
    await waitFor('the server', () => rig.engine.counters.tlsConnectionsOpen === 1)
    clock.advance(14_900)
    expect([silent.closed, slow.closed]).toEqual([false, false])
    clock.advance(200)
    await Promise.all([silent.untilEnd(), slow.untilEnd()])
    await waitFor('both', () => rig.engine.counters.tlsHandshakesFailed === 2)
    expect(served.destroyed).toBe(false)
  })

  it('refuse renegotiation', async () => {
    const socket = await handshake(port, client(), { maxVersion: 'TLSv1.2' })
    const ended = new Promise((resolve) => socket.once('close', resolve))
    const refused = new Promise((resolve) =>
      socket.renegotiate({ rejectUnauthorized: false }, (error) => resolve(error)),
    )
    expect(await Promise.race([refused, ended.then(() => new Error('closed'))])).toBeInstanceOf(
      Error,
    )
    socket.destroy()
  })

  it('resume a session', async () => {
    const upstream = await answering('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
    cleanups.push(() => upstream.close())
    rig.plane.upstream = upstream.address
    const first = await open()
    const session = new Promise<Buffer>((resolve) => first.once('session', resolve))
    first.write('GET / HTTP/1.1\r\nhost: a.example.com\r\n\r\n')
    first.resume()
    const second = await handshake(port, client(), { session: await session })
    expect(second.isSessionReused()).toBe(true)
    second.destroy()
  })

  it('get an alert for an unknown name, and nothing for bytes that are not TLS', async () => {
    const unknown = handshake(port, { ...client(), servername: 'b.example.com' })
    await expect(unknown).rejects.toThrow(/unrecognized name/)
    const plain = await RawConnection.connect(port)
    plain.write('GET / HTTP/1.1\r\nhost: a.example.com\r\n\r\n')
    await plain.untilEnd()
    expect(plain.text).toBe('')
  })

  it('are counted apart from plaintext, with the bytes of HTTP', async () => {
    const socket = await open()
    await RawConnection.connect(rig.port)
    await waitFor('both', () => rig.engine.counters.connectionsOpen === 2)
    const { counters } = rig.engine
    expect(counters).toMatchObject({ tlsConnectionsTotal: 1, tlsConnectionsOpen: 1 })
    socket.destroy()
    await waitFor('the end', () => counters.tlsConnectionsOpen === 0)
    expect(counters).toMatchObject({ tlsConnectionsTotal: 1, connectionsTotal: 2 })
  })

  it('serve pipelined requests that come with the end of the handshake', async () => {
    const upstream = await answering('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
    cleanups.push(() => upstream.close())
    rig.plane.upstream = upstream.address
    const socket = await open()
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
    })
    const get = 'GET / HTTP/1.1\r\nhost: a.example.com\r\n\r\n'
    socket.write(get + get + get)
    await waitFor('three answers', () => text.split('\r\n\r\nok').length === 4)
  })

  it('end with an error, not a clean close, if a response is truncated', async () => {
    const upstream = await RawUpstream.start()
    cleanups.push(() => upstream.close())
    rig.plane.upstream = upstream.address
    upstream.onData = (connection) => {
      connection.write('HTTP/1.1 200 OK\r\n\r\npart')
    }
    const socket = await open()
    const events: string[] = []
    for (const event of ['end', 'error', 'close']) socket.on(event, () => events.push(event))
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
    })
    socket.write('GET / HTTP/1.0\r\nhost: a.example.com\r\n\r\n')
    await waitFor('the part', () => text.endsWith('part'))
    upstream.connections[0]?.socket.resetAndDestroy()
    await waitFor('the close', () => events.includes('close'))
    expect(events).toEqual(['error', 'close'])
  })

  it('are asked to close by a drain, and handshakes are cut at its end', async () => {
    const idle = await open()
    const half = await RawConnection.connect(port)
    half.write(Buffer.from([22]))
    await waitFor('the connection', () => rig.engine.counters.connectionsOpen === 1)
    const closed = new Promise((resolve) => idle.once('close', resolve))
    idle.resume()
    await rig.engine.drain(0, 10)
    await closed
    await expect(handshake(port, client())).rejects.toThrow()
    rig.engine.close()
    await half.untilEnd()
  })
})

describe.each(ways)('bodies over TLS, %s,', (_, usesNodeHandles) => {
  const size = 64 * 1024 * 1024
  let rig: EngineRig
  let port: number
  let server: Server

  beforeEach(async () => {
    rig = await startEngine({ usesNodeHandles })
    port = await rig.engine.listen(0, undefined, choose)
  })
  afterEach(async () => {
    await rig.close()
    server.closeAllConnections()
    server.close()
  })

  async function serve(handler: Parameters<typeof createServer>[1]): Promise<void> {
    server = createServer(handler)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port: at } = server.address() as AddressInfo
    rig.plane.upstream = { host: '127.0.0.1', port: at, pool: `127.0.0.1:${at}` }
  }

  const block = Buffer.from(Array.from({ length: 65_521 }, (_, at) => (at * 31) & 255))
  const hashOf = (bytes: number) => {
    const hash = createHash('sha256')
    for (let at = 0; at < bytes; at += block.length) {
      hash.update(block.subarray(0, Math.min(block.length, bytes - at)))
    }
    return hash.digest('hex')
  }

  /** Sends so many bytes as fast as the other side takes them. */
  function pour(out: NodeJS.WritableStream, bytes: number, sent: (count: number) => void): void {
    let at = 0
    const go = () => {
      while (at < bytes) {
        const piece = block.subarray(0, Math.min(block.length, bytes - at))
        at += piece.length
        sent(at)
        if (!out.write(piece)) {
          out.once('drain', go)
          return
        }
      }
      out.end()
    }
    go()
  }

  /** Resolves once a count has stood still for a while. */
  async function stands(count: () => number): Promise<number> {
    let last = -1
    let same = 0
    await waitFor('the sender to be held up', () => {
      same = count() === last && last > 0 ? same + 1 : 0
      last = count()
      return same > 20
    })
    return last
  }

  const send = (method: string) =>
    request({
      host: '127.0.0.1',
      port,
      method,
      agent: false,
      ...client(),
      headers: { host: 'a.example.com' },
    })

  it('arrive whole in both directions, 10 MB each', async () => {
    const bytes = 10 * 1024 * 1024
    await serve((incoming, response) => {
      const hash = createHash('sha256')
      incoming.on('data', (chunk) => hash.update(chunk))
      incoming.on('end', () => {
        response.setHeader('x-received', hash.digest('hex'))
        pour(response, bytes, () => {})
      })
    })
    const outgoing = send('POST')
    pour(outgoing, bytes, () => {})
    const hash = createHash('sha256')
    const received = await new Promise((resolve, reject) => {
      outgoing.once('error', reject)
      outgoing.once('response', (response) => {
        response.on('data', (chunk) => hash.update(chunk))
        response.once('end', () => resolve(response.headers['x-received']))
        response.once('error', reject)
      })
    })
    expect(received).toBe(hashOf(bytes))
    expect(hash.digest('hex')).toBe(hashOf(bytes))
  })

  it('apply backpressure to the upstream while the client does not read', async () => {
    let sent = 0
    await serve((_, response) =>
      pour(response, size, (count) => {
        sent = count
      }),
    )
    const outgoing = send('GET').end()
    const hash = createHash('sha256')
    const ended = new Promise<void>((resolve, reject) => {
      outgoing.once('error', reject)
      outgoing.once('response', async (response) => {
        expect(await stands(() => sent)).toBeLessThan(size)
        response.on('data', (chunk) => hash.update(chunk))
        response.once('end', () => resolve())
        response.once('error', reject)
      })
    })
    await ended
    expect(hash.digest('hex')).toBe(hashOf(size))
  })

  it('apply backpressure to the client while the upstream does not read', async () => {
    let sent = 0
    await serve(async (incoming, response) => {
      const hash = createHash('sha256')
      const stood = await stands(() => sent)
      incoming.on('data', (chunk) => hash.update(chunk))
      incoming.once('end', () => response.end(`${stood < size} ${hash.digest('hex')}`))
    })
    const outgoing = send('POST')
    pour(outgoing, size, (count) => {
      sent = count
    })
    const answer = await new Promise<string>((resolve, reject) => {
      outgoing.once('error', reject)
      outgoing.once('response', (response) => {
        response.once('data', (chunk: Buffer) => resolve(chunk.toString()))
      })
    })
    expect(answer).toBe(`true ${hashOf(size)}`)
  })

  it('pass through an upgraded tunnel in both directions', async () => {
    await serve(() => {})
    server.on('upgrade', (_, socket) => {
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n',
      )
      socket.pipe(socket)
    })
    const socket = await handshake(port, client())
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
    })
    const head =
      'GET / HTTP/1.1\r\nhost: a.example.com\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n'
    socket.write(head)
    await waitFor('the switch', () => text.includes('\r\n\r\n'))
    socket.write('to and fro')
    await waitFor('the echo', () => text.endsWith('\r\n\r\nto and fro'))
    socket.end()
    await new Promise((resolve) => socket.once('close', resolve))
  })
})
