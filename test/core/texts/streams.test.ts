import { afterAll, describe, expect, it } from 'vitest'
import { compileGuards, compileMask, type MaskRule } from '../../../src/engines/core/index.ts'
import { clientFormats } from '../../../src/engines/messages/formats/index.ts'
import { HeldStream } from '../../../src/engines/messages/mask/held-stream.ts'
import { hasUnreadable, Random, textOf } from './messages.ts'
import { readSse, received, type SentEvent, sse, streamOf } from './streams.ts'

const chain: readonly (readonly MaskRule[])[] = [
  [
    { pattern: 'sécret-[0-9]+', replacement: '<masked>' },
    { builtin: 'Email', replacement: '<EMAIL_ADDRESS>' },
  ],
  [
    { builtin: 'CreditCard', replacement: '<CREDIT "CARD">' },
    { pattern: 'EMAIL_', replacement: 'E\n' },
  ],
]

const outcome = compileGuards(chain.map((rules) => ({ rules })))
if (!outcome.ok) throw new Error(outcome.message)
const { guards } = outcome
const masks = chain.map((rules) => {
  const compiled = compileMask(rules)
  if (!compiled.ok) throw new Error(compiled.message)
  return compiled.mask
})

afterAll(() => {
  guards.dispose()
  for (const mask of masks) mask.dispose()
})

type Format = 'Completions' | 'Messages' | 'Responses'

function rewrite(format: Format, bytes: Buffer, size: number) {
  const rewriter = guards.rewriter({ format, message: 'stream', limit: 1 << 20 })
  const out: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += size) {
    out.push(rewriter.push(bytes.subarray(at, at + size)))
  }
  out.push(rewriter.end())
  const { details } = rewriter
  rewriter.dispose()
  return { text: Buffer.concat(out).toString(), details }
}

function gateway(format: Format, events: readonly SentEvent[]): SentEvent[] {
  const held = new HeldStream(clientFormats[format], events)
  for (const mask of masks) held.mask(mask)
  return held.release().map(({ event, data }) => ({ event, data: data.toWellFormed() }))
}

/** Deltas of one part with nothing between them, as most streams have. */
function similarEvents(format: Format, random: Random): SentEvent[] {
  const deltas = Array.from({ length: 30 }, () => textOf(random).toWellFormed())
  return deltas.map((text, sequence_number) => {
    const obfuscation = '\u00e9x'.repeat(random.below(3))
    const body = {
      Completions: { choices: [{ index: 0, delta: { content: text }, finish_reason: null }] },
      Messages: { type: 'content_block_delta', index: 3, delta: { type: 'text_delta', text } },
      Responses: { type: 'response.output_text.delta', sequence_number, delta: text },
    }[format]
    return { event: undefined, data: JSON.stringify({ ...body, obfuscation }) }
  })
}

type Piece = (text: string) => object

const choice = (delta: object) => ({ choices: [{ index: 0, delta, finish_reason: null }] })
const blockDelta = (delta: object) => ({ type: 'content_block_delta', index: 0, delta })
const ofShell = (delta: object) => ({
  type: 'response.shell_call_output_content.delta',
  output_index: 1,
  command_index: 0,
  delta,
})

/** Places inside of a delta, and events that have only them. */
const places: Readonly<Record<Format, readonly Piece[]>> = {
  Completions: [
    (text) => choice({ content: [{ type: 'new', new: text }] }),
    (text) => choice({ content: { a: { b: text } } }),
    (text) => choice({ new: [[text]] }),
    (text) => choice({ audio: { text, transcript: '' } }),
  ],
  Messages: [
    (text) => blockDelta({ type: 'new_delta', new: { text } }),
    (text) => blockDelta({ type: 'text_delta', list: [text] }),
    (content) => blockDelta({ type: 'compaction_delta', content }),
    (text) => ({ type: 'message_delta', delta: { stop_sequence: text } }),
    (text) => ({ type: 'message_delta', delta: { stop_details: { explanation: text } } }),
  ],
  Responses: [
    (stdout) => ofShell({ stdout, stderr: '' }),
    (stderr) => ofShell([{ stderr }]),
    (text) => ({ type: 'response.new.delta', new: text }),
    (text) => ({ type: 'response.new.delta', part: { body: text } }),
    (text) => ({ type: 'response.new', delta: { text } }),
  ],
}

/** All strings of the events, joined by their paths. */
function joined(events: readonly SentEvent[]): string[] {
  const texts = new Map<string, string>()
  const walk = (value: unknown, path: string): void => {
    if (typeof value === 'string') texts.set(path, (texts.get(path) ?? '') + value)
    else for (const [name, item] of Object.entries(value ?? {})) walk(item, `${path}/${name}`)
  }
  for (const { data } of events) walk(JSON.parse(data), '')
  return [...texts.values()]
}

/** Half surrogate pairs in JSON of the gateway become U+FFFD. */
const wellFormed = (value: unknown) =>
  JSON.parse(JSON.stringify(value), (_, item) =>
    typeof item === 'string' ? item.toWellFormed() : item,
  )

describe.each(['Completions', 'Messages', 'Responses'] as const)(
  'the rewriter of streams in the format %s',
  (format) => {
    it('masks texts and keeps events as the gateway does', () => {
      for (let seed = 1; seed <= 600; seed++) {
        const random = new Random(seed)
        const events = streamOf(format, random)
        const bytes = Buffer.from(sse(events, random))
        // The kernel refuses documents that it cannot read, and the gateway reads what Node decodes.
        if (events.some(({ data }) => data !== '[DONE]' && hasUnreadable(JSON.parse(data))))
          continue
        const { text } = rewrite(format, bytes, 1 + random.below(bytes.length))
        const theirs = wellFormed(received(gateway(format, events)))
        const ours = readSse(text)
        expect(wellFormed(received(ours)), `seed ${seed}`).toEqual(theirs)
        if (format !== 'Responses') continue
        const numbers = ours.map(({ data }) => JSON.parse(data).sequence_number)
        expect(numbers, `seed ${seed}`).toEqual(ours.map((_, at) => at))
      }
    })

    it('masks a secret that is split inside of a delta as one text', () => {
      for (const [at, place] of places[format].entries()) {
        const events = ['See ', 'sécr', 'et-4', '2 or bob@exam', 'ple.com, no'].map((text) => ({
          event: undefined,
          data: JSON.stringify(place(text)),
        }))
        const { text } = rewrite(format, Buffer.from(sse(events, new Random(at))), 11)
        for (const found of [readSse(text), gateway(format, events)]) {
          expect(joined(found), `place ${at}`).toContain('See <masked> or <E\nADDRESS>, no')
        }
      }
    })

    it('gives the same bytes wherever the stream is cut', () => {
      for (let seed = 1; seed <= 20; seed++) {
        const random = new Random(seed)
        const onlyTexts = () => ({ new: [textOf(random)], more: { note: textOf(random) } })
        const bytes = Buffer.from(sse(streamOf(format, random, onlyTexts), random))
        const whole = rewrite(format, bytes, bytes.length).text
        for (const size of [1, 2, 3, 7, 64]) {
          expect(rewrite(format, bytes, size).text, `seed ${seed}, pieces of ${size}`).toBe(whole)
        }
        const read = whole.replaceAll(/^data: .*_call_arguments.*$/gm, '')
        expect(read).not.toMatch(/bob@example\.com(?![a-z\d])|s\\u00e9cret-\d|sécret-\d/)
      }
    })

    it('masks events that differ only in their text, padding and number like any other', () => {
      for (let seed = 1; seed <= 100; seed++) {
        const random = new Random(seed)
        const events = similarEvents(format, random)
        const bytes = Buffer.from(sse(events, random))
        const { text, details } = rewrite(format, bytes, 1 + random.below(bytes.length))
        const theirs = wellFormed(received(gateway(format, events)))
        expect(wellFormed(received(readSse(text))), `seed ${seed}`).toEqual(theirs)
        expect(details.textBytes).toBeGreaterThan(0)
      }
    })

    it('reads the usage of a stream', () => {
      const random = new Random(5)
      const bytes = Buffer.from(sse(streamOf(format, random), random))
      const { inputTokens, outputTokens } = rewrite(format, bytes, 9).details
      const expected = { Completions: [5, 6], Messages: [2, 9], Responses: [4, 3] }[format]
      expect([inputTokens, outputTokens]).toEqual(expected)
    })
  },
)
