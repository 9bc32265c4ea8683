/** Requests of wrong shapes, errors with good statuses, and calls that share an index. */
import type { ServerResponse } from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { policy } from '../support/manifests.ts'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import { json, openStream, sendEvent } from '../support/vendors/vendor.ts'
import { chunk } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'

const names = ['a', 'c', 'd', 'e', 'f'] as const
type Name = (typeof names)[number]
const models = {
  a: 'm-1',
  c: 'm-1',
  d: 'gemini-sim',
  e: 'gemini-sim',
  f: 'anthropic.claude-sim-v1:0',
}
const hourly = (tokens: number) => ({
  traffic: { rateLimit: { local: [{ tokens, unit: 'Hours' }] } },
})

const fleet = useFleet(({ at, region }) => {
  const signed = { auth: { aws: { secretRef: { name: 'aws' } } } }
  return [
    reached('a', { vendorA: {}, ...at('a') }),
    reached('c', { vendorC: {}, ...at('c') }),
    reached('d', { vendorD: {}, ...at('d') }, { auth: { key: 'AIzaKey' } }),
    reached('e', { vendorE: { projectId: 'my-project', region: 'us-central1' }, ...at('e') }),
    reached('f', { vendorF: { region }, ...at('f') }, signed),
    ...(['a', 'c', 'f'] as const).flatMap((name) => {
      const provider = { a: { vendorA: {} }, c: { vendorC: {} }, f: { vendorF: { region } } }[name]
      const more = name === 'f' ? signed : {}
      return [
        reached(`spent-${name}`, { ...provider, ...at(name) }, more),
        [policy(`spent-${name}`, `HTTPRoute/spent-${name}`, hourly(1))],
      ]
    }),
  ]
})
beforeEach(() => fleet.forget())

const openai = (name: string) =>
  new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
const anthropic = (name: string) =>
  new Anthropic({ baseURL: fleet.base(name), apiKey: 'client-key', maxRetries: 0 })
const hello = [{ role: 'user' as const, content: 'Hello' }]
const post = (name: string, path: string, body: object) =>
  fetch(`${fleet.base(name)}${path}`, { method: 'POST', body: JSON.stringify(body) })

describe('a request to count tokens', () => {
  it.each(['a', 'c', 'f'] as const)(
    'is answered even if the token limit is exceeded (vendor %s)',
    async (name) => {
      const ask = { model: models[name], messages: hello, max_tokens: 10 }
      await waitFor('the limit', () =>
        anthropic(`spent-${name}`)
          .messages.create(ask)
          .then(
            () => false,
            (error: unknown) => error instanceof Anthropic.RateLimitError,
          ),
      )
      const count = { model: models[name], messages: hello }
      const { input_tokens } = await anthropic(`spent-${name}`).messages.countTokens(count)
      expect(input_tokens).toBeGreaterThan(0)
    },
  )
})

const user = (content: unknown) => ({ messages: [{ role: 'user', content }] })
const call = (fields: object) => ({
  messages: [{ role: 'assistant', tool_calls: [{ id: 't', type: 'function', ...fields }] }],
})
const tool = (fields: object) => ({ messages: hello, tools: [{ type: 'function', ...fields }] })

const completions: readonly (readonly [string, object])[] = [
  ['messages', { messages: 'x' }],
  ['messages', { messages: { role: 'user' } }],
  ['messages[0]', { messages: ['x'] }],
  ['messages[0].role', { messages: [{ role: 5, content: 'x' }] }],
  ['messages[0].content', user(5)],
  ['messages[0].content', user(true)],
  ['messages[0].content', user({ type: 'text', text: 'x' })],
  ['messages[0].content', { messages: [{ role: 'user' }] }],
  ['messages[0].content[1]', user([{ type: 'text', text: 'x' }, 5])],
  ['messages[0].content[0].text', user([{ type: 'text', text: 5 }])],
  ['messages[0].content[0].text', user([{ type: 'text' }])],
  ['messages[0].content[0].image_url', user([{ type: 'image_url', image_url: 5 }])],
  ['messages[0].content[0].image_url.url', user([{ type: 'image_url', image_url: {} }])],
  ['messages[0].tool_calls', { messages: [{ role: 'assistant', tool_calls: 'x' }] }],
  ['messages[0].tool_calls[0].function', call({ function: 'x' })],
  ['messages[0].tool_calls[0].function.name', call({ function: { arguments: '{}' } })],
  [
    'messages[0].tool_calls[0].function.arguments',
    call({ function: { name: 'f', arguments: {} } }),
  ],
  ['tools', { messages: hello, tools: 'x' }],
  ['tools', { messages: hello, tools: {} }],
  ['tools[0]', { messages: hello, tools: ['x'] }],
  ['tools[0].function', tool({ function: 'x' })],
  ['tools[0].function.parameters', tool({ function: { name: 'f', parameters: 'x' } })],
  ['tools[0].function.description', tool({ function: { name: 'f', description: 5 } })],
  ['tool_choice', { messages: hello, tool_choice: 5 }],
  ['max_tokens', { messages: hello, max_tokens: '5' }],
  ['max_completion_tokens', { messages: hello, max_completion_tokens: [] }],
  ['temperature', { messages: hello, temperature: 'hot' }],
  ['top_p', { messages: hello, top_p: {} }],
  ['stop', { messages: hello, stop: 5 }],
  ['stop[1]', { messages: hello, stop: ['a', 5] }],
  ['seed', { messages: hello, seed: 'x' }],
  ['n', { messages: hello, n: '2' }],
  ['parallel_tool_calls', { messages: hello, parallel_tool_calls: 'yes' }],
  ['reasoning_effort', { messages: hello, reasoning_effort: 5 }],
  ['response_format', { messages: hello, response_format: 'json' }],
  ['response_format.json_schema', { messages: hello, response_format: { type: 'json_schema' } }],
  ['stream', { messages: hello, stream: 'yes' }],
  ['user', { messages: hello, user: {} }],
]

const messages: readonly (readonly [string, object])[] = [
  ['messages', { messages: 'x' }],
  ['messages', {}],
  ['messages[0].content', user(5)],
  ['messages[0].content', { messages: [{ role: 'user' }] }],
  ['messages[0].content[0]', user(['x'])],
  ['messages[0].content[0].type', user([{ text: 'x' }])],
  ['messages[0].content[0].text', user([{ type: 'text', text: {} }])],
  ['messages[0].content[0].source', user([{ type: 'image', source: 'x' }])],
  ['messages[0].content[0].source', user([{ type: 'image' }])],
  ['messages[0].content[0].tool_use_id', user([{ type: 'tool_result', content: 'x' }])],
  ['messages[0].content[0].content', user([{ type: 'tool_result', tool_use_id: 't', content: 5 }])],
  [
    'messages[0].content[0].content[0].text',
    user([{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 5 }] }]),
  ],
  ['messages[0].content[0].input', user([{ type: 'tool_use', id: 't', name: 'f', input: 'x' }])],
  ['system', { messages: hello, system: 5 }],
  ['system[0].text', { messages: hello, system: [{ type: 'text', text: 5 }] }],
  ['tools', { messages: hello, tools: 'x' }],
  ['tools[0].input_schema', { messages: hello, tools: [{ name: 'f', input_schema: 'x' }] }],
  ['tool_choice', { messages: hello, tool_choice: 'auto' }],
  ['max_tokens', { messages: hello, max_tokens: 'x' }],
  ['stop_sequences', { messages: hello, stop_sequences: 'x' }],
  ['thinking', { messages: hello, thinking: true }],
  [
    'thinking.budget_tokens',
    { messages: hello, thinking: { type: 'enabled', budget_tokens: 'x' } },
  ],
  ['metadata.user_id', { messages: hello, metadata: { user_id: 5 } }],
]

const items = (...all: object[]) => ({ input: all })
const responses: readonly (readonly [string, object])[] = [
  ['input', { input: 5 }],
  ['input', {}],
  ['input[0]', { input: ['x'] }],
  ['input[0].content', items({ role: 'user', content: 5 })],
  ['input[0].content[0].text', items({ role: 'user', content: [{ type: 'input_text', text: 5 }] })],
  ['input[0].arguments', items({ type: 'function_call', call_id: 'c', name: 'f', arguments: {} })],
  ['input[0].output', items({ type: 'function_call_output', call_id: 'c', output: 5 })],
  ['instructions', { input: 'x', instructions: 5 }],
  ['tools', { input: 'x', tools: 'x' }],
  ['tools[0].parameters', { input: 'x', tools: [{ type: 'function', name: 'f', parameters: 5 }] }],
  ['max_output_tokens', { input: 'x', max_output_tokens: 'x' }],
  ['text.format', { input: 'x', text: { format: 'json' } }],
  ['reasoning', { input: 'x', reasoning: 'high' }],
]

describe('a request body', () => {
  const cases = [
    ...completions.map(([path, body]) => ['/v1/chat/completions', 'c', path, body] as const),
    ...completions.map(([path, body]) => ['/v1/chat/completions', 'd', path, body] as const),
    ...messages.map(([path, body]) => ['/v1/messages', 'a', path, body] as const),
    ...messages.map(([path, body]) => ['/v1/messages', 'f', path, body] as const),
    ...responses.map(([path, body]) => ['/v1/responses', 'c', path, body] as const),
    ['/v1/messages/count_tokens', 'd', 'messages', { messages: 'x' }] as const,
    ['/v1/embeddings', 'f', 'dimensions', { input: 'x', dimensions: 'x' }] as const,
  ]
  it.each(cases)(
    'to %s of vendor %s is refused if this field has a wrong type: %s',
    async (path, name, where, body) => {
      const answer = await post(name, path, { model: models[name], ...body })
      expect(answer.status).toBe(400)
      const { error } = (await answer.json()) as { error: { message: string; type: string } }
      expect(error.message).toMatch(new RegExp(`^${where.replace(/[[\].]/g, '\\$&')} must be `))
      expect(error.type).toBe('invalid_request_error')
      expect(fleet.vendors[name].calls).toEqual([])
    },
  )

  it('is accepted if optional fields are null', async () => {
    const nothing = { tools: null, tool_choice: null, stop: null, temperature: null, user: null }
    const ask = { model: 'm-1', messages: hello, ...nothing }
    expect((await post('c', '/v1/chat/completions', ask)).status).toBe(200)
    const assistant = { role: 'assistant', content: null, refusal: null, tool_calls: null }
    const history = { ...ask, messages: [...hello, assistant, ...hello] }
    expect((await post('c', '/v1/chat/completions', history)).status).toBe(200)
  })
})

describe('the media type image/jpg', () => {
  const url = 'data:image/jpg;base64,/9j/'
  const source = { type: 'base64', media_type: 'image/jpg', data: '/9j/' }
  const bodies: Readonly<Record<string, object>> = {
    '/v1/chat/completions': user([{ type: 'image_url', image_url: { url } }]),
    '/v1/messages': user([{ type: 'image', source }]),
    '/v1/responses': items({ role: 'user', content: [{ type: 'input_image', image_url: url }] }),
  }
  const cases = Object.keys(bodies).flatMap((path) => names.map((name) => [path, name] as const))
  it.each(cases)('in a request to %s is sent as image/jpeg to vendor %s', async (path, name) => {
    const ask = { model: models[name], max_tokens: 10, ...bodies[path] }
    expect((await post(name, path, ask)).status).toBe(200)
    const sent = fleet.lastCall(name)?.text ?? ''
    expect(sent).not.toContain('image/jpg')
    expect(sent).toMatch(/jpeg/)
  })
})

/** What each vendor says in place of an answer, with status 200. */
const errors: Readonly<Record<Name, object>> = {
  a: {
    error: { message: 'quota is used up', type: 'insufficient_quota', code: 'insufficient_quota' },
  },
  c: { type: 'error', error: { type: 'rate_limit_error', message: 'quota is used up' } },
  d: [{ error: { code: 429, message: 'quota is used up', status: 'RESOURCE_EXHAUSTED' } }],
  e: { error: { code: 429, message: 'quota is used up', status: 'RESOURCE_EXHAUSTED' } },
  f: { message: 'quota is used up' },
}

const clients = {
  '/v1/chat/completions': { messages: hello },
  '/v1/messages': { messages: hello, max_tokens: 10 },
  '/v1/responses': { input: 'Hello' },
}
type Path = keyof typeof clients
const pairs = (Object.keys(clients) as Path[]).flatMap((path) =>
  names.map((name) => [path, name] as const),
)

/** The message of an error in the format of the client. */
function messageOf(path: Path, body: unknown): string {
  const { type, error } = body as { type?: string; error: { message: string; type: string } }
  expect(error.type).toEqual(expect.any(String))
  expect(type).toBe(path === '/v1/messages' ? 'error' : undefined)
  return error.message
}

const answers =
  (type: string, body: string) =>
  (_: unknown, response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': type })
    response.end(body)
  }

describe('a vendor error with status 200', () => {
  it.each(pairs)(
    'keeps the message of the vendor for a %s client (vendor %s)',
    async (path, name) => {
      const ask = { model: models[name], ...clients[path] }
      for (const stream of [false, true]) {
        fleet.vendors[name].answer = (_, response) => json(response, 200, errors[name])
        const answer = await post(name, path, { ...ask, stream })
        expect(answer.status).toBe(name === 'f' ? 502 : 429)
        expect(messageOf(path, await answer.json())).toBe('quota is used up')
        fleet.vendors[name].answer = answers('text/html', '<h1>Bad gateway</h1>')
        const html = await post(name, path, { ...ask, stream })
        expect(html.status).toBe(502)
        expect(messageOf(path, await html.json())).toContain('<h1>Bad gateway</h1>')
      }
    },
  )

  const inStreams = {
    'an event': (body: object) => `data: ${JSON.stringify(body)}\n\n`,
    'a page in an event': () => 'data: <h1>quota is used up</h1>\n\n',
    'a body without events': (body: object) => JSON.stringify(body),
    'a page without events': () => '<html>\n<h1>quota is used up</h1>\n</html>\n',
  }
  const ofStreams = pairs.filter(([, name]) => name !== 'f')
  it.each(
    ofStreams.flatMap(([path, name]) =>
      (Object.keys(inStreams) as (keyof typeof inStreams)[]).map(
        (kind) => [kind, path, name] as const,
      ),
    ),
  )(
    'as %s of a stream becomes an error in the format of a %s client (vendor %s)',
    async (kind, path, name) => {
      const error = Array.isArray(errors[name]) ? errors.e : errors[name]
      fleet.vendors[name].answer = answers('text/event-stream', inStreams[kind](error))
      const answer = await post(name, path, { model: models[name], ...clients[path], stream: true })
      const text = await answer.text()
      const datas = [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data]) =>
        JSON.parse(data ?? ''),
      )
      const isMine = (event: { type?: string; error?: { message?: string } }) =>
        path === '/v1/chat/completions' ? event.error != null : event.type === 'error'
      const mine = datas.filter(isMine)
      expect(mine).toHaveLength(1)
      expect(mine[0].error?.message ?? mine[0].message).toContain('quota is used up')
      if (path !== '/v1/chat/completions') expect(text).toContain('event: error\n')
    },
  )
})

describe('tool calls that share an index', () => {
  const args = { a: '{"city":"Bern"}', b: '{"city":"Rome"}' }
  const piece = (fields: object) => chunk('m-1', { tool_calls: [{ index: 0, ...fields }] })
  const whole = (id: string, text: string) =>
    piece({ id, type: 'function', function: { name: 'weather', arguments: text } })
  const streams: Readonly<Record<string, readonly object[]>> = {
    whole: [whole('call_a', args.a), whole('call_b', args.b)],
    'in pieces': [
      whole('call_a', ''),
      piece({ function: { arguments: args.a.slice(0, 5) } }),
      piece({ function: { arguments: args.a.slice(5) } }),
      whole('call_b', args.b.slice(0, 3)),
      piece({ function: { arguments: args.b.slice(3) } }),
    ],
    'in interleaved pieces': [
      whole('call_a', args.a.slice(0, 4)),
      whole('call_b', args.b.slice(0, 4)),
      piece({ id: 'call_a', function: { arguments: args.a.slice(4) } }),
      piece({ id: 'call_b', function: { arguments: args.b.slice(4) } }),
    ],
    'in one event': [
      chunk('m-1', {
        tool_calls: [
          {
            index: 0,
            id: 'call_a',
            type: 'function',
            function: { name: 'weather', arguments: args.a },
          },
          {
            index: 0,
            id: 'call_b',
            type: 'function',
            function: { name: 'weather', arguments: args.b },
          },
        ],
      }),
    ],
  }

  it.each(Object.keys(streams))('are separated by their ids if they come %s', async (kind) => {
    fleet.vendors.a.answer = (_, response) => {
      openStream(response)
      sendEvent(response, chunk('m-1', { role: 'assistant', content: null }))
      for (const event of streams[kind] ?? []) sendEvent(response, event)
      sendEvent(response, chunk('m-1', {}, 'tool_calls'))
      sendEvent(response, '[DONE]')
      response.end()
    }
    const inputs = [{ city: 'Bern' }, { city: 'Rome' }]
    const message = await anthropic('a')
      .messages.stream({ model: 'm-1', messages: hello, max_tokens: 10 })
      .finalMessage()
    expect(message.content).toMatchObject(
      inputs.map((input) => ({ type: 'tool_use', name: 'weather', input })),
    )
    for (const usage of [{}, { stream_options: { include_usage: true } }]) {
      const completion = await openai('a')
        .chat.completions.stream({ model: 'm-1', messages: hello, ...usage })
        .finalChatCompletion()
      const calls = completion.choices[0]?.message.tool_calls ?? []
      expect(calls.map(({ id }) => id)).toEqual(['call_a', 'call_b'])
      const found = calls.map((one) => 'function' in one && JSON.parse(one.function.arguments))
      expect(found).toEqual(inputs)
    }
  })
})
