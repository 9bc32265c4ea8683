import { expect, it } from 'vitest'
import { Random } from '../../../../test/core/texts/messages.ts'
import type { ResponseEvent, StreamEvent } from '../chat.ts'
import { type ChatFormatName, clientFormats } from '../formats/index.ts'
import { StreamWindows, windowLength, windowOverlap } from './stream-windows.ts'

const formats: readonly ChatFormatName[] = [
  'Completions',
  'Messages',
  'Responses',
  'GenerateContent',
  'Converse',
]

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

/** The text that a client joins from an event. */
function textOf({ data }: StreamEvent): string {
  if (data === '[DONE]') return ''
  const { choices, delta, candidates } = JSON.parse(data)
  const parts: { text?: string }[] = candidates?.[0]?.content?.parts ?? []
  const found = choices?.[0]?.delta?.content ?? (typeof delta === 'string' ? delta : delta?.text)
  return found ?? parts.map(({ text = '' }) => text).join('')
}

interface WindowResult {
  readonly text: string
  readonly events: readonly StreamEvent[]
  /** Lengths of the texts that the guard was asked about. */
  readonly asked: readonly number[]
  /** Largest number of characters that waited. */
  readonly waited: number
}

/** Passes events through windows that a guard masks. */
function pass(
  format: ChatFormatName,
  events: readonly StreamEvent[],
  mask: (text: string) => string,
): WindowResult {
  const windows = new StreamWindows(clientFormats[format], 1 << 20)
  const released: StreamEvent[] = []
  const asked: number[] = []
  let [arrived, passed, waited] = [0, 0, 0]
  const check = (isLast: boolean) => {
    const held = windows.open()
    const texts = held.texts()
    asked.push(texts.reduce((sum, { content }) => sum + content.length, 0))
    const masked = texts.map(({ role, content }) => ({ role, content: mask(content) }))
    expect(held.replace(masked)).toBe(true)
    const some = windows.close(held, isLast)
    for (const event of some) passed += textOf(event).length
    released.push(...some)
  }
  for (const event of events) {
    windows.add(event)
    arrived += textOf(event).length
    if (windows.isDue) check(false)
    waited = Math.max(waited, arrived - passed)
  }
  check(true)
  return { text: released.map(textOf).join(''), events: released, asked, waited }
}

const secret = 'ann.smith@example.com'
const words = ['lorem ipsum', 'dolor', '𝄞 é', 'x', 'sit amet consectetur.', '\n']

function randomText(random: Random, length: number, share: number): string {
  let text = ''
  while (text.length < length) {
    text += `${random.below(100) < share ? secret : random.of(words)} ${random.below(10_000)} `
  }
  return text
}

function split(text: string, random: Random): string[] {
  const pieces: string[] = []
  for (let at = 0; at < text.length; ) {
    const size = 1 + random.below(60)
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return pieces
}

it.each(formats)(
  'masks a stream of %s in windows as a whole text, wherever it is cut',
  (format) => {
    for (let seed = 1; seed <= 8; seed++) {
      const random = new Random(seed * 7919)
      const text = randomText(random, 1 + random.below(8_000), random.below(30))
      const events = streamOf(format, split(text, random))
      const mask = (one: string) => one.replaceAll(secret, '<EMAIL>')
      const { text: got, events: released } = pass(format, events, mask)
      expect(got, `seed ${seed}`).toBe(mask(text))
      // Later events repeat the text.
      for (const { data } of released) {
        expect(data).not.toContain(secret)
        if (!data.includes('"response.output_text.done"')) continue
        expect(JSON.parse(data)).toMatchObject({ text: mask(text) })
      }
    }
  },
)

it('releases a stream without matches as it arrives, and has each character checked at most twice', () => {
  const random = new Random(7)
  const text = randomText(random, 20_000, 0)
  for (const format of formats) {
    const events = streamOf(format, split(text, random))
    const { text: got, events: released, asked, waited } = pass(format, events, (one) => one)
    expect(got).toBe(text)
    expect(released.length).toBe(events.length)
    expect(waited).toBeLessThan(windowOverlap + windowLength + 200)
    expect(asked.reduce((sum, one) => sum + one, 0)).toBeLessThan(2 * text.length)
    expect(asked.length).toBeLessThan(1 + text.length / 900)
  }
})

it('holds a text that cannot be cut, and has it checked only a few times', () => {
  const text = `${secret} `.repeat(500)
  const mask = (one: string) => one.replaceAll(secret, '<EMAIL>')
  const { text: got, asked } = pass(
    'Completions',
    streamOf('Completions', split(text, new Random(3))),
    mask,
  )
  expect(got).toBe(mask(text))
  expect(asked.length).toBeLessThan(12)
})
