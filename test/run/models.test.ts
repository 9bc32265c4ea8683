import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, httpRoute, policy, toBackend } from '../support/manifests.ts'
import type { Vendor } from '../support/vendors/vendor.ts'
import { openStream, sendEvent } from '../support/vendors/vendor.ts'
import { chunk, completes, failsA, startVendorA, usageA } from '../support/vendors/vendor-a.ts'
import { failsC, sayPiece, says, startMessage, startVendorC } from '../support/vendors/vendor-c.ts'
import { waitFor } from '../support/wait-for.ts'

const routes = {
  '/v1/chat/completions': 'Completions',
  '/v1/messages': 'Messages',
  '/v1/messages/count_tokens': 'VendorCTokenCount',
  '/v1/responses': 'Responses',
  '/v1/embeddings': 'Embeddings',
  '/v1/models': 'Models',
  '/raw': 'Passthrough',
}

/** A backend and the route to it, below a path of its name. */
const reached = (name: string, ai: object, settings: object = {}) => [
  aiBackend(name, ai as Record<string, unknown>, {
    ai: { routes, ...settings },
    auth: { key: 'gateway-key' },
  }),
  httpRoute(name, {
    rules: [
      {
        matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }],
        backendRefs: [toBackend(name)],
      },
    ],
  }),
]

const at = (vendor: Vendor) => ({ host: '127.0.0.1', port: vendor.port })
const base = (name: string) => `http://127.0.0.1:${port}/${name}`
const openai = (name: string) =>
  new OpenAI({ baseURL: `${base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
const anthropic = (name: string) =>
  new Anthropic({ baseURL: base(name), apiKey: 'client-key', maxRetries: 0 })

const hello = [{ role: 'user' as const, content: 'Hello' }]
const ask = { model: 'm-1', messages: hello }
const askC = { model: 'm-1', max_tokens: 100, messages: hello }

const regexGuards = (action: string, response?: object) => ({
  promptGuard: {
    request: [
      {
        regex: { matches: ['secret-\\d+'], builtins: ['Email', 'Ssn', 'CreditCard'], action },
        ...(response && { response }),
      },
    ],
    response: [{ regex: { matches: ['token-\\d{4}'], builtins: ['Email'] } }],
  },
})

const port = await freePort()
const a = useFixture(startVendorA)
const c = useFixture(startVendorC)
useGateway(() => ({
  manifests: [
    gateway(port),
    ...reached('a', { provider: { vendorA: {}, ...at(a) } }),
    ...reached('c', { provider: { vendorC: {}, ...at(c) } }),
    ...reached('limited', { provider: { vendorA: {}, ...at(a) } }),
    policy('limited', 'HTTPRoute/limited', {
      traffic: { rateLimit: { local: [{ tokens: 20, unit: 'Hours' }] } },
    }),
    ...[28, 29].flatMap((tokens) => [
      ...reached(`left-at-${tokens}`, { provider: { vendorC: {}, ...at(c) } }),
      policy(`left-at-${tokens}`, `HTTPRoute/left-at-${tokens}`, {
        traffic: { rateLimit: { local: [{ tokens, unit: 'Hours' }] } },
      }),
    ]),
    ...reached('pinned', { provider: { vendorA: { model: 'pinned-model' }, ...at(a) } }),
    ...reached('fixed', { provider: { vendorA: {}, ...at(a), path: '/v1/chat/completions' } }),
    ...reached('masked-a', { provider: { vendorA: {}, ...at(a) } }, regexGuards('Mask')),
    ...reached('masked-c', { provider: { vendorC: {}, ...at(c) } }, regexGuards('Mask')),
    ...reached('refused', { provider: { vendorA: {}, ...at(a) } }, regexGuards('Reject')),
    ...reached(
      'refused-so',
      { provider: { vendorC: {}, ...at(c) } },
      regexGuards('Reject', { statusCode: 422, message: 'not with us' }),
    ),
    ...reached(
      'shaped',
      { provider: { vendorA: {}, ...at(a) } },
      {
        modelAliases: { fast: 'm-fast', 'claude-*': 'm-any' },
        defaults: [
          { field: 'temperature', value: 0.25 },
          { field: 'seed', value: 7 },
        ],
        overrides: [{ field: 'user', value: 'gateway' }],
        prompt: {
          prepend: [{ role: 'SYSTEM', content: 'Be brief.' }],
          append: [{ role: 'user', content: 'Answer now.' }],
        },
      },
    ),
  ],
}))

beforeEach(() => {
  for (const vendor of [a, c]) {
    vendor.calls.length = 0
    vendor.next.length = 0
    vendor.aborted = 0
  }
  a.answer = completes('Hello ', 'from A')
  c.answer = says('Hello ', 'from C')
})

const lastCall = (vendor: Vendor) => vendor.calls.at(-1)

async function collect<Item>(stream: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of stream) items.push(item)
  return items
}

describe('chat completions', () => {
  it('[BackendSpec.ai] [LLMProvider.vendorA] [AIBackend.provider] [LLMProvider.host] [LLMProvider.port] [RouteType=Completions] reach a vendor of the format with every field that it was not told about', async () => {
    const extra = { ...ask, x_future: { deep: [1, 2] } } as typeof ask
    const answer = await openai('a').chat.completions.create(extra)
    expect(answer.choices[0]?.message.content).toBe('Hello from A')
    expect(answer).toMatchObject({ usage: usageA, service_tier: 'default' })
    expect(lastCall(a)?.path).toBe('/v1/chat/completions')
    expect(lastCall(a)?.text).toBe(JSON.stringify(extra))
    expect(lastCall(a)?.headers.authorization).toBe('Bearer gateway-key')
    expect(lastCall(a)?.headers.host).toBe(`127.0.0.1:${a.port}`)
  })

  it('stream, and the usage that the client did not ask for is kept from it', async () => {
    const stream = await openai('a').chat.completions.create({ ...ask, stream: true })
    const chunks = await collect(stream)
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(
      'Hello from A',
    )
    expect(chunks.every(({ choices }) => choices.length === 1)).toBe(true)
    expect(chunks.some((one) => 'usage' in one)).toBe(false)
    expect(lastCall(a)?.body.stream_options).toEqual({ include_usage: true })
  })

  it('stream with the usage that the client asked for', async () => {
    const options = { stream: true, stream_options: { include_usage: true } } as const
    const chunks = await collect(await openai('a').chat.completions.create({ ...ask, ...options }))
    expect(chunks.at(-1)?.usage).toEqual(usageA)
  })

  it('reach a vendor of another format, which gets its own fields, headers and credential', async () => {
    const answer = await openai('c').chat.completions.create({
      ...ask,
      messages: [{ role: 'system', content: 'Be kind.' }, ...hello],
      max_tokens: 64,
    })
    expect(answer.object).toBe('chat.completion')
    expect(answer.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { role: 'assistant', content: 'Hello from C' },
    })
    expect(answer.usage).toMatchObject({ completion_tokens: 5 })
    const call = lastCall(c)
    expect(call?.path).toBe('/v1/messages')
    expect(call?.body).toMatchObject({ model: 'm-1', max_tokens: 64, system: 'Be kind.' })
    expect(call?.headers['x-api-key']).toBe('gateway-key')
    expect(call?.headers.authorization).toBe(undefined)
  })

  it('stream from a vendor of another format', async () => {
    const runner = openai('c').chat.completions.stream({
      ...ask,
      stream_options: { include_usage: true },
    })
    const final = await runner.finalChatCompletion()
    expect(final.choices[0]?.message.content).toBe('Hello from C')
    expect(final.choices[0]?.finish_reason).toBe('stop')
    expect(final.usage?.completion_tokens).toBe(5)
  })

  it('[VendorAConfig.model] ask the model that the provider is pinned to', async () => {
    await openai('pinned').chat.completions.create(ask)
    expect(lastCall(a)?.body.model).toBe('pinned-model')
  })

  it('[LLMProvider.path] go to the path that replaces the vendor own, without the query of the client', async () => {
    const { status } = await fetch(`${base('fixed')}/v1/anything?x=1`, {
      method: 'POST',
      body: JSON.stringify(ask),
    })
    expect(status).toBe(200)
    expect(lastCall(a)?.path).toBe('/v1/chat/completions')
  })
})

describe('messages', () => {
  it('[RouteType=Messages] [LLMProvider.vendorC] reach a vendor of the format untouched', async () => {
    const extra = { ...askC, x_kept: 1 }
    a.answer = completes('x')
    const { content, usage } = await anthropic('c').messages.create(askC)
    expect(content).toEqual([{ type: 'text', text: 'Hello from C' }])
    expect(usage.output_tokens).toBe(5)
    expect(lastCall(c)?.text).toBe(JSON.stringify(askC))
    const refused = await fetch(`${base('c')}/v1/messages`, {
      method: 'POST',
      body: JSON.stringify(extra),
    })
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ error: { type: 'invalid_request_error' } })
  })

  it('stream from a vendor of the format', async () => {
    const message = await anthropic('c').messages.stream(askC).finalMessage()
    expect(message.content).toEqual([{ type: 'text', text: 'Hello from C' }])
    expect(message.stop_reason).toBe('end_turn')
  })

  it('reach a vendor of another format, whole and streamed', async () => {
    const whole = await anthropic('a').messages.create({ ...askC, system: 'Be kind.' })
    expect(whole.content).toEqual([{ type: 'text', text: 'Hello from A' }])
    expect(whole.usage).toMatchObject({ input_tokens: 11, output_tokens: 7 })
    expect(lastCall(a)?.path).toBe('/v1/chat/completions')
    expect(lastCall(a)?.body.messages).toEqual([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
    ])
    const streamed = await anthropic('a').messages.stream(askC).finalMessage()
    expect(streamed.content).toEqual([{ type: 'text', text: 'Hello from A' }])
    expect(streamed.usage).toMatchObject({ input_tokens: 11, output_tokens: 7 })
  })
})

describe('other formats', () => {
  it('[RouteType=Responses] reach a vendor of the format, and one of another', async () => {
    const native = await openai('a').responses.create({ model: 'm-1', input: 'Hello' })
    expect(native.output_text).toBe('Hello from A')
    const made = await openai('c').responses.create({ model: 'm-1', input: 'Hello' })
    expect(made.output_text).toBe('Hello from C')
    expect(made.status).toBe('completed')
    const stream = openai('c').responses.stream({ model: 'm-1', input: 'Hello' })
    const final = await stream.finalResponse()
    expect(final.output_text).toBe('Hello from C')
  })

  it('[RouteType=Embeddings] reach a vendor that has them, and are refused where it has none', async () => {
    const request = { model: 'e-1', input: ['one', 'two'], encoding_format: 'float' as const }
    const { data, usage } = await openai('a').embeddings.create(request)
    expect(data.map(({ embedding }) => embedding)).toEqual([
      [0.5, 0],
      [0.5, 1],
    ])
    expect(usage.prompt_tokens).toBe(4)
    const refused = openai('c').embeddings.create(request)
    await expect(refused).rejects.toMatchObject({ status: 400 })
    await expect(refused).rejects.toThrow(/unsupported conversion/)
  })

  it('[RouteType=VendorCTokenCount] are counted by the vendor, or here where it cannot', async () => {
    const request = { model: 'gpt-4o', messages: [{ role: 'user' as const, content: 'Hello' }] }
    expect(await anthropic('c').messages.countTokens(request)).toEqual({ input_tokens: 42 })
    expect(lastCall(c)?.path).toBe('/v1/messages/count_tokens')
    // 3 for the whole, 4 for the message, 1 for its text.
    expect(await anthropic('a').messages.countTokens(request)).toEqual({ input_tokens: 8 })
    expect(a.calls).toEqual([])
  })

  it('[RouteType=Models] list the names that the gateway takes', async () => {
    const { data: aliases } = await openai('shaped').models.list()
    expect(aliases.map(({ id }) => id)).toEqual(['fast'])
    const { data: pinned } = await openai('pinned').models.list()
    expect(pinned).toMatchObject([{ id: 'pinned-model', object: 'model', owned_by: 'openai' }])
  })

  it('[RouteType=Passthrough] pass as they are', async () => {
    a.answer = (call, response) => response.end(`${call.method} ${call.path} ${call.text}`)
    const body = 'no json at all'
    const answer = await fetch(`${base('a')}/raw?x=1`, { method: 'POST', body })
    // The simulator refuses what is not its interface; that answer, too, comes back as it is.
    expect(answer.status).toBe(400)
    expect(lastCall(a)).toMatchObject({ method: 'POST', path: '/a/raw?x=1', text: body })
    expect(lastCall(a)?.headers.authorization).toBe('Bearer gateway-key')
  })
})

describe('numbers that a double cannot hold', () => {
  const text = '{"model":"m-1","max_tokens":9,"messages":[{"role":"user","content":"Hello"}]'
  const limit = '"parameters":{"type":"object","properties":{"id":{"maximum":9223372036854775807}}}'
  const tool = `"tools":[{"type":"function","function":{"name":"find",${limit}}}]`
  const send = (name: string, more: string) =>
    fetch(`${base(name)}/v1/chat/completions`, { method: 'POST', body: `${text},${more}}` })

  it('reach the vendor as they were written, where the body is changed or translated too', async () => {
    await send('shaped', `"seed":12345678901234567890,"top_p":0.5,"x":[1e400,-0.25]`)
    expect(lastCall(a)?.text).toContain('"seed":12345678901234567890,"top_p":0.5,"x":[1e400,-0.25]')
    await send('c', tool)
    expect(lastCall(c)?.text).toContain('"maximum":9223372036854775807')
  })

  it('come back so in calls of tools', async () => {
    c.answer = (_, response) => {
      const input = '"id":"t","name":"find","input":{"id":1234567890123456789}'
      const head = '"id":"m","type":"message","role":"assistant","model":"m-1"'
      const usage = '"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}'
      response.setHeader('content-type', 'application/json')
      response.end(`{${head},"content":[{"type":"tool_use",${input}}],${usage}}`)
    }
    const answer = (await (await send('c', tool)).json()) as OpenAI.ChatCompletion
    const [call] = answer.choices[0]?.message.tool_calls ?? []
    expect(call).toMatchObject({ function: { arguments: '{"id":1234567890123456789}' } })
  })
})

describe('settings', () => {
  it('[BackendAI.defaults] [BackendAI.overrides] [FieldDefault.field] [FieldDefault.value] fill and overwrite fields', async () => {
    await openai('shaped').chat.completions.create({ ...ask, temperature: 1, user: 'me' })
    expect(lastCall(a)?.body).toMatchObject({ temperature: 1, seed: 7, user: 'gateway' })
  })

  it('[BackendAI.modelAliases] replace names of models', async () => {
    await openai('shaped').chat.completions.create({ ...ask, model: 'fast' })
    expect(lastCall(a)?.body.model).toBe('m-fast')
    await openai('shaped').chat.completions.create({ ...ask, model: 'claude-x' })
    expect(lastCall(a)?.body.model).toBe('m-any')
  })

  it('[BackendAI.prompt] [AIPromptEnrichment.prepend] [AIPromptEnrichment.append] [AIPromptEnrichment.static] [Message.role] [Message.content] put messages around those of the request', async () => {
    for (const _ of [1, 2]) {
      await openai('shaped').chat.completions.create(ask)
      expect(lastCall(a)?.body.messages).toEqual([
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hello' },
        { role: 'user', content: 'Answer now.' },
      ])
    }
  })
})

describe('errors', () => {
  it('of the vendor come in the format of the client, with their status', async () => {
    c.next.push(failsC(404, 'not_found_error', 'no such model'))
    const missing = openai('c').chat.completions.create(ask)
    await expect(missing).rejects.toMatchObject({ status: 404 })
    await expect(missing).rejects.toThrow(/no such model/)
    a.next.push(failsA(401, 'bad key'))
    const denied = anthropic('a').messages.create(askC)
    await expect(denied).rejects.toBeInstanceOf(Anthropic.AuthenticationError)
    await expect(denied).rejects.toThrow(/bad key/)
  })

  it('of the client are told in its format', async () => {
    const post = (name: string, path: string, body: string, headers = {}) =>
      fetch(`${base(name)}${path}`, { method: 'POST', body, headers })
    const noModel = await post('a', '/v1/chat/completions', '{"messages":[]}')
    expect(noModel.status).toBe(400)
    expect(await noModel.json()).toMatchObject({
      error: { message: expect.stringMatching(/model/) },
    })
    const noJson = await post('c', '/v1/messages', 'hello')
    expect(noJson.status).toBe(400)
    expect(await noJson.json()).toMatchObject({ type: 'error' })
    const long = await post('a', '/v1/chat/completions', 'x'.repeat(2_097_153))
    expect(long.status).toBe(413)
    const coded = await post('a', '/v1/chat/completions', '{}', { 'content-encoding': 'sausage' })
    expect(coded.status).toBe(415)
    expect(a.calls.length + c.calls.length).toBe(0)
  })

  it('are made of answers that nobody can read', async () => {
    c.next.push((_, response) => response.end('<html>'))
    await expect(openai('c').chat.completions.create(ask)).rejects.toMatchObject({ status: 502 })
    a.next.push((_, response) => response.end('{"object":"list"}'))
    await expect(anthropic('a').messages.create(askC)).rejects.toMatchObject({ status: 502 })
  })

  it('are told in a stream that the vendor cuts off', async () => {
    a.next.push((_, response) => {
      openStream(response)
      sendEvent(response, chunk('m', { content: 'Hel' }))
      response.write('data: {"half', () => response.destroy())
    })
    const native = await openai('a').chat.completions.create({ ...ask, stream: true })
    await expect(collect(native)).rejects.toThrow(/cut off/)
    c.next.push((_, response) => {
      startMessage('m', response)
      sayPiece('Hel', response)
      response.write('event: conte', () => response.destroy())
    })
    const translated = await openai('c').chat.completions.create({ ...ask, stream: true })
    await expect(collect(translated)).rejects.toThrow(/cut off/)
    a.next.push((_, response) => {
      openStream(response)
      sendEvent(response, chunk('m', { content: 'Hel' }))
      response.end()
    })
    const stream = anthropic('a').messages.stream(askC)
    await expect(stream.finalMessage()).rejects.toThrow(/cut off/)
  })

  it('do not happen to a vendor whose client goes away: its work is cancelled', async () => {
    c.next.push((_, response) => {
      startMessage('m', response)
      sayPiece('Hel', response)
    })
    const stream = await openai('c').chat.completions.create({ ...ask, stream: true })
    for await (const _ of stream) break
    stream.controller.abort()
    await waitFor('the vendor to be left', () => c.aborted === 1)
  })
})

describe('limits of tokens', () => {
  it('[LocalRateLimit.tokens] charge what was used, in streams too, and refuse only later requests', async () => {
    // 18 tokens each.
    await openai('limited').chat.completions.create(ask)
    await collect(await openai('limited').chat.completions.create({ ...ask, stream: true }))
    await waitFor('the limit', async () => {
      const answer = await fetch(`${base('limited')}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(ask),
      })
      return answer.status === 429
    })
  })
})

describe('limits of tokens where an answer is left before its end', () => {
  it('charge what was told, and an estimate of what came since', async () => {
    // 18 tokens are told with the beginning; 39 bytes more are 10.
    const leave = async (name: string) => {
      c.next.push((_, response) => {
        startMessage('m', response)
        sayPiece('x'.repeat(39), response)
      })
      const stream = await openai(name).chat.completions.create({ ...ask, stream: true })
      for await (const { choices } of stream) if (choices[0]?.delta.content) break
      stream.controller.abort()
      await waitFor('the vendor to be left', () => c.aborted > 0)
      c.aborted = 0
    }
    const status = async (name: string) => {
      const body = JSON.stringify(ask)
      return (await fetch(`${base(name)}/v1/chat/completions`, { method: 'POST', body })).status
    }
    await leave('left-at-28')
    await leave('left-at-29')
    c.answer = failsC(400, 'invalid_request_error', 'no')
    await waitFor('the charge', async () => (await status('left-at-28')) === 429)
    expect(await status('left-at-29')).toBe(400)
  })
})

describe('guards', () => {
  const tell = (content: string) => ({ ...ask, messages: [{ role: 'user' as const, content }] })
  const content = (vendor: Vendor) =>
    (lastCall(vendor)?.body.messages as { content: string }[] | undefined)?.[0]?.content

  it('[BackendAI.promptGuard] [AIPromptGuard.request] [PromptguardRequest.regex] [Regex.matches] [Regex.builtins] [Regex.action=Mask] mask requests', async () => {
    const text = 'I am jane@example.com, \u0073ecret-42, 4111 1111 1111 1111, 536-90-4399'
    await openai('masked-a').chat.completions.create(tell(text))
    expect(content(a)).toBe('I am <EMAIL_ADDRESS>, <masked>, <CREDIT_CARD>, <SSN>')
    await openai('masked-c').chat.completions.create(tell(text))
    expect(lastCall(c)?.text).not.toMatch(/jane|secret|4111/)
  })

  it('[Regex.action=Reject] [error.1] [CustomResponse.message] [CustomResponse.statusCode] refuse requests with the answer that is configured', async () => {
    const post = (name: string, text: string) =>
      fetch(`${base(name)}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(tell(text)),
      })
    const refused = await post('refused', 'secret-1')
    expect(refused.status).toBe(403)
    expect(await refused.text()).toBe('The request was rejected due to inappropriate content')
    const custom = await post('refused-so', 'secret-1')
    expect(custom.status).toBe(422)
    expect(await custom.text()).toBe('not with us')
    expect(a.calls.length + c.calls.length).toBe(0)
    expect((await post('refused', 'harmless')).status).toBe(200)
  })

  it('[AIPromptGuard.response] [PromptguardResponse.regex] [error.2] mask answers, whole and however a stream is cut', async () => {
    const secret = 'mail bob@example.com or token-1234.'
    const masked = 'mail <EMAIL_ADDRESS> or <masked>.'
    a.answer = completes(...secret)
    c.answer = says(...secret)
    const whole = await openai('masked-a').chat.completions.create(ask)
    expect(whole.choices[0]?.message.content).toBe(masked)
    const streamed = await openai('masked-a').chat.completions.stream(ask).finalContent()
    expect(streamed).toBe(masked)
    const messages = await anthropic('masked-a').messages.stream(askC).finalText()
    expect(messages).toBe(masked)
    const native = await anthropic('masked-c').messages.stream(askC).finalText()
    expect(native).toBe(masked)
    const responses = openai('masked-c').responses.stream({ model: 'm', input: 'Hello' })
    expect((await responses.finalResponse()).output_text).toBe(masked)
  })

  it('let a vendor see no other text than they have seen', async () => {
    const twice = '"messages":[{"role":"user","content":"jane@example.com"}],'
    const last = '"messages":[{"role":"user","content":"Hello"}]'
    const body = `{"model":"m-1",${twice}${last}}`
    await fetch(`${base('masked-a')}/v1/chat/completions`, { method: 'POST', body })
    expect(lastCall(a)?.text).toBe(`{"model":"m-1",${last}}`)
    const other = `{"model":"m-1",${last},${twice.replace('messages', 'Messages').slice(0, -1)}}`
    const init = { method: 'POST', body: other }
    const refused = await fetch(`${base('masked-a')}/v1/chat/completions`, init)
    expect(refused.status).toBe(400)
    expect(await refused.text()).toContain('must be messages')
    expect((await fetch(`${base('a')}/v1/chat/completions`, init)).status).toBe(200)
  })

  it('let nothing of a stream pass that nobody can read', async () => {
    a.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end('data: {"choices":[{"delta":{"content":"bob@example.com"}}]\n\ndata: [DONE]\n\n')
    }
    const streamed = { method: 'POST', body: JSON.stringify({ ...ask, stream: true }) }
    const answer = await fetch(`${base('masked-a')}/v1/chat/completions`, streamed)
    const text = await answer.text()
    expect(text).toContain('an event of the answer is not JSON')
    expect(text).not.toContain('bob@example.com')
  })
})
