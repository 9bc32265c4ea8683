/** Readers of what language models send: events, event streams and WebSocket messages. */
import { crc32 } from 'node:zlib'
import type { StreamEvent } from '../../src/engines/messages/chat.ts'
import { completions } from '../../src/engines/messages/formats/completions/index.ts'
import { EventStreamDecoder } from '../../src/engines/messages/framing/event-stream.ts'
import { WebSocketTexts } from '../../src/engines/messages/framing/websocket.ts'
import { HeldStream } from '../../src/engines/messages/mask/held-stream.ts'
import { PassingEvents } from '../../src/engines/messages/response/passing-events.ts'
import { SseReader } from '../../src/engines/sse/reader.ts'
import { filled, ignore, large, mask, type Reader } from './reader.ts'

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

export function sseReaders(): Reader[] {
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

export function modelReaders(): Reader[] {
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
          const events: StreamEvent[] = []
          const reader = new SseReader(large, 'fail')
          reader.push(piece, ({ data = '' }) => void events.push({ event: undefined, data }))
          const held = new HeldStream(completions, events)
          held.mask(mask)
          held.release()
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
