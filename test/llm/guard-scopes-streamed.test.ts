/** In a stream of each format, a guard with a scope masks exactly the texts in scope, wherever events cut them. */
import { describe, expect, it } from 'vitest'
import { compileMask } from '../../src/engines/core/index.ts'
import type { ResponseEvent, StreamEvent } from '../../src/engines/messages/chat.ts'
import {
  type ChatFormat,
  type ClientFormat,
  chatFormatOf,
} from '../../src/engines/messages/format.ts'
import { clientFormats } from '../../src/engines/messages/formats/index.ts'
import { HeldStream } from '../../src/engines/messages/mask/held-stream.ts'
import type { Place } from '../../src/engines/messages/mask/places.ts'

const formats = Object.values<ClientFormat>(clientFormats).flatMap(
  (format) => chatFormatOf(format) ?? [],
)
const canaries = { Reasoning: 'canary1x', Messages: 'canary2x', ToolInput: 'canary3x' }
const places = Object.keys(canaries) as (keyof typeof canaries)[]

const compiled = compileMask([{ pattern: 'canary[0-9]x', replacement: 'gone' }])
if (!compiled.ok) throw new Error(compiled.message)
const { mask } = compiled

/** Returns a stream as the gateway writes it, whose texts are cut after `cut` characters. */
function streamOf(format: ChatFormat, cut: number): StreamEvent[] {
  const pieces = (text: string) => [text.slice(0, cut), text.slice(cut)].filter((one) => one !== '')
  const writer = format.writer({ created: 0, newId: () => 'x', request: { stream: true } })
  const events: ResponseEvent[] = [
    { type: 'start', id: 'a', model: 'm' },
    ...pieces(`I think ${canaries.Reasoning}.`).map(
      (text): ResponseEvent => ({ type: 'thinking', index: 0, text }),
    ),
    { type: 'block-stop', index: 0 },
    ...pieces(`I say so ${canaries.Messages}.`).map(
      (text): ResponseEvent => ({ type: 'text', index: 1, text }),
    ),
    { type: 'block-stop', index: 1 },
    { type: 'tool-start', index: 2, id: 'call_1', name: 'f' },
    ...pieces(`{"a": "b ${canaries.ToolInput}"}`).map(
      (json): ResponseEvent => ({ type: 'tool-input', index: 2, json }),
    ),
    { type: 'block-stop', index: 2 },
    { type: 'stop', reason: 'tool' },
    { type: 'end' },
  ]
  return [...events.flatMap((event) => writer.write(event)), ...writer.finish(true)]
}

/** Joins the strings that events have at the same path, as a client does with deltas. */
function receivedTexts(events: readonly StreamEvent[]): string {
  const texts = new Map<string, string>()
  const add = (value: unknown, path: string): void => {
    if (typeof value === 'string') texts.set(path, (texts.get(path) ?? '') + value)
    else if (typeof value === 'object' && value !== null) {
      for (const [name, item] of Object.entries(value)) add(item, `${path}/${name}`)
    }
  }
  for (const { event, data } of events) {
    if (data === '[DONE]') continue
    const parsed = JSON.parse(data) as { readonly type?: string }
    add(parsed, parsed.type ?? event ?? '')
  }
  return [...texts.values()].join('\n')
}

const canariesIn = (text: string): string[] => [...new Set(text.match(/canary\dx/g) ?? [])].sort()

const maskedWith = (format: ChatFormat, cut: number, scope: ReadonlySet<Place>): string => {
  const held = new HeldStream(format, streamOf(format, cut), { hasOptIn: true })
  held.mask(mask, undefined, false, scope)
  return receivedTexts(held.release())
}

describe.each(formats.map((format) => [format.name, format] as const))(
  'scopes of guards in streams of %s',
  (_, format) => {
    const sent = canariesIn(receivedTexts(streamOf(format, 100)))

    it.each(places)('mask %s alone, wherever events cut it', (place) => {
      const left = sent.filter((canary) => canary !== canaries[place])
      for (let cut = 1; cut <= 20; cut++) {
        const found = canariesIn(maskedWith(format, cut, new Set([place])))
        expect(found, `cut at ${cut}`).toEqual(left)
      }
    })

    it('mask all places together', () => {
      for (let cut = 1; cut <= 20; cut++) {
        expect(canariesIn(maskedWith(format, cut, new Set(places)))).toEqual([])
      }
    })
  },
)

it('streams have a text at each place, except those of TextCompletions', () => {
  for (const format of formats) {
    const sent = canariesIn(receivedTexts(streamOf(format, 100)))
    const hasText =
      format.name === 'TextCompletions' ? [canaries.Messages] : Object.values(canaries)
    expect(sent, format.name).toEqual(hasText)
  }
})
