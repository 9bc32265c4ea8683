import { describe, expect, it } from 'vitest'
import type { ResponseEvent, StreamEvent } from '../chat.ts'
import { type ChatFormatName as ChatFormat, clientFormats } from '../formats/index.ts'
import { compileGuardMask } from './regex-guard.ts'
import { StreamMasker } from './stream-mask.ts'

const text =
  'Write to bob@example.com, or call +1 (415) 555-0132. The card is 4111 1111 1111 1111; sécret-42!'
const config = {
  matches: ['sécret-[0-9]+'],
  builtins: ['Email', 'CreditCard', 'PhoneNumber'],
} as const

/** The text that a client joins from a stream, and the text that the last event repeats. */
function received(format: ChatFormat, events: readonly StreamEvent[]) {
  let streamed = ''
  let repeated: string | undefined
  const numbers: number[] = []
  for (const { data } of events) {
    if (data === '[DONE]') continue
    const event = JSON.parse(data)
    if (format === 'Completions') streamed += event.choices[0]?.delta?.content ?? ''
    else if (format === 'Messages') streamed += event.delta?.text ?? ''
    else {
      numbers.push(event.sequence_number)
      if (event.type === 'response.output_text.delta') streamed += event.delta
      if (event.type === 'response.completed') repeated = event.response.output[0].content[0].text
    }
  }
  return { streamed, repeated, numbers }
}

function streamOf(format: ChatFormat, pieces: readonly string[]): StreamEvent[] {
  const writer = clientFormats[format].writer({}, { created: 0, newId: () => 'x' })
  const events: ResponseEvent[] = [
    { type: 'start', id: 'a', model: 'm' },
    ...pieces.map((piece) => ({ type: 'text' as const, index: 0, text: piece })),
    { type: 'stop', reason: 'end' },
    { type: 'end' },
  ]
  return [...events.flatMap((event) => writer.write(event)), ...writer.finish(true)]
}

function maskedStream(format: ChatFormat, pieces: readonly string[]) {
  const mask = compileGuardMask(config)
  const masker = new StreamMasker([mask], clientFormats[format], 1 << 16)
  const events = streamOf(format, pieces).flatMap((event) => masker.push(event))
  events.push(...masker.finish())
  masker.dispose()
  mask.dispose()
  return events
}

const whole = (() => {
  const mask = compileGuardMask(config)
  const result = mask.apply(text).text
  mask.dispose()
  return result
})()

describe.each(['Completions', 'Messages', 'Responses'] as const)(
  'masking a %s stream',
  (format) => {
    it('gives the text that is masked as a whole, wherever it is split', () => {
      expect(whole).toContain('<EMAIL_ADDRESS>')
      expect(whole).toContain('<CREDIT_CARD>')
      expect(whole).toContain('<masked>')
      for (let first = 0; first <= text.length; first++) {
        const second = (first * 7 + 11) % (text.length + 1)
        const [a, b] = [Math.min(first, second), Math.max(first, second)]
        const pieces = [text.slice(0, a), text.slice(a, b), text.slice(b)]
        const { streamed, repeated } = received(format, maskedStream(format, pieces))
        expect(streamed, `cut at ${a} and ${b}`).toBe(whole)
        if (format === 'Responses') expect(repeated).toBe(whole)
      }
    })

    it('emits all text before the event that ends it, and keeps the order of events', () => {
      const events = maskedStream(format, [...text])
      const untouched = streamOf(format, [...text])
      const kinds = (list: readonly StreamEvent[]) =>
        list.map(({ event, data }) => event ?? (data === '[DONE]' ? data : 'chunk'))
      // Nothing is lost or moved; one event with the rest is added.
      expect(kinds(events).at(-1)).toBe(kinds(untouched).at(-1))
      expect(events.length).toBeLessThanOrEqual(untouched.length + 1)
      const { numbers } = received(format, events)
      expect(numbers).toEqual(numbers.map((_, at) => at))
    })
  },
)

it('a stream masker fails if it must hold back more bytes than its limit', () => {
  const mask = compileGuardMask({ matches: ['a+b'], builtins: [] })
  const masker = new StreamMasker([mask], clientFormats.Completions, 1000)
  const push = () =>
    streamOf('Completions', ['a'.repeat(2000)]).flatMap((event) => masker.push(event))
  expect(push).toThrow('undecided')
})

it('a stream masker does not repeat one choice while it holds back another', () => {
  const mask = compileGuardMask(config)
  const masker = new StreamMasker([mask], clientFormats.Completions, 1 << 16)
  const choice = (index: number, content: string) => ({ index, delta: { content } })
  const event = { choices: [choice(0, 'a sécret'), choice(1, 'x sécret-42 y')] }
  const events = [
    ...masker.push({ event: undefined, data: JSON.stringify(event) }),
    ...masker.finish(),
  ]
  masker.dispose()
  mask.dispose()
  const texts = ['', '']
  for (const { data } of events) {
    for (const { index, delta } of JSON.parse(data).choices) texts[index] += delta.content ?? ''
  }
  expect(texts).toEqual(['a sécret', 'x <masked> y'])
})

it.each([
  ['Completions', { choices: [{ index: 0, delta: { content: [{ type: 'text', text }] } }] }],
  ['Messages', { type: 'message_start', message: { content: [{ type: 'text', text }] } }],
] as const)(
  'a stream masker masks text that comes as content parts in a %s stream',
  (format, event) => {
    const mask = compileGuardMask(config)
    const masker = new StreamMasker([mask], clientFormats[format], 1 << 16)
    const pushed = masker.push({ event: undefined, data: JSON.stringify(event) })
    const told = JSON.stringify([...pushed, ...masker.finish()])
    masker.dispose()
    mask.dispose()
    expect(told).not.toMatch(/bob@|sécret|4111/)
  },
)

/** Events through a masker, as parsed data. */
function maskedEvents(format: ChatFormat, events: readonly object[]) {
  const mask = compileGuardMask(config)
  const masker = new StreamMasker([mask], clientFormats[format], 1 << 16)
  const pushed = events.flatMap((event) =>
    masker.push({ event: undefined, data: JSON.stringify(event) }),
  )
  pushed.push(...masker.finish())
  masker.dispose()
  mask.dispose()
  return pushed.map(({ data }) => JSON.parse(data))
}

it('a stream masker adds held text without repeating tool calls or usage', () => {
  const call = { index: 0, function: { name: 'f', arguments: '{}' } }
  const delta = { role: 'assistant', content: 'see bob', tool_calls: [call] }
  const usage = { prompt_tokens: 1 }
  const events = maskedEvents('Completions', [
    { id: 'c', choices: [{ index: 0, delta, finish_reason: null }], usage },
    { id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  ])
  expect(JSON.stringify(events).match(/tool_calls/g)).toHaveLength(1)
  expect(JSON.stringify(events).match(/usage/g)).toHaveLength(1)
  expect(events.map(({ choices }) => choices[0].delta.content ?? '').join('')).toBe('see bob')
  expect(events.at(-1).choices[0].finish_reason).toBe('stop')
})

it('a stream masker masks content blocks of other kinds, as in a whole message', () => {
  const found = { type: 'web_search_result', title: 'bob@example.com', url: 'https://a.example' }
  const block = { type: 'web_search_tool_result', tool_use_id: 't', content: [found] }
  const [event] = maskedEvents('Messages', [
    { type: 'content_block_start', index: 0, content_block: block },
  ])
  expect(event.content_block.content[0]).toEqual({ ...found, title: '<EMAIL_ADDRESS>' })
})

it('a stream masker keeps interleaved content blocks separate', () => {
  const start = (index: number) => ({
    type: 'content_block_start',
    index,
    content_block: { type: 'text', text: '' },
  })
  const say = (index: number, piece: string) => ({
    type: 'content_block_delta',
    index,
    delta: { type: 'text_delta', text: piece },
  })
  const stop = (index: number) => ({ type: 'content_block_stop', index })
  const events = maskedEvents('Messages', [
    start(0),
    start(1),
    say(0, 'a sécret'),
    say(1, 'b bob@exa'),
    say(0, '-42. '),
    say(1, 'mple.com'),
    stop(1),
    stop(0),
    { type: 'message_stop' },
  ])
  const texts = ['', '']
  for (const { type, index, delta } of events) {
    if (type === 'content_block_delta') texts[index] += delta.text
  }
  expect(texts).toEqual(['a <masked>. ', 'b <EMAIL_ADDRESS>'])
  const kinds = events.map(({ type, index }) => `${type} ${index}`)
  expect(kinds.indexOf('content_block_start 1')).toBeLessThan(kinds.indexOf('content_block_stop 1'))
  expect(kinds.at(-1)).toBe('message_stop undefined')
})

it('a stream masker fails if it must hold back more events than its limit', () => {
  const mask = compileGuardMask(config)
  const masker = new StreamMasker([mask], clientFormats.Messages, 1000)
  const event = (data: object) => ({ event: undefined, data: JSON.stringify(data) })
  const delta = { type: 'text_delta', text: 'bob' }
  masker.push(event({ type: 'content_block_delta', index: 0, delta }))
  expect(masker.push(event({ type: 'content_block_stop', index: 0 }))).toEqual([])
  expect(() => {
    for (let count = 0; count < 100; count++) masker.push(event({ type: 'ping', count }))
  }).toThrow('undecided')
  masker.dispose()
  mask.dispose()
})
