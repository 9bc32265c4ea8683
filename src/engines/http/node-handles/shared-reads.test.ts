import { once } from 'node:events'
import { type AddressInfo, connect, createServer, Socket } from 'node:net'
import { createServer as createSecureServer, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Authority } from '../../../../test/support/certificates.ts'
import { handshake } from '../../../../test/support/tls-client.ts'
import { waitFor } from '../../../../test/support/wait-for.ts'
import { createIoCore } from '../../core/index.ts'
import { SharedReads } from './shared-reads.ts'
import { takeWaiting } from './waiting-bytes.ts'

const server = createServer()
let accepted: Socket
let client: Socket

beforeEach(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  ;[accepted] = await once(server, 'connection')
})

afterEach(() => {
  client.destroy()
  accepted.destroy()
  server.close()
})

test('an accepted socket is read into the memory of the core', async () => {
  const core = createIoCore({ memoryPages: 32 })
  const reads = new SharedReads(core, true)
  const arrived = new Promise<number>((resolve) => {
    const taken = reads.takeOver(accepted, 16_384, (length) => {
      resolve(length)
      return true
    })
    if (taken === undefined) throw new Error('not taken over')
    accepted = taken
  })
  client.write('some bytes')
  const length = await arrived
  expect(reads.memory).toBe(core.bytes)
  expect(core.bytes.toString('latin1', reads.start, reads.start + length)).toBe('some bytes')
})

test('a socket that was read from returns its waiting bytes, and is then read into the memory of the core', async () => {
  const core = createIoCore({ memoryPages: 32 })
  const reads = new SharedReads(core, true)
  client.write('first second')
  await once(accepted, 'readable')
  const read = String(accepted.read())
  accepted.unshift(Buffer.from(read.slice('first'.length)))
  expect(String(takeWaiting(accepted))).toBe(' second')
  const arrived = new Promise<number>((resolve) => {
    const taken = reads.takeOver(accepted, 16_384, (length) => {
      resolve(length)
      return true
    })
    if (taken === undefined) throw new Error('not taken over')
    accepted = taken
  })
  client.write('third')
  const length = await arrived
  expect(core.bytes.toString('latin1', reads.start, reads.start + length)).toBe('third')
})

test('a socket with a waiting end of stream still emits its events', async () => {
  client.end('all')
  await once(accepted, 'readable')
  const pieces: string[] = []
  await waitFor('the end', () => {
    const waiting = takeWaiting(accepted)
    pieces.push(String(waiting ?? ''))
    return waiting === undefined
  })
  pieces.push(String((await accepted.toArray()).map(String).join('')))
  expect(pieces.join('')).toBe('all')
})

test('a TLS socket is read into the memory of the core once its handshake is over', async () => {
  const authority = new Authority()
  const { certificate: cert, key } = authority.issue(['localhost'])
  const trusted = { ca: authority.certificate, servername: 'localhost' }
  const secureServer = createSecureServer({ cert, key }).listen(0, '127.0.0.1')
  await once(secureServer, 'listening')
  const reads = new SharedReads(createIoCore({ memoryPages: 32 }), true)
  const pieces: string[] = []
  const ended = new Promise<void>((resolve) => {
    secureServer.once('secureConnection', (socket: TLSSocket) => {
      const taken = reads.takeOver(socket, 16_384, (length) => {
        pieces.push(reads.memory.toString('latin1', reads.start, reads.start + length))
        return true
      })
      // It stays itself: its handle tells it of the protocol's errors.
      expect(taken).toBe(socket)
      socket.once('end', resolve)
    })
  })
  const talker = await handshake((secureServer.address() as AddressInfo).port, trusted)
  const text = `first ${'x'.repeat(100_000)} last`
  talker.end(text)
  await ended
  expect(pieces.join('')).toBe(text)
  // Records hold up to 16,384 bytes.
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThanOrEqual(16_384)
  talker.destroy()
  secureServer.close()
  authority.dispose()
})

test('a socket whose handle cannot read into given memory is left unchanged', async () => {
  const core = createIoCore({ memoryPages: 32 })
  const onRead = () => true
  expect(new SharedReads(core, false).takeOver(accepted, 16_384, onRead)).toBeUndefined()
  expect(new SharedReads(core, true).takeOver(new Socket(), 16_384, onRead)).toBeUndefined()
  client.write('x')
  expect(String((await once(accepted, 'data'))[0])).toBe('x')
})
