/**
 * Claim: every reader of bytes from outside takes time in proportion to what it reads, whatever the
 * size of the pieces. Each row reads twice as much, in pieces of 1 byte, 4 kB or 64 kB, and must not
 * take more than 2.5 times as long.
 */
import { crc32 } from 'node:zlib'
import { create } from '@bufbuild/protobuf'
import { BodyResponseSchema } from '../proto/gen/called/ext_proc_pb.ts'
import type { StreamEvent } from '../src/backends/ai/chat.ts'
import type { ChatFormat } from '../src/backends/ai/client-formats.ts'
import { EventStreamDecoder } from '../src/backends/ai/formats/event-stream.ts'
import { WebSocketTexts } from '../src/backends/ai/formats/websocket.ts'
import { HeldStream } from '../src/backends/ai/guards/held-stream.ts'
import { StreamMasker } from '../src/backends/ai/guards/stream-mask.ts'
import { PassingEvents } from '../src/backends/ai/serve/passing-events.ts'
import { scanJson } from '../src/backends/mcp/json/scan.ts'
import { AnswerReader } from '../src/backends/mcp/proxy/answer-reader.ts'
import { GrowingBytes } from '../src/base/growing-bytes.ts'
import { SseReader } from '../src/base/sse-reader.ts'
import { createIoCore, INCOMPLETE } from '../src/core/index.ts'
import { compileMask, type Mask } from '../src/core/regex-mask.ts'
import { UnreadBytes } from '../src/engine/bytes/unread-bytes.ts'
import { FrameReader } from '../src/engine/http2/frame-reader.ts'
import { HpackDecoder } from '../src/engine/http2/hpack-decoder.ts'
import { HeadReader } from '../src/engine/message/head-reader.ts'
import { MessageBody } from '../src/engine/message/message-body.ts'
import { readProxyHeader } from '../src/engine/sockets/proxy-protocol.ts'
import { ClientHelloReader } from '../src/engine/tls/client-hello.ts'
import { FieldPairs } from '../src/exchange/memory-message.ts'
import { linesOf } from '../src/kube/lines.ts'
import { BodyLedger } from '../src/policies/ext-proc/body-ledger.ts'
import { MessageSide } from '../src/policies/ext-proc/message-side.ts'
import { frameMessage, MessageReader } from '../src/proxy/callouts/grpc-framing.ts'
import { parseManifest } from '../src/watch/manifest.ts'
import { type BenchContext, cpuNanoseconds, interleave, type Row } from './harness.ts'

type Push = (piece: Buffer) => void

interface Reader {
  readonly id: string
  /** Bytes of the smaller input. */
  readonly size: number
  bytes(size: number): Buffer
  /** A fresh reader. Readers that take whole texts have `isWhole`. */
  start(): Push
  readonly isWhole?: boolean
}

const filled = (unit: string | Buffer, size: number): Buffer => {
  const one = Buffer.from(unit)
  return Buffer.alloc(Math.ceil(size / one.length) * one.length, one)
}
const ignore = () => {}
const large = 1 << 30

function awsFrame(payload: Buffer): Buffer {
  const frame = Buffer.alloc(16 + payload.length)
  frame.writeUInt32BE(frame.length, 0)
  frame.writeUInt32BE(crc32(frame.subarray(0, 8)), 8)
  payload.copy(frame, 12)
  frame.writeUInt32BE(crc32(frame.subarray(0, -4)), frame.length - 4)
  return frame
}

function webSocketFrame(first: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(14)
  head[0] = first
  head[1] = 0xff
  head.writeBigUInt64BE(BigInt(payload.length), 2)
  return Buffer.concat([head, payload])
}

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

const core = createIoCore({ memoryPages: 256 })
const heads = new HeadReader(core, core.createHead({ maxFields: 4096 }))
const maskOf = (pattern: string): Mask => {
  const compiled = compileMask([{ pattern, replacement: '<masked>' }])
  if (!compiled.ok) throw new Error(compiled.message)
  return compiled.mask
}
const mask = maskOf('secret-[0-9]+')

function sseReaders(): Reader[] {
  const of = (id: string, unit: string, first = ''): Reader => ({
    id: `sse.${id}`,
    size: 512 * 1024,
    bytes: (size) => Buffer.concat([Buffer.from(first), filled(unit, size)]),
    start() {
      const reader = new SseReader(large, 'fail')
      return (piece) => reader.push(piece, ignore)
    },
  })
  return [
    of('events', 'event: message\ndata: {"a": "b"}\n\n'),
    of('one-event-of-lines', 'data: some text\n'),
    of('empty-data', 'data:\n'),
    of('comments', ':\n'),
    of('one-line', 'x', 'data: '),
    of('carriage-returns', 'data: a\r'),
    of('names-without-colon', 'abcdefgh\n'),
  ]
}

/** One event of an MCP server with a large message, up to its JSON. */
function mcpReaders(): Reader[] {
  return [
    {
      id: 'mcp.one-event',
      size: 8 * 1024 * 1024,
      bytes: (size) =>
        Buffer.from(`data: {"jsonrpc":"2.0","id":1,"result":{"a":"${'x'.repeat(size)}"}}\n\n`),
      start() {
        const reader = new AnswerReader({
          onEnd: ignore,
          onFailure(failure) {
            throw failure
          },
        })
        reader.onHead(200, new FieldPairs([['content-type', 'text/event-stream']]))
        return (piece) => reader.onBytes(piece)
      },
    },
  ]
}

function modelReaders(): Reader[] {
  const size = 512 * 1024
  const chunk = (index: number, content: string) =>
    `data: ${JSON.stringify({ choices: [{ index, delta: { content } }] })}\n\n`
  return [
    {
      id: 'model.passing-event',
      size,
      bytes: (bytes) => Buffer.concat([Buffer.from('data: '), filled('x', bytes)]),
      start() {
        const passing = new PassingEvents(large, {})
        return (piece) => passing.push(piece, (event) => [event], ignore)
      },
    },
    {
      id: 'model.dropped-events',
      size,
      bytes: (bytes) => filled(chunk(0, 'some words'), bytes),
      start() {
        const passing = new PassingEvents(large, {})
        return (piece) => passing.push(piece, () => [], ignore)
      },
    },
    ...(['one-text', 'many-choices'] as const).map(
      (id): Reader => ({
        id: `model.masks.${id}`,
        size: 64 * 1024,
        isWhole: true,
        bytes: (bytes) => {
          const one = chunk(0, 'secret-12 a').length
          const count = Math.floor(bytes / one)
          const each = (_: unknown, at: number) =>
            chunk(id === 'one-text' ? 0 : at % 64, 'secret-12 a')
          return Buffer.from(Array.from({ length: count }, each).join(''))
        },
        start: () => (piece) => {
          const masker = new StreamMasker([mask], 'Completions', large)
          const reader = new SseReader(large, 'fail')
          reader.push(piece, ({ data = '' }) => void masker.push({ event: undefined, data }))
          masker.finish()
          masker.dispose()
        },
      }),
    ),
    ...(['one', 'many'] as const).map(
      (id): Reader => ({
        id: `event-stream.${id}`,
        size,
        bytes: (bytes) =>
          id === 'one' ? awsFrame(filled('x', bytes)) : filled(awsFrame(filled('x', 20)), bytes),
        start() {
          const decoder = new EventStreamDecoder(large)
          return (piece) => decoder.push(piece, ignore)
        },
      }),
    ),
    ...(['one', 'parts', 'empty-parts'] as const).map(
      (id): Reader => ({
        id: `websocket.${id}`,
        size,
        bytes(bytes) {
          if (id === 'one') return webSocketFrame(0x81, filled('x', bytes))
          const part = filled('x', id === 'parts' ? 20 : 0)
          return Buffer.concat([webSocketFrame(1, part), filled(webSocketFrame(0, part), bytes)])
        },
        start() {
          const texts = new WebSocketTexts(ignore, large)
          return (piece) => texts.push(piece, 0, piece.length)
        },
      }),
    ),
  ]
}

/** Events of streamed answers that a guard reads, or keeps back until all have come. */
function guardReaders(): Reader[] {
  const messages = {
    'open-blocks': (index: number) => [
      { type: 'content_block_delta', index, delta: { type: 'text_delta', text: 'words' } },
    ],
    'ended-blocks': (index: number) => [
      { type: 'content_block_start', index, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index, delta: { type: 'text_delta', text: 'words' } },
      { type: 'content_block_stop', index },
    ],
  }
  const ended = (index: number) => [
    { choices: [{ index, delta: { content: 'secret-12' } }] },
    { choices: [{ index: index >> 1, delta: {}, finish_reason: 'stop' }] },
  ]
  const repeats = (content_index: number) => [
    { type: 'response.output_text.delta', content_index, delta: `text ${content_index}` },
    { type: 'response.output_text.done', content_index, text: `text ${content_index}` },
    { type: 'response.output_text.done', content_index, text: `other ${content_index}` },
  ]
  const eventsOf = (make: (index: number) => object[]) => (size: number) => {
    const lines: string[] = []
    for (let length = 0, index = 0; length < size; index++) {
      for (const event of make(index)) {
        const line = `data: ${JSON.stringify(event)}\n\n`
        lines.push(line)
        length += line.length
      }
    }
    return Buffer.from(lines.join(''))
  }
  const masked = (id: string, format: ChatFormat, make: (index: number) => object[]): Reader => ({
    id: `guard.stream.${id}`,
    size: 512 * 1024,
    isWhole: true,
    bytes: eventsOf(make),
    start: () => (piece) => {
      const masker = new StreamMasker([mask], format, large)
      new SseReader(large, 'fail').push(piece, ({ data = '' }) => {
        masker.push({ event: undefined, data })
      })
      masker.finish()
      masker.dispose()
    },
  })
  return [
    ...Object.entries(messages).map(([id, make]) => masked(id, 'Messages', make)),
    masked('ended-choices', 'Completions', ended),
    {
      id: 'guard.held.repeats',
      size: 512 * 1024,
      isWhole: true,
      bytes: eventsOf(repeats),
      start: () => (piece) => {
        const events: StreamEvent[] = []
        new SseReader(large, 'fail').push(piece, ({ data = '' }) => {
          events.push({ event: undefined, data })
        })
        const held = new HeldStream('Responses', events)
        held.replace(held.texts().map(({ role }) => ({ role, content: 'another text' })))
        held.release()
      },
    },
    ...Object.entries({ run: 'a[a-z]*!', bounded: '(ab){1,50}z', 'any-of': '(a+b|a+c)d' }).map(
      ([id, pattern]): Reader => {
        const compiled = maskOf(pattern)
        return {
          id: `guard.undecided.${id}`,
          size: 64 * 1024,
          isWhole: true,
          bytes: (size) => filled(id === 'bounded' ? 'ab' : 'a', size),
          start: () => (bytes) => {
            const stream = compiled.stream()
            for (const byte of bytes) stream.push(String.fromCharCode(byte))
            stream.end()
            stream.dispose()
          },
        }
      },
    ),
  ]
}

/** Bodies that leave in pieces and come back when all have left. */
function processorReaders(): Reader[] {
  const answered = create(BodyResponseSchema)
  const conversation = {
    sendBody: () => true,
    sendTrailers: ignore,
    onStateChange: ignore,
    onViolation: ignore,
  }
  const outlet = { write: () => true, end: ignore, abort: ignore, resume: ignore }
  const trip = (id: string, send: (pieces: Buffer[]) => void): Reader => ({
    id: `ext-proc.${id}`,
    size: 32 * 1024,
    isWhole: true,
    bytes: (size) => filled('x', size),
    start: () => (bytes) => send(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))),
  })
  return [
    trip('ledger', (pieces) => {
      const ledger = new BodyLedger(large)
      for (const piece of pieces) ledger.sent(piece)
      for (const piece of pieces) ledger.returned(piece)
    }),
    trip('pieces', (pieces) => {
      const side = new MessageSide('request', conversation, large)
      const source = new MessageBody(heads, { resumeBody: ignore })
      side.openBody(Object.assign(source, { divert: () => outlet }), true)
      for (const piece of pieces) side.push(piece)
      for (const _ of pieces) side.answerBody(answered)
    }),
  ]
}

function connectionReaders(): Reader[] {
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

function http2Readers(): Reader[] {
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

function textReaders(): Reader[] {
  const limits = { maxDepth: 100, keptDepth: 3 }
  const json = (id: string, text: (size: number) => string): Reader => ({
    id: `json.${id}`,
    size: 256 * 1024,
    isWhole: true,
    bytes: (size) => Buffer.from(text(size)),
    start: () => (piece) => void scanJson(piece.toString(), limits),
  })
  const keys = (size: number) =>
    Array.from({ length: size / 12 }, (_, at) => `"key${at}":1`).join(',')
  return [
    json('one-string', (size) => `"${'\\n'.repeat(size / 2)}"`),
    json('keys', (size) => `{${keys(size)}}`),
    json('numbers', (size) => `[${'1,'.repeat(size / 2)}1]`),
    json('space', (size) => `${' '.repeat(size)}1`),
    ...(['one', 'many'] as const).map(
      (id): Reader => ({
        id: `grpc.${id}`,
        size: 512 * 1024,
        bytes: (size) =>
          id === 'one'
            ? frameMessage(filled('x', size))
            : filled(frameMessage(filled('x', 3)), size),
        start() {
          const reader = new MessageReader()
          return (piece) => {
            if (typeof reader.read(piece) === 'string') throw new Error('a message is refused')
          }
        },
      }),
    ),
    {
      id: 'manifest.documents',
      size: 32 * 1024,
      isWhole: true,
      bytes: (size) =>
        filled('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n---\n', size),
      start: () => (piece) => void parseManifest(piece, 'a.yaml'),
    },
  ]
}

const readers = [
  ...sseReaders(),
  ...modelReaders(),
  ...guardReaders(),
  ...processorReaders(),
  ...connectionReaders(),
  ...mcpReaders(),
  ...http2Readers(),
  ...textReaders(),
]

/** Least nanoseconds of a sample. */
const leastSample = 20_000_000

function readAll(reader: Reader, pieces: readonly Buffer[]): void {
  const push = reader.start()
  for (const piece of pieces) push(piece)
}

/** Nanoseconds of one reading; many are made if one is too short to be measured. */
function costOf(reader: Reader, bytes: Buffer, size: number): () => number {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
  const once = cpuNanoseconds(() => readAll(reader, pieces))
  const times = Math.max(1, Math.ceil(leastSample / Math.max(once, 1000)))
  return () => {
    const spent = cpuNanoseconds(() => {
      for (let time = 0; time < times; time++) readAll(reader, pieces)
    })
    return spent / times
  }
}

async function lineRows({ rounds }: BenchContext): Promise<Row[]> {
  const rows: Row[] = []
  for (const size of [1, 4096, 65_536]) {
    const cost = (length: number) => async () => {
      const bytes = filled('x', length)
      async function* pieces() {
        for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
      }
      const before = process.cpuUsage()
      for await (const _ of linesOf(pieces()));
      const { user, system } = process.cpuUsage(before)
      return (user + system) * 1000
    }
    const length = size === 1 ? 64 * 1024 : 1024 * 1024
    const samples = await interleave(rounds, { twice: cost(2 * length), once: cost(length) })
    rows.push(rowOf(`lines.${size}`, samples))
  }
  return rows
}

const rowOf = (id: string, { twice, once }: { twice: number[]; once: number[] }): Row => ({
  id: `readers.${id}`,
  unit: 'ns',
  own: twice,
  peer: { name: 'half of the bytes', samples: once },
  as: 'cost',
  bound: { atMost: 2.5 },
})

export default async function readersBench(context: BenchContext): Promise<Row[]> {
  const rows: Row[] = []
  for (const reader of readers) {
    for (const size of reader.isWhole === true ? [large] : [1, 4096, 65_536]) {
      // A byte at a time costs a call for each: fewer of them say as much.
      const length = size === 1 ? Math.min(reader.size, 64 * 1024) : reader.size
      const bytes = [reader.bytes(length), reader.bytes(2 * length)] as const
      const samples = await interleave(context.rounds, {
        twice: costOf(reader, bytes[1], size),
        once: costOf(reader, bytes[0], size),
      })
      rows.push(rowOf(size === large ? reader.id : `${reader.id}.${size}`, samples))
    }
  }
  return [...rows, ...(await lineRows(context))]
}
