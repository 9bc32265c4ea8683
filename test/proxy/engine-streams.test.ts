import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ServerStream, StreamHandler } from '../../src/engines/http/contracts/streams.ts'
import type { TlsChoice } from '../../src/engines/http/tls/tls-choice.ts'
import { clientHello } from '../support/tls-client.ts'
import { waitFor } from '../support/wait-for.ts'
import { type EngineRig, startEngine } from './engine-rig.ts'

const ways = [
  ['read past the streams of Node', true],
  ['read by events', false],
] as const

const megabyte = 1024 * 1024
const bodyOf = (length: number) => 'abcdefg\n'.repeat(Math.ceil(length / 8)).slice(0, length)

describe.each(ways)('forwarded connections, %s,', (_, usesNodeHandles) => {
  let rig: EngineRig
  let server: Server
  let port: number
  let proxied: boolean
  let streams: ServerStream[]
  let over: ServerStream[]
  let backends: Socket[]
  const cleanups: (() => unknown)[] = []

  beforeEach(async () => {
    ;[proxied, streams, over, backends] = [false, [], [], []]
    server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {})
      backends.push(socket)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const address = server.address()
    const to = typeof address === 'object' && address !== null ? address.port : 0
    const streamHandler: StreamHandler = {
      onStream(stream) {
        streams.push(stream)
        const backend = { host: '127.0.0.1', port: to, pool: `127.0.0.1:${to}` }
        stream.connect(backend, { connectTimeoutMs: 0 })
      },
      onStreamError: (stream, error) => stream.refuse(error),
      onAlternateAddress: () => {},
      isCurrent: () => true,
      onStreamDone: (stream) => over.push(stream),
    }
    rig = await startEngine({
      usesNodeHandles,
      streamHandler,
      expectsProxyHeader: () => proxied,
    })
    port = await rig.engine.listenStream(0)
  })
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup()
    for (const socket of backends) socket.destroy()
    server.close()
    await rig.close()
  })

  const open = async (): Promise<Socket> => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.on('error', () => {})
    cleanups.push(() => socket.destroy())
    await once(socket, 'connect')
    return socket
  }
  const backend = () => waitFor('the backend', () => backends.at(-1))
  const textOf = async (socket: Socket): Promise<string> => {
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    await once(socket, 'end')
    return Buffer.concat(chunks).toString()
  }

  it('can end in one direction before the other', async () => {
    const client = await open()
    client.end('question')
    const one = await backend()
    expect(await textOf(one)).toBe('question')
    one.end('answer')
    expect(await textOf(client)).toBe('answer')
    await waitFor('the end', () => over.length === 1)
    expect(over[0]).toMatchObject({ receivedBytes: 8, sentBytes: 6, error: undefined })

    const other = await open()
    const two = await waitFor('another backend', () => backends[1])
    two.end('greeting')
    expect(await textOf(other)).toBe('greeting')
    other.end('reply')
    expect(await textOf(two)).toBe('reply')
    await waitFor('the other end', () => over.length === 2)
    expect(rig.engine.counters.upstreamConnectionsOpen).toBe(0)
  })

  it('forward bytes that the client sends together with its FIN', async () => {
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    cleanups.push(() => client.destroy())
    client.end('all at once')
    expect(await textOf(await backend())).toBe('all at once')
  })

  it('apply backpressure to the backend while the client does not read, and lose nothing', async () => {
    const client = await open()
    client.pause()
    const total = 48 * megabyte
    const bytes = Buffer.alloc(total)
    for (let at = 0; at < total; at += 4) bytes.writeUInt32LE(at, at)
    const source = await backend()
    source.end(bytes)
    const moved = () => streams[0]?.sentBytes ?? 0
    let last = -1
    for (let still = 0; still < 200; still = moved() === last ? still + 1 : 0) {
      last = moved()
      await new Promise((resolve) => setImmediate(resolve))
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(last).toBeGreaterThan(0)
    expect(last).toBeLessThan(total / 2)
    let at = 0
    let isSame = true
    client.on('data', (chunk: Buffer) => {
      isSame &&= bytes.compare(chunk, 0, chunk.length, at, at + chunk.length) === 0
      at += chunk.length
    })
    client.resume()
    await once(client, 'end')
    expect([at, isSame]).toEqual([total, true])
  })

  it('keep their bytes separate while all of them transfer data', async () => {
    const count = 8
    const size = 3 * megabyte
    const clients = await Promise.all(Array.from({ length: count }, () => open()))
    await waitFor('the backends', () => backends.length === count)
    for (const one of backends) one.pipe(one)
    const texts = clients.map((client, at) => {
      client.end(Buffer.alloc(size, `${at}`))
      return textOf(client)
    })
    for (const [at, text] of (await Promise.all(texts)).entries()) {
      expect(text === `${at}`.repeat(size)).toBe(true)
    }
  })

  it('forward a reset from either side', async () => {
    const client = await open()
    const one = await backend()
    client.write('x')
    await once(one, 'data')
    const gone = once(one, 'error')
    client.resetAndDestroy()
    expect(await gone).toMatchObject([{ code: 'ECONNRESET' }])
    const other = await open()
    const two = await waitFor('another backend', () => backends[1])
    const cut = once(other, 'error')
    two.resetAndDestroy()
    expect(await cut).toMatchObject([{ code: 'ECONNRESET' }])
    await waitFor('both ends', () => over.length === 2)
    expect(rig.engine.counters.upstreamConnectionsOpen).toBe(0)
  })

  /** A port on which TLS passes through unread. */
  const passing = () => {
    const choice: TlsChoice = {
      listener: 'pass',
      place: { gateway: 'ns/gw', listener: 'pass' },
      carries: 'bytes',
      contexts: undefined,
    }
    return rig.engine.listen(0, undefined, () => choice)
  }

  it.each([
    ['after a hello in one piece', [1]],
    ['after a hello in three pieces', [0.01, 0.5]],
  ])('pass TLS through without loss if the server name was read %s', async (_title, cuts) => {
    port = await passing()
    const hello = await clientHello('a.example.com')
    const more = Buffer.from(bodyOf(3 * megabyte))
    const all = Buffer.concat([hello, more])
    const client = await open()
    client.setNoDelay(true)
    let at = 0
    for (const cut of cuts) {
      const end = Math.ceil(hello.length * cut)
      client.write(all.subarray(at, end))
      at = end
      // The reader of the hello gets this piece separately.
      await waitFor('the piece', () => client.bytesWritten === at && client.writableLength === 0)
    }
    client.end(all.subarray(at))
    const one = await backend()
    const got: Buffer[] = []
    one.on('data', (chunk: Buffer) => got.push(chunk))
    await once(one, 'end')
    expect(Buffer.concat(got).equals(all)).toBe(true)
    expect(streams[0]).toMatchObject({ protocol: 'tls', serverName: 'a.example.com' })
    one.end('back')
    expect(await textOf(client)).toBe('back')
    await waitFor('the end', () => over.length === 1)
    expect(over[0]).toMatchObject({ receivedBytes: all.length, sentBytes: 4 })
  })

  it('pass TLS through if the client closes right after its hello', async () => {
    port = await passing()
    const hello = await clientHello('a.example.com')
    const client = await open()
    client.end(hello)
    const one = await backend()
    const got: Buffer[] = []
    one.on('data', (chunk: Buffer) => got.push(chunk))
    await once(one, 'end')
    expect(Buffer.concat(got).equals(hello)).toBe(true)
    one.resetAndDestroy()
    const [error] = await once(client, 'error')
    expect(error).toMatchObject({ code: 'ECONNRESET' })
  })

  it('get the client address from a PROXY header, which is not forwarded', async () => {
    proxied = true
    const client = await open()
    client.end('PROXY TCP4 192.0.2.7 192.0.2.1 4711 443\r\nhello')
    const one = await backend()
    expect(await textOf(one)).toBe('hello')
    expect(streams[0]?.source).toMatchObject({ address: '192.0.2.7', port: 4711 })
    one.end('back')
    expect(await textOf(client)).toBe('back')
  })
})
