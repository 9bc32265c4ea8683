/** Readers that keep a message back until it may pass: guards and external processors. */
import { create } from '@bufbuild/protobuf'
import { BodyResponseSchema } from '../../proto/gen/called/ext_proc_pb.ts'
import { MessageBody } from '../../src/engines/http/message/message-body.ts'
import type { StreamEvent } from '../../src/engines/messages/chat.ts'
import { type ChatFormatName, clientFormats } from '../../src/engines/messages/formats/index.ts'
import { HeldStream } from '../../src/engines/messages/mask/held-stream.ts'
import { SseReader } from '../../src/engines/sse/reader.ts'
import { BodyLedger } from '../../src/gateway/policies/ext-proc/body-ledger.ts'
import { MessageSide } from '../../src/gateway/policies/ext-proc/message-side.ts'
import { filled, heads, ignore, large, mask, maskOf, type Reader } from './reader.ts'

function heldStream(format: ChatFormatName, bytes: Buffer): HeldStream {
  const events: StreamEvent[] = []
  new SseReader(large, 'fail').push(bytes, ({ data = '' }) => {
    events.push({ event: undefined, data })
  })
  return new HeldStream(clientFormats[format], events)
}

/** Streamed responses that are kept back until a guard has read all of their events. */
export function guardReaders(): Reader[] {
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
  const masked = (
    id: string,
    format: ChatFormatName,
    make: (index: number) => object[],
  ): Reader => ({
    id: `guard.stream.${id}`,
    size: 512 * 1024,
    isWhole: true,
    bytes: eventsOf(make),
    start: () => (piece) => {
      const held = heldStream(format, piece)
      held.mask(mask)
      held.release()
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
        const held = heldStream('Responses', piece)
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
export function processorReaders(): Reader[] {
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
      const side = new MessageSide('request', conversation, large, true)
      const source = new MessageBody(heads, { resumeBody: ignore })
      side.openBody(Object.assign(source, { divert: () => outlet }), 'by piece')
      for (const piece of pieces) side.push(piece)
      for (const _ of pieces) side.onBodyResponse(answered)
    }),
  ]
}
