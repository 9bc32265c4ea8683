/** Readers of what a connection begins with, and of HTTP/1.1 and HTTP/2. */

import { INCOMPLETE } from '../../src/engines/core/index.ts'
import { UnreadBytes } from '../../src/engines/http/bytes/unread-bytes.ts'
import { FrameReader } from '../../src/engines/http/http2/frame-reader.ts'
import { HpackDecoder } from '../../src/engines/http/http2/hpack-decoder.ts'
import { MessageBody } from '../../src/engines/http/message/message-body.ts'
import { readProxyHeader } from '../../src/engines/http/sockets/proxy-protocol.ts'
import { ClientHelloReader } from '../../src/engines/http/tls/client-hello.ts'
import { GrowingBytes } from '../../src/ground/base/growing-bytes.ts'
import { filled, heads, ignore, large, type Reader } from './reader.ts'

const record = (bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from([22, 3, 1, bytes.length >> 8, bytes.length & 255]), bytes])

/** The beginning of a hello in records of one size; it never ends, so that all of it is read. */
function hello(size: number, fragment: number): Buffer {
  const message = Buffer.alloc(Math.floor((size * fragment) / (fragment + 5)))
  message.set([1, 0, 0x3f, 0xff])
  const records: Buffer[] = []
  for (let at = 0; at < message.length; at += fragment) {
    records.push(record(message.subarray(at, at + fragment)))
  }
  return Buffer.concat(records)
}

function http2Frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

export function connectionReaders(): Reader[] {
  return [
    ...([1, 100, 16_000] as const).map(
      (fragment): Reader => ({
        id: `client-hello.records-of-${fragment}`,
        size: 8 * 1024,
        bytes: (size) => hello(size, fragment),
        start() {
          const reader = new ClientHelloReader()
          return (piece) => void reader.push(piece)
        },
      }),
    ),
    {
      id: 'proxy-protocol',
      size: 2000,
      bytes(size) {
        const head = Buffer.from('\r\n\r\n\0\r\nQUIT\n!\x11\0\0', 'latin1')
        head.writeUInt16BE(size, 14)
        return Buffer.concat([head, Buffer.alloc(size - 1)])
      },
      start() {
        const bytes = new GrowingBytes()
        return (piece) => {
          bytes.add(piece, 0, piece.length)
          readProxyHeader(bytes.content)
        }
      },
    },
    ...(['fields', 'one-field', 'response'] as const).map(
      (id): Reader => ({
        id: `head.${id}`,
        size: 28 * 1024,
        bytes(size) {
          const line = id === 'response' ? 'HTTP/1.1 200 OK\r\n' : 'GET / HTTP/1.1\r\nHost: a\r\n'
          const rest =
            id === 'one-field'
              ? Buffer.concat([Buffer.from('a: '), filled('x', size)])
              : filled('name: a value that is longer\r\n', size)
          return Buffer.concat([Buffer.from(line), rest])
        },
        start() {
          const unread = new UnreadBytes()
          let resume = 0
          const read = id === 'response' ? 'readResponse' : 'readRequest'
          return (piece) => {
            unread.add(piece, 0, piece.length)
            const code = heads[read](unread.bytes, unread.start, unread.end, 60_000, resume)
            if (code !== INCOMPLETE) throw new Error(`the head is refused with ${code}`)
            resume = heads.resume
            unread.keep(piece)
          }
        },
      }),
    ),
    ...(['1', '1000', 'held'] as const).map(
      (id): Reader => ({
        id: `chunked.${id}`,
        size: 512 * 1024,
        bytes: (size) =>
          filled(id === '1000' ? `3e8\r\n${'x'.repeat(1000)}\r\n` : '1\r\nx\r\n', size),
        start() {
          const body = new MessageBody(heads, { resumeBody: ignore })
          body.start('chunked', -1, false)
          if (id === 'held') void body.buffer(large)
          else body.discard()
          return (piece) => void body.feed(piece, 0, piece.length)
        },
      }),
    ),
  ]
}

export function http2Readers(): Reader[] {
  const field = Buffer.from([0x00, 1, 0x61, 1, 0x62])
  const shapes = {
    pings: () => http2Frame(6, 0, 0, Buffer.alloc(8)),
    data: () => http2Frame(0, 0, 1, filled('x', 16_000)),
    'small-data': () => http2Frame(0, 0, 1, filled('x', 1)),
    padding: () => http2Frame(0, 8, 1, Buffer.concat([Buffer.from([99]), Buffer.alloc(100)])),
    headers: () => http2Frame(1, 4, 1, filled(field, 1000)),
    blocks: () =>
      Buffer.concat([http2Frame(1, 0, 1, field), http2Frame(9, 4, 1, filled(field, 10_000))]),
  }
  const handler = new Proxy({} as never, { get: () => ignore })
  const limits = { maxFrameSize: 16_384, maxBlockSize: 64 * 1024, maxContinuations: 16 }
  return Object.entries(shapes).map(
    ([id, unit]): Reader => ({
      id: `http2.${id}`,
      size: 512 * 1024,
      bytes: (size) => filled(unit(), size),
      start() {
        const decoder = new HpackDecoder()
        const reader = new FrameReader(
          Object.assign(Object.create(handler), {
            onHeaders: (_: number, bytes: Buffer, start: number, end: number) =>
              decoder.decode(bytes, start, end, { onField: ignore }),
          }),
          limits,
        )
        const unread = new UnreadBytes()
        return (piece) => {
          unread.add(piece, 0, piece.length)
          for (let at = -1; at !== unread.start && unread.size > 0; ) {
            at = unread.start
            unread.start = reader.read(unread.bytes, at, unread.end)
          }
          unread.keep(piece)
        }
      },
    }),
  )
}
