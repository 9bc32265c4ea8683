import { once } from 'node:events'
import { type AddressInfo, connect, createServer, Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { eventually } from '../../testing/wait-for.ts'
import { HandleWrites } from './handle-writer.ts'
import { type SocketWriter, StreamWriter } from './socket-writer.ts'

const server = createServer()
let writing: Socket
let reading: Socket
let drained = 0

beforeEach(async () => {
  drained = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  reading = connect((server.address() as AddressInfo).port, '127.0.0.1')
  ;[writing] = await once(server, 'connection')
})

afterEach(() => {
  reading.destroy()
  writing.destroy()
  server.close()
})

const onDrain = () => {
  drained++
}

const ways: readonly (readonly [string, () => SocketWriter | undefined])[] = [
  ['its handle', () => HandleWrites.find()?.writerFor(writing, onDrain)],
  ['its stream', () => new StreamWriter(writing, onDrain)],
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

test.each(ways)('a socket is written to by way of %s, text and views in order', async (_, open) => {
  const writer = open()
  writer?.writeText('one \xe9 ')
  writer?.writeParts(['two ', Buffer.from('three '), 'four '])
  writer?.writeParts([Buffer.from('five')])
  expect((await take(25)).toString('latin1')).toBe('one \xe9 two three four five')
})

test.each(ways)(
  'what a peer does not read waits in order, by way of %s, and its end is told once',
  async (_, open) => {
    const writer = open()
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
    // What comes after the end of the wait is written at once again.
    writer?.writeText('more')
    expect(writer?.backlog).toBe(0)
  },
)

test.each(ways)('a peer that has gone ends the socket, by way of %s', async (_, open) => {
  const writer = open()
  const failed = once(writing, 'error')
  const closed = new Promise((resolve) => writing.once('close', resolve))
  reading.resetAndDestroy()
  const timer = setInterval(() => writer?.writeText('x'), 1)
  const [error] = await failed
  await closed
  clearInterval(timer)
  expect(['EPIPE', 'ECONNRESET']).toContain((error as NodeJS.ErrnoException).code)
  // Whoever writes on is not heard, and nothing is thrown.
  writer?.writeText('y')
  writer?.writeParts([Buffer.from('z')])
})

test('a socket is cut although much waits for its peer', async () => {
  const writer = HandleWrites.find()?.writerFor(writing, onDrain)
  writer?.writeParts([Buffer.alloc(32 * 1024 * 1024)])
  expect(writer?.backlog).toBe(32 * 1024 * 1024)
  writing.destroy()
  await once(writing, 'close')
  expect(drained).toBe(0)
})

test('a socket whose handle cannot be written to is left to its stream', () => {
  expect(HandleWrites.find()?.writerFor(new Socket(), onDrain)).toBeUndefined()
  const writeLatin1String = () => 0
  const handle = { writeLatin1String, close: () => {}, readStart: () => 0, readStop: () => 0 }
  const odd = new Socket({ handle } as object)
  expect(HandleWrites.find()?.writerFor(odd, onDrain)).toBeUndefined()
})
