/** Which strings guards read: all that no list exempts, in requests, in answers and in streams. */
import { beforeEach, describe, expect, it } from 'vitest'
import { useFixture } from '../support/fixture.ts'
import { staticBackend, toBackend } from '../support/manifests.ts'
import { reached, routes, useFleet } from '../support/vendors/fleet.ts'
import { masks, shown, startWebhook } from '../support/vendors/guard-services.ts'
import { json, openStream } from '../support/vendors/vendor.ts'

const secrets = [{ regex: { matches: ['SECRET[0-9]+'] } }]
const guards = { ai: { routes, promptGuard: { request: secrets, response: secrets } } }
const reject = [{ regex: { matches: ['SECRET[0-9]+'], action: 'Reject' } }]

const hook = useFixture(startWebhook)
const fleet = useFleet(({ at }) => {
  const webhook = [{ webhook: { backendRef: toBackend('hook') } }]
  const hooked = { ai: { routes, promptGuard: { request: webhook, response: webhook } } }
  return [
    [staticBackend('hook', hook.port)],
    reached('a', { vendorA: {}, ...at('a') }, guards),
    reached('c', { vendorC: {}, ...at('c') }, guards),
    reached('d', { vendorD: {}, ...at('d') }, guards),
    reached('f', { vendorF: { region: 'us-east-1' }, ...at('f') }, guards),
    reached(
      'rejecting',
      { vendorC: {}, ...at('c') },
      { ai: { routes, promptGuard: { request: reject } } },
    ),
    reached('hooked', { vendorA: {}, ...at('a') }, hooked),
  ]
})
beforeEach(() => {
  fleet.forget()
  hook.calls.length = 0
  hook.answer = masks((text) => text.replaceAll(/SECRET\d+/g, '<masked>'))
})

type Body = Record<string, unknown>

const send = (name: string, path: string, body: Body | string) =>
  fetch(`${fleet.base(name)}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

const chat = '/v1/chat/completions'
const user = (content: unknown, more: Body = {}): Body => ({
  model: 'm-1',
  max_tokens: 50,
  messages: [{ role: 'user', content, ...more }],
})
const sentTo = (vendor: 'a' | 'c' | 'd' | 'f') =>
  fleet.vendors[vendor].calls.map(({ text }) => text).join('\n')

const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('request guards', () => {
  it.each([
    ['reasoning_text', { type: 'reasoning_text', text: 'SECRET1' }],
    ['summary_text', { type: 'summary_text', text: 'SECRET1' }],
    ['an unknown type with a refusal', { type: 'foo', refusal: 'SECRET1' }],
    ['a reasoning type with a refusal', { type: 'reasoning_text', refusal: 'SECRET1' }],
    [
      'a text file',
      { type: 'file', file: { file_data: `data:text/plain;base64,${base64('SECRET1')}` } },
    ],
    [
      'a text file by its name',
      { type: 'file', file: { filename: 'a.md', file_data: base64('SECRET1') } },
    ],
    [
      'the name of a file',
      { type: 'file', file: { filename: 'SECRET1.txt', file_data: base64('x') } },
    ],
  ])('read %s in a part, for every vendor', async (_, part) => {
    for (const vendor of ['c', 'd', 'f'] as const) {
      for (const role of ['user', 'system', 'tool']) {
        const body = user([part, { type: 'text', text: 'x' }], { role, tool_call_id: 't' })
        await (await send(vendor, chat, body)).text()
      }
      const sent = sentTo(vendor)
      expect(sent).not.toContain('SECRET1')
      expect(sent).not.toContain(base64('SECRET1'))
      expect(fleet.vendors[vendor].calls.length, vendor).toBeGreaterThan(0)
    }
  })

  it('reject what a translation sends as text', async () => {
    const answer = await send(
      'rejecting',
      chat,
      user([{ type: 'reasoning_text', text: 'SECRET1' }]),
    )
    expect(answer.status).toBe(403)
    expect(fleet.vendors.c.calls).toHaveLength(0)
  })

  it.each<[string, string, Body]>([
    [
      'a part in place of an item',
      '/v1/responses',
      { input: [{ type: 'input_text', text: 'SECRET1' }] },
    ],
    [
      'a text beside a content',
      '/v1/responses',
      { input: [{ role: 'user', content: 'a', text: 'SECRET1' }] },
    ],
    [
      'a result of a program',
      '/v1/responses',
      { input: [{ type: 'program_output', call_id: 'c', result: 'SECRET1' }] },
    ],
    [
      'a reason',
      '/v1/responses',
      {
        input: [
          {
            type: 'mcp_approval_request',
            id: 'r',
            server_label: 's',
            name: 'tool',
            arguments: '{}',
          },
          {
            type: 'mcp_approval_response',
            approval_request_id: 'r',
            approve: false,
            reason: 'SECRET1',
          },
        ],
      },
    ],
    [
      'a description of a found tool',
      '/v1/responses',
      {
        input: [
          {
            type: 'tool_search_output',
            tools: [{ type: 'function', name: 'f', description: 'SECRET1' }],
          },
        ],
      },
    ],
    ['thinking of a user', chat, user([{ type: 'thinking', thinking: 'SECRET1' }])],
    [
      'a field of a message that is not known',
      chat,
      user('x', { new_field: { deep: ['SECRET1'] } }),
    ],
    ['a title of embeddings', '/v1/embeddings', { input: 'x', title: 'SECRET1' }],
    [
      'a field of the request that is not known',
      chat,
      { ...user('x'), new_texts: [{ body: 'SECRET1' }] },
    ],
  ])('read %s', async (_, path, body) => {
    await (await send('a', path, { model: 'm-1', ...body })).text()
    expect(sentTo('a')).toContain('<masked>')
    expect(sentTo('a')).not.toContain('SECRET1')
  })

  it('read URLs of search results, which become a text', async () => {
    const result = {
      type: 'web_search_result',
      title: 'T',
      url: 'https://SECRET1',
      encrypted_content: 'E',
    }
    const search = { type: 'server_tool_use', id: 's', name: 'web_search', input: {} }
    const found = { type: 'web_search_tool_result', tool_use_id: 's', content: [result] }
    const messages = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: [search, found, { type: 'text', text: 'y' }] },
      { role: 'user', content: 'z' },
    ]
    await (await send('a', '/v1/messages', { model: 'm-1', max_tokens: 50, messages })).text()
    expect(sentTo('a')).toContain('Found on the web')
    expect(sentTo('a')).not.toContain('SECRET1')
  })

  it('read text documents in base64, and refuse those that are no base64', async () => {
    const document = (data: string) => ({
      type: 'document',
      source: { type: 'base64', media_type: 'text/plain', data },
    })
    await (await send('a', '/v1/messages', user([document(base64('my SECRET1'))]))).text()
    expect(sentTo('a')).toContain('my <masked>')
    const broken = await send('a', '/v1/messages', user([document('U0VD UkVUMQ==')]))
    expect(broken.status).toBe(400)
    const unknown = { type: 'document', source: { type: 'foo', data: base64('SECRET1') } }
    expect((await send('a', '/v1/messages', user([unknown]))).status).toBe(400)
    expect(fleet.vendors.a.calls).toHaveLength(1)
  })

  it('keep ids, names, arguments, and the reasoning of the assistant', async () => {
    const call = {
      id: 'SECRET1',
      type: 'function',
      function: { name: 'SECRET2', arguments: '{"a":"SECRET3"}' },
    }
    const messages = [
      { role: 'user', name: 'SECRET4', content: 'x' },
      { role: 'assistant', content: null, reasoning_content: 'SECRET5', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'SECRET1', content: 'SECRET6' },
    ]
    await (await send('a', chat, { model: 'SECRET7', messages, user: 'SECRET8' })).text()
    const kept = new Set(sentTo('a').match(/SECRET\d/g))
    expect([...kept].sort()).toEqual([1, 2, 3, 4, 5, 7, 8].map((number) => `SECRET${number}`))
  })

  it('show webhooks the same texts', async () => {
    const part = { type: 'foo', refusal: 'SECRET1', note: 'SECRET2' }
    await (await send('hooked', chat, { ...user([part]), new_texts: ['SECRET3'] })).text()
    const [call] = hook.calls.filter(({ path }) => path === '/request')
    expect(call && shown(call)).toEqual([
      { role: 'user', content: 'SECRET1 SECRET2' },
      { role: 'user', content: 'SECRET3' },
    ])
    expect(sentTo('a')).not.toContain('SECRET')
  })

  it('refuse bodies that are nested too deeply to be written', async () => {
    const deep = `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
    const answer = await send('a', chat, deep)
    expect(answer.status).toBe(400)
    expect(await answer.text()).toContain('nested deeper')
  })
})

describe('response guards', () => {
  const asking = (path: string): Body =>
    path === '/v1/responses' ? { model: 'm-1', input: 'x' } : user('x')
  const item = (fields: Body): Body => ({
    id: 'r',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'm-1',
    output: [{ id: 'i', status: 'completed', ...fields }],
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  })
  const choice = (fields: Body): Body => ({
    id: 'c',
    object: 'chat.completion',
    model: 'm-1',
    choices: [{ index: 0, finish_reason: 'stop', ...fields }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  })

  it.each<[string, string, Body]>([
    ['a result of a program', '/v1/responses', item({ type: 'program_output', result: 'SECRET1' })],
    [
      'a revised prompt',
      '/v1/responses',
      item({ type: 'image_generation_call', result: 'AA==', revised_prompt: 'SECRET1' }),
    ],
    [
      'a search',
      '/v1/responses',
      item({ type: 'web_search_call', action: { type: 'search', query: 'SECRET1' } }),
    ],
    ['queries', '/v1/responses', item({ type: 'file_search_call', queries: ['SECRET1'] })],
    [
      'a delta',
      chat,
      choice({ delta: { content: 'SECRET1' }, message: { role: 'assistant', content: 'x' } }),
    ],
    [
      'a field that is not known',
      chat,
      choice({ message: { role: 'assistant', content: 'x', new_field: ['SECRET1'] } }),
    ],
  ])('read %s in a whole answer', async (_, path, body) => {
    fleet.vendors.a.answer = (_call, response) => json(response, 200, body)
    for (const name of ['a', 'hooked']) {
      const answer = await send(name, path, asking(path))
      const text = await answer.text()
      expect(text, name).toContain('<masked>')
      expect(text).not.toContain('SECRET1')
    }
  })

  it('read the explanation of a refusal', async () => {
    const details = { type: 'refusal', category: 'cyber', explanation: 'SECRET1' }
    const body = {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: 'refusal',
      stop_details: details,
      usage: { input_tokens: 1, output_tokens: 1 },
    }
    fleet.vendors.c.answer = (_call, response) => json(response, 200, body)
    const text = await (await send('c', '/v1/messages', user('x'))).text()
    expect(text).toContain('"explanation":"<masked>"')
  })

  const streamed = async (name: string, path: string, events: readonly string[]) => {
    fleet.vendors.a.answer = (_call, response) => {
      openStream(response)
      response.end(events.map((event) => `${event}\n\n`).join(''))
    }
    return (await send(name, path, { ...asking(path), stream: true })).text()
  }
  const data = (body: Body) => `data: ${JSON.stringify(body)}`
  const done = 'data: [DONE]'

  it('read a message beside the delta, once it is complete', async () => {
    const event = (message: string, delta: Body, finish_reason: string | null) =>
      data({
        model: 'm',
        choices: [{ index: 0, message: { content: message }, delta, finish_reason }],
      })
    const events = [
      event('my SEC', { content: 'my SEC' }, null),
      event('my SECRET1', { content: 'RET1' }, null),
      event('my SECRET1', {}, 'stop'),
      done,
    ]
    for (const name of ['a', 'hooked']) {
      const text = await streamed(name, chat, events)
      expect(text, name).not.toMatch(/SECRET1|RET1|my SEC/)
      expect(text).toContain('"message":{"content":"my <masked>"}')
    }
  })

  it('read events and fields that are not known', async () => {
    const head = { output_index: 0, sequence_number: 0 }
    const text = await streamed('a', '/v1/responses', [
      data({ type: 'response.new_text.delta', ...head, delta: 'a SEC' }),
      data({ type: 'response.new_text.delta', ...head, delta: 'RET1 b', note: 'SECRET2' }),
      data({ type: 'response.new_text.done', ...head, text: 'a SECRET1 b' }),
      data({ type: 'response.completed', response: item({ type: 'new', text: 'SECRET3' }) }),
    ])
    expect(text).not.toMatch(/SECRET\d|RET1/)
    expect(text.match(/<masked>/g)).toHaveLength(4)
    const delta = await streamed('a', chat, [
      data({ model: 'm', choices: [{ index: 0, delta: { new_field: 'SEC' } }] }),
      data({
        model: 'm',
        choices: [{ index: 0, delta: { new_field: 'RET1' }, finish_reason: 'stop' }],
      }),
      done,
    ])
    expect(delta).not.toContain('RET1')
    expect(delta).toContain('"new_field":"<masked>"')
  })

  it('keep names of events only if they are types', async () => {
    const event = data({ type: 'response.completed', response: item({ type: 'new' }) })
    for (const name of ['a', 'hooked']) {
      const text = await streamed(name, '/v1/responses', [
        `event: SECRET1\n${event}`,
        `event: response.completed\n${event}`,
      ])
      expect(text, name).not.toContain('SECRET1')
      expect(text).toContain('event: response.completed')
    }
  })

  it('drop repeated keys of a whole answer', async () => {
    const body = JSON.stringify(choice({ message: { role: 'assistant', content: 'x' } }))
    const twice = body.replace('"content"', '"content":"SECRET1","content"')
    fleet.vendors.a.answer = (_call, response) => {
      response.setHeader('content-type', 'application/json')
      response.end(twice.replace('"role"', '"Content":"SECRET2","role"'))
    }
    const text = await (await send('a', chat, user('x'))).text()
    expect(text).not.toMatch(/SECRET\d/)
    expect(JSON.parse(text).choices[0].message.content).toBe('x')
  })

  it('refuse an answer with the status of a redirect', async () => {
    fleet.vendors.a.answer = (_call, response) => {
      response.writeHead(302, { location: '/SECRET1' })
      response.end('SECRET1')
    }
    const answer = await fetch(`${fleet.base('a')}${chat}`, {
      method: 'POST',
      body: JSON.stringify(user('x')),
      redirect: 'manual',
    })
    expect(answer.status).toBe(502)
    expect(answer.headers.get('location')).toBe(null)
    expect(await answer.text()).not.toContain('SECRET1')
  })
})
