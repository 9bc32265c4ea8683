import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { useAuthority, useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  httpRoute,
  secret,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import {
  acts,
  flags,
  masks,
  shown,
  startModeration,
  startWebhook,
} from '../support/vendors/guard-services.ts'
import { saysSegments } from '../support/vendors/segments.ts'
import { json, openStream, sendEvent, type Vendor } from '../support/vendors/vendor.ts'
import { chunk, completes, failsA, startVendorA } from '../support/vendors/vendor-a.ts'
import { says, startMessage, startVendorC } from '../support/vendors/vendor-c.ts'

const routes = {
  '/v1/chat/completions': 'Completions',
  '/v1/messages': 'Messages',
  '/v1/messages/count_tokens': 'VendorCTokenCount',
  '/v1/responses': 'Responses',
  '/v1/embeddings': 'Embeddings',
}

const at = (vendor: Vendor) => ({ host: '127.0.0.1', port: vendor.port })
const toA = () => ({ provider: { vendorA: {}, ...at(a) } })
const toC = () => ({ provider: { vendorC: {}, ...at(c) } })

/** A backend with guards, and the route to it below a path of its name. */
const guarded = (name: string, ai: object, promptGuard: object) => [
  aiBackend(name, ai as Record<string, unknown>, { ai: { routes, promptGuard } }),
  httpRoute(name, {
    rules: [
      {
        matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }],
        backendRefs: [toBackend(name)],
      },
    ],
  }),
]

const webhook = { backendRef: toBackend('hook') }
const byService = { backendRef: { kind: 'Service', name: 'hook-service', port: 80 } }
const custom = { statusCode: 451, message: 'not here' }
const noDigits = (text: string) => text.replace(/\d/g, '#')

const authority = useAuthority()
const port = await freePort()
const a = useFixture(startVendorA)
const c = useFixture(startVendorC)
const hook = useFixture(startWebhook)
const moderation = useFixture(() => startModeration(authority.issue(['api.openai.com'])))
const running = useGateway(async () => {
  const ca = { tls: { caCertificateRefs: [{ name: 'ca' }] } }
  return {
    env: {
      NODE_OPTIONS: `--import ${join(import.meta.dirname, '../../test/support/redirects.ts')}`,
      SLUICE_TEST_REDIRECTS: JSON.stringify({ 'api.openai.com:443': moderation.port }),
    },
    manifests: [
      gateway(port),
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'ca' },
        data: { 'ca.crt': authority.certificate },
      },
      secret('moderation-key', { Authorization: 'moderation-token' }),
      staticBackend('hook', hook.port),
      staticBackend('nobody', await freePort()),
      ...service('hook-service', [hook.port]),
      ...guarded('hooked-a', toA(), {
        request: [{ webhook, response: custom }],
        response: [{ webhook, response: custom }],
      }),
      ...guarded('hooked-c', toC(), {
        request: [{ webhook: byService }],
        response: [{ webhook: byService }],
      }),
      ...guarded('forwarding', toA(), {
        request: [
          {
            webhook: {
              ...webhook,
              forwardHeaderMatches: [
                { name: 'x-tenant', value: 'acme' },
                { name: 'x-trace', type: 'RegularExpression', value: 't-[0-9]+' },
              ],
            },
          },
        ],
        response: [
          { webhook: { ...webhook, forwardHeaderMatches: [{ name: 'x-region', value: 'eu' }] } },
        ],
      }),
      ...guarded('dead', toA(), { request: [{ webhook: { backendRef: toBackend('nobody') } }] }),
      ...guarded('dead-behind', toC(), {
        response: [{ webhook: { backendRef: toBackend('nobody') } }],
      }),
      ...guarded('mixed', toC(), {
        request: [
          { regex: { builtins: ['Email'] } },
          { webhook },
          { regex: { matches: ['#{3,}'], action: 'Reject' } },
        ],
        response: [{ regex: { builtins: ['Email'] } }, { webhook }],
      }),
      ...['pair', 'other-pair'].flatMap((name) =>
        guarded(
          name,
          {
            groups: [
              { providers: [{ name: 'one', vendorA: { model: 'own' }, ...at(a) }] },
              { providers: [{ name: 'two', vendorC: {}, ...at(c) }] },
            ],
          },
          { request: [{ webhook }], response: [{ webhook }] },
        ),
      ),
      ...guarded('moderated', toA(), {
        request: [
          {
            vendorAModeration: {
              policies: { ...ca, auth: { secretRef: { name: 'moderation-key' } } },
            },
            response: { message: 'be kind' },
          },
        ],
      }),
      ...guarded('moderated-by', toC(), {
        request: [
          {
            vendorAModeration: {
              model: 'text-moderation-stable',
              policies: { ...ca, auth: { key: 'inline-token' } },
            },
          },
        ],
      }),
      // The machine does not trust the authority of the test.
      ...guarded('moderated-untrusted', toA(), { request: [{ vendorAModeration: {} }] }),
      ...['Ssn', 'CreditCard', 'PhoneNumber', 'Email', 'CaSin'].flatMap((builtin) =>
        guarded(builtin.toLowerCase(), toA(), {
          request: [{ regex: { builtins: [builtin] } }],
          response: [{ regex: { builtins: [builtin] } }],
        }),
      ),
      aiBackend('unread', toA(), {
        ai: { routes: { '/raw': 'Passthrough' }, promptGuard: { request: [{ webhook }] } },
      }),
      ...guarded('unbounded', toA(), { response: [{ regex: { matches: ['BEGIN.+END'] } }] }),
    ],
  }
})

beforeEach(() => {
  for (const one of [a, c, hook, moderation]) {
    one.calls.length = 0
    one.next.length = 0
    one.aborted = 0
  }
  a.answer = completes('Hello ', 'from A')
  c.answer = says('Hello ', 'from C')
  hook.answer = acts({ reason: 'fine' })
  moderation.answer = flags(/violence/)
})

const base = (name: string) => `http://127.0.0.1:${port}/${name}`
const openai = (name: string) =>
  new OpenAI({ baseURL: `${base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
const anthropic = (name: string) =>
  new Anthropic({ baseURL: base(name), apiKey: 'client-key', maxRetries: 0 })
const tell = (content: string) => ({
  model: 'm-1',
  messages: [
    { role: 'system' as const, content: 'Be kind.' },
    { role: 'user' as const, content },
  ],
})
const ask = tell('Hello 42')
const askC = {
  model: 'm-1',
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'Hello 42' }],
}
const post = (
  name: string,
  body: object,
  headers: Record<string, string> = {},
  format = 'chat/completions',
) => fetch(`${base(name)}/v1/${format}`, { method: 'POST', body: JSON.stringify(body), headers })
const deep = (levels: number): object => (levels === 0 ? {} : { content: deep(levels - 1) })
const asked = (path: string) => hook.calls.filter((call) => call.path === path)
const upstream = () => a.calls.length + c.calls.length

describe('a webhook for requests', () => {
  it('[PromptguardRequest.webhook] [Webhook.backendRef] is shown the texts with their roles, and lets pass', async () => {
    await openai('hooked-a').chat.completions.create(ask)
    expect(shown(asked('/request')[0]!)).toEqual([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Hello 42' },
    ])
    expect(a.calls.at(-1)?.body.messages).toEqual(ask.messages)
    await anthropic('hooked-c').messages.create({ ...askC, system: 'Be kind.' })
    expect(shown(asked('/request')[1]!)).toEqual([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Hello 42' },
    ])
  })

  it('changes texts, and leaves images and calls of tools where they are', async () => {
    hook.next.push(masks(noDigits))
    const image = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AA==' } }
    await openai('hooked-a').chat.completions.create({
      model: 'm-1',
      messages: [
        {
          role: 'user',
          content: [{ type: 'text', text: 'call 1' }, image, { type: 'text', text: 'or 2' }],
        },
        {
          role: 'assistant',
          content: 'no 3',
          tool_calls: [{ id: 't', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 't', content: 'ok' },
      ],
    })
    expect(shown(asked('/request')[0]!)[0]).toEqual({ role: 'user', content: 'call 1 or 2' })
    expect(a.calls.at(-1)?.body.messages).toMatchObject([
      { role: 'user', content: [image, { type: 'text', text: 'call # or #' }] },
      { role: 'assistant', content: 'no #', tool_calls: [{ id: 't' }] },
      { role: 'tool', tool_call_id: 't', content: 'ok' },
    ])
  })

  it('replaces the conversation where it answers another one', async () => {
    const messages = [{ role: 'user', content: 'Something else' }]
    hook.next.push(acts({ body: { messages } }), acts({}), acts({ body: { messages } }))
    await openai('hooked-a').chat.completions.create(ask)
    expect(a.calls.at(-1)?.body.messages).toEqual(messages)
    await anthropic('hooked-c').messages.create({ ...askC, system: 'Be kind.' })
    expect(c.calls.at(-1)?.body).toEqual({ ...askC, messages })
  })

  it('sees what other formats say', async () => {
    hook.answer = masks(noDigits)
    await openai('hooked-a').responses.create({
      model: 'm-1',
      instructions: 'Be 1.',
      input: 'Hello 2',
    })
    expect(a.calls.at(-1)?.body).toMatchObject({ instructions: 'Be #.', input: 'Hello #' })
    const variables = { city: 'Bern 3', more: { type: 'input_text' as const, text: 'no 4' } }
    const prompt = { id: 'pmpt_1', variables }
    await openai('hooked-a').responses.create({ model: 'm-1', prompt, input: 'Hello 2' })
    expect(a.calls.at(-1)?.body.prompt).toEqual({
      id: 'pmpt_1',
      variables: { city: 'Bern #', more: { type: 'input_text', text: 'no #' } },
    })
    await openai('hooked-a').embeddings.create({ model: 'e', input: ['a 1', 'b 2'] })
    expect(a.calls.at(-1)?.body.input).toEqual(['a #', 'b #'])
    const document: Anthropic.DocumentBlockParam = {
      type: 'document',
      source: { type: 'text', media_type: 'text/plain', data: 'no 3' },
    }
    const result: Anthropic.ToolResultBlockParam = {
      type: 'tool_result',
      tool_use_id: 't',
      content: [{ type: 'text', text: 'no 4' }],
    }
    for (const part of [document, result]) {
      const asking = { ...askC, messages: [{ role: 'user' as const, content: [part] }] }
      await anthropic('hooked-c').messages.create(asking)
      expect(c.calls.at(-1)?.text).toContain('no #')
      expect(c.calls.at(-1)?.text).not.toMatch(/no \d/)
    }
    // Nobody can read what tokens say.
    const tokens = openai('hooked-a').embeddings.create({ model: 'e', input: [[15339, 1917]] })
    await expect(tokens).rejects.toMatchObject({ status: 400 })
  })

  it('[PromptguardRequest.response] [CustomResponse.use] refuses in its own words, and else in those of the guard', async () => {
    hook.next.push(acts({ body: 'go away', status_code: 418, reason: 'because' }))
    const own = await post('hooked-a', ask)
    expect([own.status, await own.text()]).toEqual([418, 'go away'])
    hook.next.push(acts({ status_code: 451 }))
    const words = await post('hooked-a', ask)
    expect([words.status, await words.text()]).toEqual([451, 'not here'])
    hook.next.push(acts({ body: 'no' }))
    expect((await post('hooked-a', ask)).status).toBe(451)
    hook.next.push(acts({ body: 'no' }))
    expect((await post('hooked-c', ask)).status).toBe(403)
    expect(upstream()).toBe(0)
  })

  it('that fails keeps the request from going on', async () => {
    const bad = [
      acts({ reason: 'fine' }, 500),
      acts(undefined),
      acts({ body: { messages: [{ role: 'user' }] } }),
      acts({ body: 7 }),
      (_: unknown, response: Parameters<Vendor['answer']>[1]) => response.end('no JSON'),
      (_: unknown, response: Parameters<Vendor['answer']>[1]) => void response.destroy(),
    ]
    for (const answer of bad) {
      hook.next.length = 0
      // A connection that was kept and is closed is tried once more.
      hook.next.push(answer, answer)
      const refused = await post('hooked-a', ask)
      expect(refused.status).toBe(503)
      expect(await refused.json()).toMatchObject({ error: { message: 'prompt guard failed' } })
    }
    await expect(openai('dead').chat.completions.create(ask)).rejects.toMatchObject({ status: 503 })
    expect(upstream()).toBe(0)
  })

  it('[Webhook.forwardHeaderMatches] gets the headers that match, and no others', async () => {
    a.answer = (call, response) => {
      response.setHeader('x-region', 'eu')
      response.setHeader('x-secret', 'no')
      completes('Hello')(call, response)
    }
    await post('forwarding', ask, {
      'x-tenant': 'acme',
      'x-trace': 't-12',
      authorization: 'Bearer k',
    })
    const [request] = asked('/request')
    expect(request?.headers).toMatchObject({ 'x-tenant': 'acme', 'x-trace': 't-12' })
    expect(request?.headers.authorization).toBe(undefined)
    const [response] = asked('/response')
    expect(response?.headers['x-region']).toBe('eu')
    expect(response?.headers['x-secret']).toBe(undefined)
    expect(response?.headers['x-tenant']).toBe(undefined)
    await post('forwarding', ask, { 'x-tenant': 'other', 'x-trace': 'nt-12' })
    const again = asked('/request')[1]
    expect(again?.headers['x-tenant']).toBe(undefined)
    expect(again?.headers['x-trace']).toBe(undefined)
  })
})

describe('a webhook for answers', () => {
  it('[PromptguardResponse.webhook] is shown the whole answer, and lets it pass as it came', async () => {
    const whole = await openai('hooked-a').chat.completions.create(ask)
    expect(whole.choices[0]?.message.content).toBe('Hello from A')
    const streamed = await openai('hooked-a').chat.completions.stream(ask).finalContent()
    expect(streamed).toBe('Hello from A')
    await anthropic('hooked-c').messages.stream(askC).finalMessage()
    await openai('hooked-c').responses.stream({ model: 'm', input: 'x' }).finalResponse()
    expect(asked('/response').map((call) => shown(call))).toEqual([
      [{ role: 'assistant', content: 'Hello from A' }],
      [{ role: 'assistant', content: 'Hello from A' }],
      [{ role: 'assistant', content: 'Hello from C' }],
      [{ role: 'assistant', content: 'Hello from C' }],
    ])
  })

  it('changes texts, in streams of every format too', async () => {
    a.answer = completes('It is ', '4', '2.')
    c.answer = says('It is ', '4', '2.')
    hook.answer = masks(noDigits)
    const whole = await openai('hooked-a').chat.completions.create(ask)
    expect(whole.choices[0]?.message.content).toBe('It is ##.')
    expect(await openai('hooked-a').chat.completions.stream(ask).finalContent()).toBe('It is ##.')
    expect(await openai('hooked-c').chat.completions.stream(ask).finalContent()).toBe('It is ##.')
    expect(await anthropic('hooked-c').messages.stream(askC).finalText()).toBe('It is ##.')
    expect(await anthropic('hooked-a').messages.stream(askC).finalText()).toBe('It is ##.')
    for (const name of ['hooked-a', 'hooked-c']) {
      const stream = openai(name).responses.stream({ model: 'm', input: 'x' })
      let deltas = ''
      stream.on('response.output_text.delta', ({ delta }) => {
        deltas += delta
      })
      expect((await stream.finalResponse()).output_text).toBe('It is ##.')
      expect(deltas).toBe('It is ##.')
    }
  })

  it('[PromptguardResponse.response] refuses an answer before any of it is seen, whole or streamed', async () => {
    for (const stream of [false, true]) {
      hook.next.push(acts({}), acts({ body: 'no such talk', status_code: 409 }))
      const own = await post('hooked-a', { ...ask, stream })
      expect([own.status, await own.text()]).toEqual([409, 'no such talk'])
      hook.next.push(acts({}), acts({ status_code: 0 }))
      const words = await post('hooked-a', { ...ask, stream })
      expect([words.status, await words.text()]).toEqual([451, 'not here'])
    }
    hook.next.push(acts({}), acts({ status_code: 0 }))
    const byDefault = await post('hooked-c', ask)
    expect([byDefault.status, await byDefault.text()]).toEqual([
      403,
      'The response was rejected due to inappropriate content',
    ])
  })

  it('that fails keeps the answer back, and so does a mask that does not fit', async () => {
    for (const stream of [false, true]) {
      const dead = await post('dead-behind', { ...ask, stream })
      expect(dead.status).toBe(503)
      expect(await dead.text()).not.toContain('from C')
      hook.next.push(acts({}), acts({ body: { choices: [] } }))
      expect((await post('hooked-a', { ...ask, stream })).status).toBe(503)
    }
  })

  it('is not shown half an answer: what is cut off is an error with a status', async () => {
    a.next.push((_, response) => {
      openStream(response)
      sendEvent(response, chunk('m', { content: 'Hel' }), undefined)
      response.write('data: {"half', () => response.destroy())
    })
    const cut = await post('hooked-a', { ...ask, stream: true })
    expect(cut.status).toBe(503)
    expect(await cut.json()).toMatchObject({ error: { message: expect.any(String) } })
    expect(asked('/response')).toEqual([])
    // Where another provider can be asked, it is.
    a.next.push((_, response) => {
      openStream(response)
      response.write('data: {"half', () => response.destroy())
    })
    expect(await openai('pair').chat.completions.stream(ask).finalContent()).toBe('Hello from C')
  })

  it('sees what a vendor repeats, where that differs from what it has streamed', async () => {
    hook.answer = masks((text) => text.replace('hidden', '***'))
    a.next.push((_, response) => {
      openStream(response)
      let number = 0
      const send = (type: string, fields: object) =>
        sendEvent(response, { type, sequence_number: number++, ...fields }, type)
      const place = { item_id: 'msg', output_index: 0, content_index: 0 }
      const part = { type: 'output_text', text: 'a hidden text', annotations: [] }
      const item = {
        id: 'msg',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [part],
      }
      send('response.output_text.delta', { ...place, delta: 'a text' })
      send('response.output_text.done', { ...place, text: 'a hidden text' })
      send('response.completed', {
        response: { id: 'r', object: 'response', status: 'completed', model: 'm', output: [item] },
      })
      response.end()
    })
    const answer = await fetch(`${base('hooked-a')}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({ model: 'm', input: 'x', stream: true }),
    })
    const text = await answer.text()
    expect(text).toContain('a *** text')
    expect(text).not.toContain('hidden')
  })

  it('works with patterns in the order of the guards', async () => {
    c.answer = says('mail bob@exa', 'mple.com 42')
    hook.answer = masks(noDigits)
    const streamed = await anthropic('mixed').messages.stream(askC).finalText()
    expect(streamed).toBe('mail <EMAIL_ADDRESS> ##')
    expect(asked('/response').map((call) => shown(call)[0]?.content)).toEqual([
      'mail <EMAIL_ADDRESS> 42',
    ])
    const refused = await post('mixed', tell('bob@example.com 123'))
    expect(refused.status).toBe(403)
    expect(shown(asked('/request').at(-1)!).at(-1)?.content).toBe('<EMAIL_ADDRESS> 123')
  })

  it('masks over the blocks of a held stream as in one that is not held', async () => {
    const segments = [
      { kind: 'text', pieces: ['mail bob', '@exa'] },
      { kind: 'text', pieces: ['mple.com 42'] },
    ] as const
    c.answer = saysSegments(segments)
    hook.answer = masks((text) => text)
    const streamed = await anthropic('mixed').messages.stream(askC).finalMessage()
    const whole = await anthropic('mixed').messages.create(askC)
    const texts = ['mail <EMAIL_ADDRESS>', ' 42'].map((text) => ({ type: 'text', text }))
    expect(whole.content).toEqual(texts)
    expect(streamed.content).toEqual(texts)
    const [first, second] = asked('/response').map((call) => shown(call))
    expect(first).toEqual(second)
  })

  it('does not hold up events that begin no text, and keeps their order', async () => {
    c.next.push((_, response) => {
      startMessage('m', response)
      sendEvent(response, { type: 'content_block_stop', index: 0 }, 'content_block_stop')
      const delta = { stop_reason: 'end_turn', stop_sequence: null }
      sendEvent(
        response,
        { type: 'message_delta', delta, usage: { output_tokens: 5 } },
        'message_delta',
      )
      sendEvent(response, { type: 'message_stop' }, 'message_stop')
      response.end()
    })
    const message = await anthropic('hooked-c').messages.stream(askC).finalMessage()
    expect(message.stop_reason).toBe('end_turn')
  })
})

describe('guards and failover', () => {
  it('are asked once for a request, whoever answers it', async () => {
    hook.next.push(masks(noDigits))
    a.next.push(failsA(500, 'oh no'))
    const answer = await openai('other-pair').chat.completions.create(ask)
    expect(answer.choices[0]?.message.content).toBe('Hello from C')
    expect(asked('/request')).toHaveLength(1)
    expect(a.calls.at(-1)?.body.model).toBe('own')
    expect(c.calls.at(-1)?.body).toMatchObject({
      model: 'm-1',
      messages: [{ content: [{ text: 'Hello ##' }] }],
    })
  })
})

describe('moderation by vendorA', () => {
  it('[PromptguardRequest.vendorAModeration] [VendorAModeration.policies] asks the vendor with a credential and trust of its own', async () => {
    const fine = await openai('moderated').chat.completions.create(ask)
    expect(fine.choices[0]?.message.content).toBe('Hello from A')
    const [call] = moderation.calls
    expect(call?.body).toEqual({ input: ['Be kind.', 'Hello 42'], model: 'omni-moderation-latest' })
    expect(call?.headers.authorization).toBe('Bearer moderation-token')
    const refused = await post('moderated', tell('violence!'))
    expect([refused.status, await refused.text()]).toEqual([403, 'be kind'])
    expect(upstream()).toBe(1)
  })

  it('[VendorAModeration.model] asks the model that is named', async () => {
    await anthropic('moderated-by').messages.create(askC)
    expect(moderation.calls[0]?.body.model).toBe('text-moderation-stable')
    expect(moderation.calls[0]?.headers.authorization).toBe('Bearer inline-token')
  })

  it('that fails keeps the request from going on', async () => {
    moderation.next.push((_, response) => json(response, 401, { error: {} }))
    expect((await post('moderated', ask)).status).toBe(503)
    moderation.next.push((_, response) => json(response, 200, { results: [] }))
    expect((await post('moderated', ask)).status).toBe(503)
    expect((await post('moderated-untrusted', ask)).status).toBe(503)
    expect(upstream()).toBe(0)
  })
})

describe('patterns', () => {
  it.each([
    ['[BuiltIn.Ssn] social security numbers', 'Ssn', 'it is 536-90-4399.', 'it is <SSN>.'],
    [
      '[BuiltIn.CreditCard] credit cards',
      'CreditCard',
      'pay by 4111 1111 1111 1111',
      'pay by <CREDIT_CARD>',
    ],
    [
      '[BuiltIn.PhoneNumber] phone numbers',
      'PhoneNumber',
      'call +1 415-555-0132 now',
      'call <PHONE_NUMBER> now',
    ],
    [
      '[BuiltIn.Email] mail addresses',
      'Email',
      'write to jane@example.com',
      'write to <EMAIL_ADDRESS>',
    ],
    [
      '[BuiltIn.CaSin] Canadian social insurance numbers',
      'CaSin',
      'it is 130 692 544.',
      'it is <CA_SIN>.',
    ],
  ])('find %s in requests and in streamed answers', async (_id, builtin, text, masked) => {
    a.answer = completes(...text)
    const streamed = await openai(builtin.toLowerCase())
      .chat.completions.stream(tell(text))
      .finalContent()
    expect(streamed).toBe(masked)
    expect(a.calls.at(-1)?.body.messages).toEqual(tell(masked).messages)
  })

  it('look wherever models find a text, as webhooks do', async () => {
    const mail = 'jane@example.com'
    const text = { type: 'text', text: mail }
    const code = { type: 'code_execution_result', stdout: mail, stderr: mail }
    const content = [
      {
        type: 'document',
        title: mail,
        context: mail,
        source: { type: 'content', content: [text] },
      },
      { type: 'document', source: { type: 'content', content: mail } },
      { type: 'code_execution_tool_result', tool_use_id: 't-1', content: code },
      { type: null, text: mail },
      { type: 'image', source: { type: 'url', url: 'http://pictures.test' } },
      { type: 'text', text: 'I am jane@exam' },
      { type: 'text', text: 'ple.com' },
    ]
    const answer = await post(
      'mixed',
      { ...askC, messages: [{ role: 'user', content }] },
      {},
      'messages',
    )
    expect(answer.status).toBe(200)
    expect(JSON.stringify(c.calls.at(-1)?.body)).not.toMatch(/jane|ple\.com/)
    const [seen] = asked('/request')
    const masked = Array.from({ length: 7 }, () => '<EMAIL_ADDRESS>').join(' ')
    const all = { role: 'user', content: `${masked} I am <EMAIL_ADDRESS>` }
    expect(seen && shown(seen)).toEqual([all])
  })

  it.each<[string, string, object]>([
    ['other letters below', 'messages', { system: [{ type: 'text', Text: 'x' }] }],
    [
      'other letters in a source',
      'messages',
      { system: [{ source: { type: 'text', Data: 'x' } }] },
    ],
    ['other letters of one part', 'chat/completions', { messages: [{ content: { Text: 'x' } }] }],
    ['lists in lists', 'chat/completions', { messages: [{ content: [['x']] }] }],
    [
      'a text that is none',
      'chat/completions',
      { messages: [{ content: [{ text: { value: 'x' } }] }] },
    ],
    ['what is too deep', 'chat/completions', { messages: [deep(200)] }],
  ])('refuse %s', async (_name, format, body) => {
    const answer = await post('email', { ...ask, ...body }, {}, format)
    expect(answer.status).toBe(400)
    expect(upstream()).toBe(0)
  })

  it('see nothing of requests that are not read, which status says', async () => {
    const { message } = await running.condition('GatewayBackend', 'unread', 'Accepted', 'True')
    expect(message).toContain('routes["/raw"]: guards do not see requests of type Passthrough')
  })

  it('without a largest length are named in status, and what they leave undecided for too long ends in an error', async () => {
    const { message } = await running.condition('GatewayBackend', 'unbounded', 'Accepted', 'True')
    expect(message).toMatch(/promptGuard\.response\[0\]\.regex\.matches\[0\]/)
    a.answer = completes('BEGIN ', 'secret', ' END', ' fine')
    expect(await openai('unbounded').chat.completions.stream(ask).finalContent()).toBe(
      '<masked> fine',
    )
    a.answer = completes('BEGIN ', ...Array.from({ length: 40 }, () => 'x'.repeat(60_000)))
    const stream = await openai('unbounded').chat.completions.create({ ...ask, stream: true })
    let seen = ''
    const reading = (async () => {
      for await (const part of stream) seen += part.choices[0]?.delta.content ?? ''
    })()
    await expect(reading).rejects.toThrow(/undecided/)
    expect(seen).toBe('')
  })
})
