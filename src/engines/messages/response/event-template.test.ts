import { describe, expect, it, vi } from 'vitest'
import { SseReader } from '../../sse/reader.ts'
import type { StreamEvent } from '../chat.ts'
import type { ResponseDetails } from '../common/response-details.ts'
import { type ChatFormatName as ChatFormat, clientFormats } from '../formats/index.ts'
import { ModelResponseStream } from './stream.ts'

const native = { kind: 'native', path: '/' } as const
const texts = [
  ' gateway',
  'a',
  ' ',
  'é€😀',
  ' "quoted"',
  'line\nbreak',
  '\\',
  '',
  'usage',
  'x7',
  ' 12',
]

/** Chat completions as vendors stream them: with padding, with empty usage, with calls of tools. */
function completion(n: number): object {
  const content = texts[n % texts.length]
  const delta =
    n % 23 === 5
      ? { tool_calls: [{ index: 0, id: `c${n}`, function: { arguments: 'x' } }] }
      : { content }
  return {
    id: 'chatcmpl-1',
    model: n % 50 === 49 ? 'other' : 'm',
    choices: [{ index: 0, delta, finish_reason: n % 31 === 30 ? 'stop' : null }],
    ...(n % 3 > 0 && { usage: n % 29 === 28 ? { prompt_tokens: 3, completion_tokens: n } : null }),
    ...(n % 5 > 1 && { obfuscation: `x${n}` }),
  }
}

const message = (n: number): object => ({
  type: 'content_block_delta',
  index: 0,
  delta: { type: 'text_delta', text: texts[n % texts.length] },
})

const response = (n: number): object => ({
  type: 'response.output_text.delta',
  item_id: 'i',
  delta: texts[n % texts.length],
  sequence_number: n * 7,
  obfuscation: `x${n % 4}`,
})

const line = (event: object, n: number): string => {
  const type = 'type' in event ? `event: ${event.type}\n` : ''
  const end = n % 17 === 16 ? '\r\n\r\n' : '\n\n'
  return `${type}data: ${JSON.stringify(event)}${end}`
}

interface Read {
  readonly events: readonly (readonly [type: string, data: string | undefined])[]
  readonly details: ResponseDetails
  readonly contentBytes: number
  /** Number of pieces that were sent without a copy. */
  readonly relayedPieces: number
}

/** Where pieces of a stream end: after so many bytes, or after each event. */
type PieceSize = number | 'event'

function piecesOf(bytes: Buffer, size: PieceSize): Buffer[] {
  if (size === 'event')
    return bytes
      .toString()
      .split(/(?<=\n\r?\n)/)
      .map((text) => Buffer.from(text))
  const count = Math.ceil(bytes.length / size)
  return Array.from({ length: count }, (_, n) => bytes.subarray(n * size, (n + 1) * size))
}

/** Streams bytes in pieces. An observer of events makes the gateway parse every one. */
function stream(
  bytes: Buffer,
  size: PieceSize,
  format: ChatFormat,
  parsesAll: boolean,
  hidesUsage: boolean,
  asked?: string,
): Read {
  let details: ResponseDetails = {}
  let contentBytes = 0
  const out: Buffer[] = []
  const answer = new ModelResponseStream({
    request: {
      format: clientFormats[format],
      plan: native,
      model: 'm',
      asked,
      body: undefined,
      translation: undefined,
      isStream: true,
      hidesUsage,
    },
    isProtected: false,
    format: clientFormats[format],
    eventLimit: 1 << 20,
    context: { created: 0, newId: () => 'id', request: {} },
    onDetails: (found) => {
      details = { ...details, ...found }
    },
    onContent: (length) => {
      contentBytes += length
    },
    ...(parsesAll && { onEvent: (_: StreamEvent) => undefined }),
  })
  let relayedPieces = 0
  for (const part of piecesOf(bytes, size)) {
    const piece = Buffer.concat([Buffer.from('xx'), part])
    const omitted = answer.relay(piece, 2, piece.length)
    if (omitted === undefined) {
      answer.push(Buffer.from(part), (some) => void out.push(Buffer.from(some)))
      continue
    }
    relayedPieces++
    const { cutStart, cutEnd } = omitted
    const isCut = cutStart < cutEnd
    out.push(piece.subarray(2, isCut ? cutStart : piece.length))
    if (isCut) out.push(piece.subarray(cutEnd))
  }
  answer.end((part) => void out.push(Buffer.from(part)))
  const events: (readonly [string, string | undefined])[] = []
  new SseReader(1 << 20, 'fail').push(
    Buffer.concat(out),
    ({ type, data }) => void events.push([type, data]),
  )
  return { events, details, contentBytes, relayedPieces }
}

const formats = [
  ['Completions', completion],
  ['Messages', message],
  ['Responses', response],
] as const

describe.each(formats)('an unmasked stream of %s', (format, eventOf) => {
  const all = Array.from({ length: 300 }, (_, n) => eventOf(n))
  const bytes = Buffer.from(all.map(line).join(''))

  it.each([
    [false, undefined],
    [true, undefined],
    [false, 'm-2'],
    [false, 'é another'],
    [true, 'another'],
  ] as const)(
    'is relayed as if every event were parsed; usage is hidden: %s, the model is named: %s',
    (hidesUsage, asked) => {
      for (const size of ['event', bytes.length, 1_000, 333, 64, 7] as const) {
        const relayed = stream(bytes, size, format, false, hidesUsage, asked)
        const { relayedPieces: none, ...parsed } = stream(
          bytes,
          size,
          format,
          true,
          hidesUsage,
          asked,
        )
        const names = new Set(
          parsed.events.flatMap(([, data]) => JSON.parse(data ?? '').model ?? []),
        )
        if (asked !== undefined && format === 'Completions') expect([...names]).toEqual([asked])
        expect(none).toBe(0)
        expect(relayed).toMatchObject(parsed)
        expect(relayed.contentBytes).toBeGreaterThan(1_000)
      }
    },
  )

  it('is sent without a copy if each piece is one event that differs only in its text', () => {
    const alike = Array.from({ length: 100 }, () => eventOf(3))
    const sent = Buffer.from(alike.map((event) => line(event, 0)).join(''))
    const hidesUsage = format === 'Completions'
    expect(stream(sent, 'event', format, false, hidesUsage).relayedPieces).toBeGreaterThan(95)
  })

  it.each([undefined, 'm-2', 'x'])(
    'is not parsed where events differ only in their text; the model is named: %s',
    (asked) => {
      const alike = Array.from({ length: 100 }, () => eventOf(3))
      const parse = vi.spyOn(JSON, 'parse')
      const hidesUsage = format === 'Completions' && asked === undefined
      stream(Buffer.from(alike.map(line).join('')), 10_000, format, false, hidesUsage, asked)
      expect(parse.mock.calls.length).toBeLessThan(5)
      parse.mockRestore()
    },
  )
})
