import { afterAll, describe, expect, it } from 'vitest'
import type { ResponseEvent, StreamEvent } from '../chat.ts'
import { type ChatFormatName, clientFormats } from '../formats/index.ts'
import { HeldStream } from './held-stream.ts'
import { compileGuardMask } from './regex-guard.ts'

const text =
  'Write to bob@example.com, or call +1 (415) 555-0132. The card is 4111 1111 1111 1111; sécret-42!'
const mask = compileGuardMask({
  matches: ['sécret-[0-9]+', 'gone'],
  builtins: ['Email', 'CreditCard', 'PhoneNumber', 'Ssn'],
})
afterAll(() => mask.dispose())
const whole = mask.apply(text).text

const dataOf = (events: readonly StreamEvent[]) =>
  events.filter(({ data }) => data !== '[DONE]').map(({ data }) => JSON.parse(data))

function masked(format: ChatFormatName, events: readonly StreamEvent[]): StreamEvent[] {
  const held = new HeldStream(clientFormats[format], events)
  held.mask(mask)
  return held.release()
}

const maskedData = (format: ChatFormatName, events: readonly object[]) =>
  dataOf(
    masked(
      format,
      events.map((event) => ({ event: undefined, data: JSON.stringify(event) })),
    ),
  )

/** A stream as the gateway writes it. */
function streamOf(format: ChatFormatName, pieces: readonly string[]): StreamEvent[] {
  const writer = clientFormats[format].writer({ created: 0, newId: () => 'x', request: {} })
  const events: ResponseEvent[] = [
    { type: 'start', id: 'a', model: 'm' },
    ...pieces.map((piece) => ({ type: 'text' as const, index: 0, text: piece })),
    { type: 'stop', reason: 'end' },
    { type: 'end' },
  ]
  return [...events.flatMap((event) => writer.write(event)), ...writer.finish(true)]
}

/** The text that a client joins from deltas, and the text that the last event repeats. */
function received(events: readonly StreamEvent[]) {
  let streamed = ''
  let repeated: string | undefined
  for (const { type, choices, delta, response } of dataOf(events)) {
    streamed +=
      choices?.[0]?.delta?.content ?? (typeof delta === 'string' ? delta : delta?.text) ?? ''
    if (type === 'response.completed') repeated = response.output[0].content[0].text
  }
  return { streamed, repeated }
}

describe.each(['Completions', 'Messages', 'Responses'] as const)(
  'masking a held stream of %s',
  (format) => {
    it('gives the text that is masked as a whole, wherever it is split', () => {
      expect(whole).toBe(
        'Write to <EMAIL_ADDRESS>, or call <PHONE_NUMBER>. The card is <CREDIT_CARD>; <masked>!',
      )
      for (let first = 0; first <= text.length; first++) {
        const second = (first * 7 + 11) % (text.length + 1)
        const [a, b] = [Math.min(first, second), Math.max(first, second)]
        const events = streamOf(format, [text.slice(0, a), text.slice(a, b), text.slice(b)])
        const { streamed, repeated } = received(masked(format, events))
        expect(streamed, `cut at ${a} and ${b}`).toBe(whole)
        if (format === 'Responses') expect(repeated).toBe(whole)
      }
    })

    it('keeps the number, the order and the names of the events', () => {
      const events = streamOf(format, [...text])
      const names = (list: readonly StreamEvent[]) => list.map(({ event }) => event)
      expect(names(masked(format, events))).toEqual(names(events))
    })

    it('changes no event of a text in which nothing is found', () => {
      const events = streamOf(format, ['It is ', 'all right', '.'])
      expect(dataOf(masked(format, events))).toEqual(dataOf(events))
    })
  },
)

const blockStart = (index: number, piece = '') => ({
  type: 'content_block_start',
  index,
  content_block: { type: 'text', text: piece },
})
const blockDelta = (index: number, piece: string) => ({
  type: 'content_block_delta',
  index,
  delta: { type: 'text_delta', text: piece },
})
const blockStop = (index: number) => ({ type: 'content_block_stop', index })
const choice = (index: number, content: unknown, more: object = {}) => ({
  choices: [{ index, delta: { content }, ...more }],
})
const outputDelta = (content_index: number, delta: string) => ({
  type: 'response.output_text.delta',
  content_index,
  delta,
})
const outputDone = (content_index: number, repeated: string) => ({
  type: 'response.output_text.done',
  content_index,
  text: repeated,
})
const found = { type: 'web_search_result', title: 'bob@example.com', url: 'https://a.example' }
const resultBlock = (title: string) => ({
  type: 'content_block_start',
  index: 0,
  content_block: {
    type: 'web_search_tool_result',
    tool_use_id: 't',
    content: [{ ...found, title }],
  },
})

it.each<[string, ChatFormatName, readonly object[], readonly object[]]>([
  [
    'choices of one event apart',
    'Completions',
    [{ choices: [...choice(0, 'a sécret').choices, ...choice(1, 'x sécret-42 y').choices] }],
    [{ choices: [...choice(0, 'a sécret').choices, ...choice(1, 'x <masked> y').choices] }],
  ],
  [
    'content that comes as parts',
    'Completions',
    [
      choice(0, [{ type: 'text', text: 'bob@exa' }]),
      choice(0, [{ type: 'text', text: 'mple.com' }]),
    ],
    [
      choice(0, [{ type: 'text', text: '<EMAIL_ADDRESS>' }]),
      choice(0, [{ type: 'text', text: '' }]),
    ],
  ],
  [
    'a text that goes on after the end of its choice',
    'Completions',
    [choice(0, 'sécret', { finish_reason: 'stop' }), choice(0, '-42')],
    [choice(0, '<masked>', { finish_reason: 'stop' }), choice(0, '')],
  ],
  [
    'the content of a message that begins with it',
    'Messages',
    [{ type: 'message_start', message: { content: [{ type: 'text', text: 'sécret-42' }] } }],
    [{ type: 'message_start', message: { content: [{ type: 'text', text: '<masked>' }] } }],
  ],
  [
    'content blocks of other kinds as in a whole message',
    'Messages',
    [resultBlock('bob@example.com')],
    [resultBlock('<EMAIL_ADDRESS>')],
  ],
  [
    'interleaved content blocks apart, and puts their texts into deltas',
    'Messages',
    [
      ...[blockStart(0, 'a '), blockStart(1), blockDelta(0, 'sécret'), blockDelta(1, 'b bob@exa')],
      ...[blockDelta(0, '-42. '), blockDelta(1, 'mple.com'), blockStop(1), blockStop(0)],
    ],
    [
      ...[blockStart(0), blockStart(1), blockDelta(0, 'a <masked>. ')],
      ...[blockDelta(1, 'b <EMAIL_ADDRESS>'), blockDelta(0, ''), blockDelta(1, '')],
      ...[blockStop(1), blockStop(0)],
    ],
  ],
  [
    'a match over two blocks, and removes the block that becomes empty',
    'Messages',
    [
      ...[blockStart(0), blockDelta(0, 'It is 123-45'), blockStop(0)],
      ...[blockStart(1), blockDelta(1, '-6789'), blockStop(1), blockStart(2, ' so'), blockStop(2)],
    ],
    [
      ...[blockStart(0), blockDelta(0, 'It is <SSN>'), blockStop(0)],
      ...[blockStart(1, ' so'), blockStop(1)],
    ],
  ],
  [
    'texts that later events repeat as they were streamed',
    'Responses',
    [
      ...[outputDelta(0, 'It is 123-45'), outputDone(0, 'It is 123-45')],
      ...[outputDelta(1, '-6789'), outputDone(1, '-6789'), outputDone(1, 'sécret-1')],
    ],
    [
      ...[outputDelta(0, 'It is <SSN>'), outputDone(0, 'It is <SSN>')],
      ...[outputDelta(1, ''), outputDone(1, ''), outputDone(1, '<masked>')],
    ],
  ],
])('masks %s', (_, format, events, expected) => {
  expect(maskedData(format, events)).toEqual(expected)
})

it('replaces many texts of one event in linear time', () => {
  const count = 8_000
  const details = Array.from({ length: count }, (_, at) => ({
    type: 'reasoning.text',
    text: `t${at}`,
  }))
  const delta = { reasoning_details: details }
  const data = JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta }] })
  const scope = new Set(['Reasoning'] as const)
  const held = new HeldStream(clientFormats.Completions, [{ event: undefined, data }], {
    hasOptIn: true,
  })
  const texts = held.texts(scope)
  expect(texts).toHaveLength(count)
  held.replace(
    texts.map((one) => ({ ...one, content: `${one.content}!` })),
    scope,
  )
  const [written] = dataOf(held.release())
  expect(written.choices[0].delta.reasoning_details.at(-1)).toEqual({
    type: 'reasoning.text',
    text: `t${count - 1}!`,
  })
})
