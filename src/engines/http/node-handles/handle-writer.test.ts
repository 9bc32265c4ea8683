import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, Socket } from 'node:net'
import { createServer as createSecureServer } from 'node:tls'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { Authority } from '../../../../test/support/certificates.ts'
import { handshake } from '../../../../test/support/tls-client.ts'
import { eventually } from '../../../../test/support/wait-for.ts'
import { createIoCore } from '../../core/index.ts'
import type { SocketWriter } from '../bytes/socket-writer.ts'
import { WriteBuffers } from '../bytes/write-buffers.ts'
import { StreamWriter } from '../sockets/stream-writer.ts'
import { HandleWrites } from './handle-writer.ts'

const server = createServer()
const authority = new Authority()
const { certificate: cert, key } = authority.issue(['localhost'])
const secureServer = createSecureServer({ cert, key })
let writing: Socket
let reading: Socket
/** The TCP socket of `reading`. */
let raw: Socket
let drained = 0

beforeEach(async () => {
  drained = 0
  server.listen(0, '127.0.0.1')
  secureServer.listen(0, '127.0.0.1')
  await Promise.all([once(server, 'listening'), once(secureServer, 'listening')])
})

afterEach(() => {
  reading?.destroy()
  writing?.destroy()
  server.close()
  secureServer.close()
})
afterAll(() => authority.dispose())

const portOf = (of: Server) => (of.address() as AddressInfo).port

async function connected(): Promise<void> {
  raw = connect(portOf(server), '127.0.0.1')
  reading = raw
  ;[writing] = await once(server, 'connection')
}

async function secured(): Promise<void> {
  const client = { ca: authority.certificate, servername: 'localhost' }
  const accepted = once(secureServer, 'secureConnection')
  raw = connect(portOf(secureServer), '127.0.0.1')
  reading = await handshake(0, client, { socket: raw })
  ;[writing] = await accepted
}

const owner = {
  onWritten: () => {
    drained++
  },
  onWriteError: (error: Error) => writing.destroy(error),
}

const byHandle = () => HandleWrites.find()?.writerFor(writing, owner)
const byStream = () => new StreamWriter(writing, owner)

type Way = readonly [string, () => Promise<void>, () => SocketWriter | undefined]
const ways: readonly Way[] = [
  ['its handle', connected, byHandle],
  ['its stream', connected, byStream],
  ['its handle, over TLS', secured, byHandle],
  ['its stream, over TLS', secured, byStream],
]

/** Reads until so many bytes have come. */
async function take(length: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  let size = 0
  reading.on('data', (piece: Buffer) => {
    pieces.push(piece)
    size += piece.length
  })
  await eventually(() => expect(size).toBe(length))
  return Buffer.concat(pieces)
}

test.each(ways)('a socket gets text and views in order by way of %s', async (_, open, way) => {
  await open()
  const writer = way()
  writer?.writeText('one \xe9 ')
  writer?.writeParts(['two ', Buffer.from('three '), 'four '])
  writer?.writeParts([Buffer.from('five')])
  expect((await take(25)).toString('latin1')).toBe('one \xe9 two three four five')
})

test.each(ways)(
  'bytes that a peer does not read are queued in order by way of %s, and the drain is reported once',
  async (_, open, way) => {
    await open()
    const writer = way()
    const piece = (at: number) => Buffer.alloc(256 * 1024, `${at % 10}`)
    const count = 64
    for (let at = 0; at < count; at++) {
      // Text between views, and writes of each kind while others wait.
      if (at % 3 === 0) writer?.writeText(piece(at).toString('latin1'))
      else if (at % 3 === 1) writer?.writeParts([piece(at)])
      else writer?.writeParts([piece(at).toString('latin1', 0, 100), piece(at).subarray(100)])
    }
    expect(writer?.needsDrain).toBe(true)
    expect(writer?.backlog).toBeGreaterThan(1024 * 1024)
    expect(drained).toBe(0)
    const all = await take(count * 256 * 1024)
    for (let at = 0; at < count; at++) {
      expect(all.subarray(at * 256 * 1024, (at + 1) * 256 * 1024).equals(piece(at))).toBe(true)
    }
    await eventually(() => expect(drained).toBe(1))
    expect(writer?.needsDrain).toBe(false)
    expect(writer?.backlog).toBe(0)
    // What comes after the end of the wait leaves by itself again.
    writer?.writeText('more')
    await eventually(() => expect(writer?.backlog).toBe(0))
  },
)

test.each(ways)(
  'queued buffers are not reused before they are sent, by way of %s',
  async (_, open, way) => {
    await open()
    const writer = way()
    const core = createIoCore({ memoryPages: 64 })
    const buffers = new WriteBuffers(core)
    const line = (at: number) => `${at}:`.padEnd(8_000, `${at % 7}`)
    let expected = ''
    // More than a kernel buffers: the queued rest must not be overwritten by later writes.
    for (let at = 0; at < 1_500; at++) {
      const buffer = writer?.takesBuffer ? buffers.lease() : undefined
      expected += line(at)
      if (buffer === undefined) {
        writer?.writeText(line(at))
        continue
      }
      expect(buffer.addText(line(at))).toBe(true)
      writer?.writeBuffer(buffer)
    }
    expect(writer?.backlog).toBeGreaterThan(16_384)
    expect((await take(expected.length)).toString('latin1') === expected).toBe(true)
    await eventually(() => expect(writer?.backlog).toBe(0))
    // No buffer is pinned any more: all of them can be leased.
    const all = Array.from({ length: 64 }, () => buffers.lease())
    expect(new Set(all).has(undefined)).toBe(false)
    expect(buffers.lease()).toBeUndefined()
  },
)

// TLS streams treat the lost connection as an end, and wait for a reader.
const failing = ways.filter(([name]) => name !== 'its stream, over TLS')

test.each(failing)('a socket closes if its peer has gone, by way of %s', async (_, open, way) => {
  await open()
  const writer = way()
  const codes: (string | undefined)[] = []
  writing.on('error', ({ code }: NodeJS.ErrnoException) => codes.push(code))
  const closed = new Promise((resolve) => writing.once('close', resolve))
  raw.resetAndDestroy()
  const timer = setInterval(() => writer?.writeText('x'), 1)
  await closed
  clearInterval(timer)
  if (open === connected) expect(['EPIPE', 'ECONNRESET']).toContain(codes[0])
  expect(codes.length).toBeLessThanOrEqual(1)
  // Later writes are ignored and do not throw.
  writer?.writeText('y')
  writer?.writeParts([Buffer.from('z')])
})

test.each(ways)(
  'the end of the stream follows everything written, by way of %s',
  async (_, open, way) => {
    await open()
    const ended = once(reading, 'end')
    const writer = way()
    const piece = Buffer.alloc(1024 * 1024, 'x')
    writer?.writeText('first ')
    writer?.writeParts([piece])
    writer?.writeText('last')
    writer?.end()
    const all = await take(piece.length + 10)
    await ended
    expect(all.subarray(-5).toString()).toBe('xlast')
  },
)

test('a TLS handle copies what it accepts, and keeps views only after a partial write', async () => {
  await secured()
  const writer = byHandle()
  const first = Buffer.alloc(64 * 1024, 'a')
  writer?.writeParts(['head ', first])
  expect([writer?.holdsViews, writer?.needsDrain]).toEqual([false, false])
  first.fill('z')
  const second = Buffer.alloc(20 * 1024, 'b')
  writer?.writeParts([second])
  expect([writer?.holdsViews, writer?.needsDrain]).toEqual([true, true])
  const all = await take(5 + first.length + second.length)
  expect(all.equals(Buffer.concat([Buffer.from('head '), first.fill('a'), second]))).toBe(true)
  await eventually(() => expect(drained).toBe(1))
  expect([writer?.holdsViews, writer?.needsDrain]).toEqual([false, false])
})

const handles = ways.filter(([name]) => name.includes('handle'))

test.each(handles)(
  'a socket can be destroyed while bytes are queued, by way of %s',
  async (_, open, way) => {
    await open()
    const writer = way()
    writer?.writeText('some ')
    writer?.writeText('more')
    const waits = writer?.backlog ?? 0
    writer?.writeParts([Buffer.alloc(32 * 1024 * 1024)])
    expect(writer?.backlog).toBe(waits + 32 * 1024 * 1024)
    writing.destroy()
    await once(writing, 'close')
    expect(drained).toBe(0)
  },
)

test('a socket whose handle cannot be written to uses its stream', () => {
  expect(HandleWrites.find()?.writerFor(new Socket(), owner)).toBeUndefined()
  const writeLatin1String = () => 0
  const handle = { writeLatin1String, close: () => {}, readStart: () => 0, readStop: () => 0 }
  const odd = new Socket({ handle } as object)
  expect(HandleWrites.find()?.writerFor(odd, owner)).toBeUndefined()
})

test.each(ways.slice(0, 2))(
  'a socket can be reset while bytes before its end wait, by way of %s',
  async (_, open, way) => {
    await open()
    const writer = way()
    writer?.writeText('x'.repeat(64 * 1024 * 1024))
    writer?.end()
    const lost = once(reading, 'error')
    writing.resetAndDestroy()
    reading.resume()
    expect((await lost)[0]).toMatchObject({ code: 'ECONNRESET' })
  },
)
