/**
 * Masks over the borders of deltas, blocks, parts, items and choices: what a client gets is the same
 * whether the answer is streamed or not, in every format, from every vendor.
 */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { reached, routes, useFleet } from '../support/vendors/fleet.ts'
import { respondsSegments } from '../support/vendors/response-segments.ts'
import {
  completesSegments,
  conversesSegments,
  generatesSegments,
  type Segment,
  saysSegments,
} from '../support/vendors/segments.ts'

const names = ['a', 'c', 'd', 'e', 'f'] as const
type Name = (typeof names)[number]
const models = {
  a: 'm-1',
  c: 'm-1',
  d: 'gemini-sim',
  e: 'claude-sim',
  f: 'amazon.nova-pro-v1:0',
}

const promptGuard = {
  request: [
    { regex: { builtins: ['Ssn'], matches: ['secret-[0-9]+', '<masked>'], action: 'Reject' } },
  ],
  response: [
    { regex: { builtins: ['Ssn', 'CreditCard', 'Email', 'PhoneNumber'] } },
    { regex: { matches: ['secret-[0-9]+', 'top secret'] } },
  ],
}

const fleet = useFleet(({ at, region }) => {
  const more = { ai: { routes, promptGuard } }
  const project = { projectId: 'my-project', region: 'us-central1' }
  return [
    reached('a', { vendorA: {}, ...at('a') }, more),
    reached('c', { vendorC: {}, ...at('c') }, more),
    reached('d', { vendorD: {}, ...at('d') }, { ...more, auth: { key: 'AIzaKey' } }),
    reached('e', { vendorE: project, ...at('e') }, more),
    reached('f', { vendorF: { region }, ...at('f') }, more),
  ]
})
beforeEach(() => fleet.forget())

const openai = (name: string) =>
  new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
const anthropic = (name: string) =>
  new Anthropic({ baseURL: fleet.base(name), apiKey: 'client-key', maxRetries: 0 })
const messages = [{ role: 'user' as const, content: 'Hello' }]

/** The same numbers for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor(state / 65_536) % below
  }
}

function cut(text: string, count: number, random: (below: number) => number): string[] {
  const cuts = Array.from({ length: count }, () => random(text.length + 1)).sort((a, b) => a - b)
  return [0, ...cuts].map((from, at) => text.slice(from, cuts[at] ?? text.length))
}

/** No character is cut: a block is a text of its own. */
const cutIntoBlocks = (text: string, count: number, random: (below: number) => number): string[] =>
  cut(text, count, random)
    .join('\n')
    .replace(/([\ud800-\udbff])\n+([\udc00-\udfff])/g, '$1$2')
    .split('\n')

const said =
  'Jo (bob@example.com, +1 (415) 555-0132) has SSN 123-45-6789; card 4111 1111 1111 1111, secret-4242 is top secret 😀.'
const masked =
  'Jo (<EMAIL_ADDRESS>, <PHONE_NUMBER>) has SSN <SSN>; card <CREDIT_CARD>, <masked> is <masked> 😀.'
/** These are never masked: thinking is signed, and tools need their arguments. */
const unread = { thinking: 'his SSN is 123-45-6789', tool: '{"ssn":"123-45-6789"}' } as const

/** The text, cut at random into blocks and these into pieces, with other blocks among them. */
function segmentsOf(seed: number): Segment[] {
  const random = randomOf(seed)
  const blocks = cutIntoBlocks(said, random(5), random).filter((block) => block !== '')
  return blocks.flatMap((block, at): Segment[] => {
    const text = { kind: 'text', pieces: cut(block, random(6), random) } as const
    const kind = (['text', 'text', 'thinking', 'tool'] as const)[random(4)] ?? 'text'
    if (kind === 'text' || at === blocks.length - 1) return [text]
    return [text, { kind, pieces: cut(unread[kind], random(4), random) }]
  })
}

function answerWith(name: Name, segments: readonly Segment[]): void {
  const { a, c, d, e, f } = fleet.vendors
  const respond = respondsSegments(segments)
  const complete = completesSegments([segments])
  if (name === 'a') {
    a.answer = (call, response) =>
      (call.path.startsWith('/v1/responses') ? respond : complete)(call, response)
  } else if (name === 'c') c.answer = saysSegments(segments)
  else if (name === 'd') d.answer = generatesSegments(segments)
  else if (name === 'e') e.answer = saysSegments(segments)
  else f.answer = conversesSegments(segments)
}

interface Seen {
  /** Texts of an answer, part by part. */
  readonly texts: readonly string[]
  readonly calls: readonly unknown[]
}

const ofCompletion = ({ choices }: OpenAI.ChatCompletion): Seen => ({
  texts: choices.map(({ message }) => message.content ?? ''),
  calls: choices.flatMap(({ message }) =>
    (message.tool_calls ?? []).map(
      (call) => 'function' in call && JSON.parse(call.function.arguments),
    ),
  ),
})

const ofMessage = ({ content }: Anthropic.Message): Seen => ({
  texts: content.flatMap((block) => (block.type === 'text' ? [block.text] : [])),
  calls: content.flatMap((block) => (block.type === 'tool_use' ? [block.input] : [])),
})

const ofResponse = ({ output }: Pick<OpenAI.Responses.Response, 'output'>): Seen => ({
  texts: output.flatMap((item) =>
    item.type === 'message'
      ? item.content.map((part) => (part.type === 'output_text' ? part.text : part.refusal))
      : [],
  ),
  calls: output.flatMap((item) =>
    item.type === 'function_call' ? [JSON.parse(item.arguments)] : [],
  ),
})

const clients = {
  Completions: {
    whole: async (name: string, model: string) =>
      ofCompletion(await openai(name).chat.completions.create({ model, messages })),
    streamed: async (name: string, model: string) =>
      ofCompletion(
        await openai(name).chat.completions.stream({ model, messages }).finalChatCompletion(),
      ),
  },
  Messages: {
    whole: async (name: string, model: string) =>
      ofMessage(await anthropic(name).messages.create({ model, messages, max_tokens: 100 })),
    streamed: async (name: string, model: string) =>
      ofMessage(
        await anthropic(name).messages.stream({ model, messages, max_tokens: 100 }).finalMessage(),
      ),
  },
  Responses: {
    whole: async (name: string, model: string) =>
      ofResponse(await openai(name).responses.create({ model, input: 'Hello' })),
    async streamed(name: string, model: string) {
      const stream = await openai(name).responses.create({ model, input: 'Hello', stream: true })
      let deltas = ''
      const numbers: number[] = []
      const done: OpenAI.Responses.ResponseOutputItem[] = []
      const texts: string[] = []
      let last: OpenAI.Responses.Response | undefined
      for await (const event of stream) {
        numbers.push(event.sequence_number)
        if (event.type === 'response.output_text.delta') deltas += event.delta
        if (event.type === 'response.output_text.done') texts.push(event.text)
        if (event.type === 'response.output_item.done') done.push(event.item)
        if (event.type === 'response.completed') last = event.response
      }
      const seen = ofResponse(last ?? { output: [] })
      // What is streamed, what its parts and items repeat, and the whole at the end agree.
      expect(texts).toEqual(seen.texts)
      expect(ofResponse({ output: done })).toEqual(seen)
      expect(deltas).toBe(seen.texts.join(''))
      expect(numbers).toEqual(numbers.map((_, at) => at))
      return seen
    },
  },
}
type Client = keyof typeof clients
const pairs = (Object.keys(clients) as Client[]).flatMap((client) =>
  names.map((name) => [client, name] as const),
)

const rounds = 12

describe('a text that a vendor splits into deltas, blocks, parts and items', () => {
  it.each(pairs)(
    'is masked the same for a %s client of vendor %s, whole and streamed',
    async (client, name) => {
      for (let seed = 0; seed < rounds; seed++) {
        const segments = segmentsOf(seed)
        answerWith(name, segments)
        const whole = await clients[client].whole(name, models[name])
        const streamed = await clients[client].streamed(name, models[name])
        const shown = `seed ${seed}: ${JSON.stringify(segments)}`
        expect(whole.texts.join(''), shown).toBe(masked)
        expect(streamed.texts.join(''), shown).toBe(masked)
        // Chat completions do not include the order of texts and tool calls.
        const keepsOrder = client !== 'Messages' || name !== 'a'
        if (keepsOrder) expect(streamed, shown).toEqual(whole)
        expect(streamed.calls, shown).toEqual(whole.calls)
        for (const call of streamed.calls) expect(call).toEqual({ ssn: '123-45-6789' })
        if (client === 'Messages') expect(streamed.texts).not.toContain('')
      }
    },
  )

  it('is masked in several choices whose pieces are interleaved', async () => {
    for (let seed = 0; seed < rounds; seed++) {
      const plain = (from: number) => segmentsOf(from).filter(({ kind }) => kind === 'text')
      fleet.vendors.a.answer = completesSegments([
        plain(seed),
        plain(seed + 100),
        plain(seed + 200),
      ])
      const ask = { model: 'm-1', messages, n: 3 }
      const whole = ofCompletion(await openai('a').chat.completions.create(ask))
      const streamed = ofCompletion(
        await openai('a').chat.completions.stream(ask).finalChatCompletion(),
      )
      expect(whole.texts).toEqual([masked, masked, masked])
      expect(streamed.texts).toEqual(whole.texts)
    }
  })

  it('is masked across two text blocks', async () => {
    fleet.vendors.c.answer = saysSegments([
      { kind: 'text', pieces: ['It is 123', '-45'] },
      { kind: 'text', pieces: ['-67', '89.'] },
    ])
    const ask = { model: 'm-1', messages, max_tokens: 100 }
    const expected = [
      { type: 'text', text: 'It is <SSN>' },
      { type: 'text', text: '.' },
    ]
    expect((await anthropic('c').messages.create(ask)).content).toEqual(expected)
    expect((await anthropic('c').messages.stream(ask).finalMessage()).content).toEqual(expected)
  })

  it('omits blocks that become empty, and keeps the order of the others', async () => {
    fleet.vendors.c.answer = saysSegments([
      { kind: 'text', pieces: ['123-45'] },
      { kind: 'text', pieces: ['-67', '89'] },
      { kind: 'tool', pieces: ['{"a"', ':1}'] },
      { kind: 'text', pieces: [' b', 'ye'] },
    ])
    const ask = { model: 'm-1', messages, max_tokens: 100 }
    const whole = await anthropic('c').messages.create(ask)
    const streamed = await anthropic('c').messages.stream(ask).finalMessage()
    expect(whole.content).toMatchObject([
      { type: 'text', text: '<SSN>' },
      { type: 'tool_use', input: { a: 1 } },
      { type: 'text', text: ' bye' },
    ])
    expect(streamed.content).toEqual(whole.content)
  })
})

describe('a request that is guarded', () => {
  const refused = async (name: Name, path: string, body: object) => {
    const answer = await fetch(`${fleet.base(name)}${path}`, {
      method: 'POST',
      body: JSON.stringify({ model: models[name], max_tokens: 100, ...body }),
    })
    expect(fleet.vendors[name].calls).toEqual([])
    return answer.status
  }
  const parts = (...texts: string[]) => texts.map((text) => ({ type: 'text', text }))
  const splits = [
    ['123-45', '-6789'],
    ['it is 12', '3-45-67', '89'],
    ['secret', '-12'],
    // A match that looks like what would replace it.
    ['<masked>'],
  ]

  it.each(splits.map((texts) => [texts]))(
    'is refused for a match across its parts: %j',
    async (texts) => {
      const user = [{ role: 'user', content: parts(...texts) }]
      for (const name of names) {
        expect(await refused(name, '/v1/chat/completions', { messages: user })).toBe(403)
        expect(await refused(name, '/v1/messages', { messages: user })).toBe(403)
        expect(await refused(name, '/v1/messages', { messages, system: parts(...texts) })).toBe(403)
        const content = texts.map((text) => ({ type: 'input_text', text }))
        const input = [{ role: 'user', content }]
        expect(await refused(name, '/v1/responses', { input })).toBe(403)
      }
      const result = { type: 'tool_result', tool_use_id: 't', content: parts(...texts) }
      const asked = { messages: [{ role: 'user', content: [result] }] }
      expect(await refused('c', '/v1/messages', asked)).toBe(403)
      expect(await refused('c', '/v1/messages/count_tokens', { messages: user })).toBe(403)
    },
  )
})
