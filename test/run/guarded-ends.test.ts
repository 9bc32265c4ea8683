/** Guarded streams that say early, or often, that they have ended: what the SDK of the client reads, for each provider. */
import { createServer } from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { expect, it } from 'vitest'
import { Random } from '../core/texts/messages.ts'
import { useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, routeByPath } from '../support/manifests.ts'

type Event = object | string

/** The events of the vendor's next answer. */
let events: readonly Event[] = []
const lineOf = (event: Event): string => {
  if (typeof event === 'string') return `data: ${event}\n\n`
  const name = 'type' in event ? `event: ${String(event.type)}\n` : ''
  return `${name}data: ${JSON.stringify(event)}\n\n`
}
const vendor = useListening(
  createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(events.map(lineOf).join(''))
    })
  }),
)

const port = await freePort()
const providers = {
  completions: { custom: { formats: [{ type: 'Completions' }] } },
  messages: { vendorC: {} },
  responses: { custom: { formats: [{ type: 'Responses' }] } },
  gemini: { vendorD: { model: 'm' } },
}
type ProviderName = keyof typeof providers
const names = Object.keys(providers) as ProviderName[]
const guard = { ai: { promptGuard: { response: [{ regex: { builtins: ['Email'] } }] } } }
useGateway(() => ({
  manifests: [
    gateway(port),
    ...names.flatMap((name) => [
      aiBackend(
        name,
        { provider: { ...providers[name], host: '127.0.0.1', port: vendor.port } },
        guard,
      ),
      routeByPath(name),
    ]),
  ],
}))

const secret = 'ann@example.com'

/** The places of a stream at which a vendor may say that it ends. */
interface Ends {
  /** What it says with each piece of text. */
  readonly each: unknown
  /** Whether it says between two pieces that the text ends. */
  between(): boolean
}

const chunk = (delta: object, finish_reason: unknown) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
})

function completions(pieces: readonly string[], { each, between }: Ends): Event[] {
  const texts = pieces.flatMap((content): Event[] => [
    chunk({ content }, each),
    ...(between() ? [chunk({}, 'stop')] : []),
  ])
  return [...texts, chunk({}, 'stop'), '[DONE]']
}

function messages(pieces: readonly string[], { each, between }: Ends): Event[] {
  const usage = { input_tokens: 1, output_tokens: 1 }
  const stop_sequence = null
  const message = { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], usage }
  const last = (stop_reason: unknown) => ({
    type: 'message_delta',
    delta: { stop_reason, stop_sequence },
    usage: { output_tokens: 2 },
  })
  const texts = pieces.flatMap((text): Event[] => [
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
    ...(each ? [last(each)] : []),
    ...(between() ? [{ type: 'content_block_stop', index: 0 }] : []),
    ...(between() ? [last('end_turn')] : []),
  ])
  return [
    { type: 'message_start', message: { ...message, stop_reason: null, stop_sequence } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    ...texts,
    { type: 'content_block_stop', index: 0 },
    last('end_turn'),
    { type: 'message_stop' },
  ]
}

function responses(pieces: readonly string[], { each, between }: Ends): Event[] {
  const at = { item_id: 'i', output_index: 0, content_index: 0 }
  const response = { id: 'r', object: 'response', status: 'completed', output: [] }
  const item = { type: 'message', id: 'i', role: 'assistant', status: 'completed', content: [] }
  const said: string[] = []
  const texts = pieces.flatMap((delta): object[] => {
    said.push(delta)
    return [
      { type: 'response.output_text.delta', ...at, delta, logprobs: [] },
      ...(each ? [{ type: 'response.output_text.done', ...at, text: said.join('') }] : []),
      ...(between() ? [{ type: 'response.in_progress', response }] : []),
      ...(between() ? [{ type: 'response.output_item.done', output_index: 0, item }] : []),
    ]
  })
  const begun = { type: 'response.created', response: { ...response, status: 'in_progress' } }
  return [begun, ...texts, { type: 'response.completed', response }].map((event, number) => ({
    ...event,
    sequence_number: number,
  }))
}

function gemini(pieces: readonly string[], { each, between }: Ends): Event[] {
  const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 }
  const candidate = (parts: readonly object[], finishReason?: unknown) => ({
    candidates: [{ content: { role: 'model', parts }, ...(finishReason ? { finishReason } : {}) }],
    usageMetadata,
  })
  const texts = pieces.flatMap((text): Event[] => [
    candidate([{ text }], each),
    ...(between() ? [candidate([], 'STOP')] : []),
  ])
  return [...texts, candidate([], 'STOP')]
}

const streams = { completions, messages, responses, gemini }
const ends: Readonly<Record<ProviderName, readonly unknown[]>> = {
  completions: [null, '', 'stop', 'null', false, 0],
  messages: [null, 'end_turn', ''],
  responses: [null, 'done'],
  gemini: [undefined, 'STOP', 'MAX_TOKENS'],
}

const key = { apiKey: 'k', maxRetries: 0 }
const openai = (name: ProviderName) =>
  new OpenAI({ ...key, baseURL: `http://127.0.0.1:${port}/${name}/v1` })
const anthropic = (name: ProviderName) =>
  new Anthropic({ ...key, baseURL: `http://127.0.0.1:${port}/${name}` })

/** What a client reads of a stream, with its SDK. */
const readers: Readonly<Record<string, (name: ProviderName) => Promise<string>>> = {
  async Completions(name) {
    const chat = [{ role: 'user', content: 'x' }] as const
    const stream = await openai(name).chat.completions.create({
      model: 'm',
      messages: [...chat],
      stream: true,
    })
    let text = ''
    for await (const { choices } of stream) text += choices[0]?.delta.content ?? ''
    return text
  },
  async Messages(name) {
    const stream = await anthropic(name).messages.create({
      model: 'm',
      max_tokens: 9,
      messages: [{ role: 'user', content: 'x' }],
      stream: true,
    })
    let text = ''
    for await (const event of stream) {
      if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') {
        text += event.delta.text
      }
    }
    return text
  },
  async Responses(name) {
    const stream = await openai(name).responses.create({ model: 'm', input: 'x', stream: true })
    let text = ''
    for await (const event of stream) {
      if (event.type === 'response.output_text.delta') text += event.delta
    }
    return text
  },
}

function piecesOf(random: Random): string[] {
  const words = [`write to ${secret}`, secret, 'ann@', 'example.com', 'é', '.', '\n']
  const text = Array.from({ length: 1 + random.below(6) }, () => random.of(words)).join(' ')
  const pieces: string[] = []
  for (let at = 0; at < text.length; ) {
    const size = 1 + random.below(8)
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return pieces
}

it.each(names)('masks streams of %s that end early as their whole text', async (name) => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = new Random(seed * 7919)
    const pieces = piecesOf(random)
    const each = random.of(ends[name])
    const isEarly = random.below(2) === 0
    const between = () => isEarly && random.below(3) === 0
    events = streams[name](pieces, { each, between })
    for (const [format, read] of Object.entries(readers)) {
      const where = `seed ${seed}: ${format} of ${name}, ${JSON.stringify(events)}`
      const text = await read(name).catch((error: unknown) => `failed: ${String(error)}`)
      expect(text, where).toBe(pieces.join('').replaceAll(secret, '<EMAIL_ADDRESS>'))
    }
  }
})
