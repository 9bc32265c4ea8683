import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { Collected, collectingServer } from '../support/collected-spans.ts'
import { useFixture, useGateway, useListening } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { json, openStream, sendEvent, type Vendor } from '../support/vendors/vendor.ts'
import {
  calls,
  chunk,
  completes,
  completion,
  failsA,
  startVendorA,
} from '../support/vendors/vendor-a.ts'
import { says, startVendorC } from '../support/vendors/vendor-c.ts'
import { waitFor } from '../support/wait-for.ts'

const collected = new Collected()
const collector = useListening(collectingServer(collected))

const routes = {
  '/v1/chat/completions': 'Completions',
  '/v1/messages': 'Messages',
  '/v1/messages/count_tokens': 'VendorCTokenCount',
  '/v1/responses': 'Responses',
  '/v1/embeddings': 'Embeddings',
  '/v1/models': 'Models',
}

const at = (vendor: Vendor) => ({ host: '127.0.0.1', port: vendor.port })

const reached = (name: string, ai: object, settings: object = {}) => [
  aiBackend(name, ai as Record<string, unknown>, { ai: { routes, ...settings } }),
  httpRoute(name, {
    rules: [
      {
        matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }],
        backendRefs: [toBackend(name)],
      },
    ],
  }),
]

/** All that expressions can ask of a model. */
const llmFields = [
  'streaming',
  'requestModel',
  'responseModel',
  'provider',
  'inputTokens',
  'providerInputTokens',
  'cachedInputTokens',
  'cacheCreationInputTokens',
  'outputTokens',
  'reasoningTokens',
  'totalTokens',
  'outputAudioTokens',
  'serviceTier',
  'timeToFirstToken',
  'timePerOutputToken',
  'countTokens',
  'prompt',
  'completion',
  'toolCalls',
  'params',
]

const guards = (word: string) => ({
  promptGuard: {
    request: [{ regex: { matches: [word], builtins: ['Email', 'PhoneNumber', 'CreditCard'] } }],
    response: [{ regex: { matches: [word], builtins: ['Email', 'PhoneNumber', 'CreditCard'] } }],
  },
})

/** A policy that is replaced again and again; its alias tells which one is in force. */
const swapped = (turn: number) =>
  manifest(
    ...reached(
      'swapped',
      { provider: { vendorA: {}, ...at(a) } },
      { modelAliases: { [`turn-${turn}`]: 'm-1' }, ...guards(`word-${turn}-[a-z]{1,40}`) },
    ),
  )

const port = await freePort()
const stats = `127.0.0.1:${await freePort()}`
const a = useFixture(startVendorA)
const c = useFixture(startVendorC)
const running = useGateway(() => ({
  args: ['--access-log', 'json', '--stats-address', stats],
  manifests: {
    'all.yaml': manifest(
      gateway(port),
      staticBackend('collector', collector.port),
      policy('watched', 'Gateway/edge', {
        frontend: {
          accessLog: {
            attributes: {
              add: [
                ...llmFields.map((name) => ({ name, expression: `llm.${name}` })),
                { name: 'asked', expression: 'llmRequest.model' },
              ],
            },
          },
          tracing: { backendRef: toBackend('collector'), randomSampling: 'true' },
        },
      }),
      ...reached('a', { provider: { vendorA: {}, ...at(a) } }, { modelAliases: { fast: 'm-1' } }),
      ...reached('c', { provider: { vendorC: {}, ...at(c) } }),
      ...reached('masked', { provider: { vendorA: {}, ...at(a) } }, guards('secret')),
      policy('told', 'HTTPRoute/masked', {
        traffic: {
          transformation: {
            response: { set: [{ name: 'x-tokens', value: 'string(llm.totalTokens)' }] },
          },
        },
      }),
      ...reached('pair', {
        groups: [
          { providers: [{ name: 'one', vendorA: {}, ...at(a) }] },
          { providers: [{ name: 'two', vendorC: {}, ...at(c) }] },
        ],
      }),
    ),
    'swapped.yaml': swapped(0),
  },
}))

beforeEach(() => {
  for (const one of [a, c]) {
    one.next.length = 0
    one.aborted = 0
  }
  a.answer = completes('Hello ', 'from A')
  c.answer = says('Hello ', 'from C')
})

const base = (name: string) => `http://127.0.0.1:${port}/${name}`
const openai = (name: string) =>
  new OpenAI({ baseURL: `${base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
const anthropic = (name: string) =>
  new Anthropic({ baseURL: base(name), apiKey: 'client-key', maxRetries: 0 })
const ask = { model: 'm-1', messages: [{ role: 'user' as const, content: 'Hello' }] }
const askC = { ...ask, max_tokens: 100 }
const metrics = async () => (await fetch(`http://${stats}/metrics`)).text()

async function collect<Item>(stream: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of stream) items.push(item)
  return items
}

/** The line of the access log that is written for a request. */
async function lineOf(send: () => Promise<unknown>): Promise<Record<string, unknown>> {
  const from = running.stdout.length
  await send()
  const text = await waitFor('the line', () => {
    const lines = running.stdout.slice(from).split('\n').slice(0, -1)
    return lines.find((line) => line.includes('"scope":"request"'))
  })
  return JSON.parse(text) as Record<string, unknown>
}

/** The number of the series of a metric that has these labels. */
async function figure(name: string, ...labels: readonly string[]): Promise<number | undefined> {
  const line = (await metrics())
    .split('\n')
    .find((one) => one.startsWith(`${name}{`) && labels.every((label) => one.includes(label)))
  return line === undefined ? undefined : Number(line.split(' ').at(-1))
}

describe('the access log', () => {
  it('tells what was asked, of whom, and what it took', async () => {
    const line = await lineOf(() =>
      openai('a').chat.completions.create({
        ...ask,
        model: 'fast',
        temperature: 0.5,
        max_tokens: 9,
      }),
    )
    expect(line).toMatchObject({
      protocol: 'llm',
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'm-1',
      'gen_ai.response.model': 'm-1',
      'gen_ai.usage.input_tokens': 11,
      'gen_ai.usage.output_tokens': 7,
      'gen_ai.request.temperature': 0.5,
      'gen_ai.request.max_tokens': 9,
      asked: 'fast',
      streaming: false,
      requestModel: 'm-1',
      provider: 'openai',
      totalTokens: 18,
      serviceTier: 'default',
      prompt: [{ role: 'user', content: 'Hello' }],
      completion: ['Hello from A'],
      params: { temperature: 0.5, max_tokens: 9 },
    })
    expect(line).not.toHaveProperty('timeToFirstToken')
    expect(line).not.toHaveProperty('countTokens')
  })

  it('tells the same of streams, natively and translated, with what a cache gave and the time to the first token', async () => {
    const expected = {
      'gen_ai.provider.name': 'anthropic',
      'gen_ai.usage.input_tokens': 13,
      'gen_ai.usage.output_tokens': 5,
      'gen_ai.usage.cache_read.input_tokens': 4,
      'gen_ai.server.time_to_first_token': expect.any(Number),
      streaming: true,
      inputTokens: 13,
      providerInputTokens: 9,
      cachedInputTokens: 4,
      outputTokens: 5,
      totalTokens: 18,
      timeToFirstToken: expect.any(Number),
      timePerOutputToken: expect.any(Number),
      completion: ['Hello from C'],
    }
    expect(await lineOf(() => anthropic('c').messages.stream(askC).finalMessage())).toMatchObject(
      expected,
    )
    expect(
      await lineOf(() => openai('c').chat.completions.stream(ask).finalContent()),
    ).toMatchObject(expected)
  })

  it('tells of reasoning, embeddings and token counts', async () => {
    const responses = await lineOf(() => openai('a').responses.create({ model: 'm-1', input: 'x' }))
    expect(responses).toMatchObject({
      'gen_ai.usage.reasoning_tokens': 2,
      'gen_ai.usage.cache_read.input_tokens': 3,
      inputTokens: 11,
      reasoningTokens: 2,
      cachedInputTokens: 3,
      prompt: [{ role: 'user', content: 'x' }],
    })
    const embeddings = await lineOf(() =>
      openai('a').embeddings.create({
        model: 'e',
        input: 'x',
        dimensions: 2,
        encoding_format: 'float',
      }),
    )
    expect(embeddings).toMatchObject({
      'gen_ai.operation.name': 'embeddings',
      'gen_ai.usage.input_tokens': 4,
      'gen_ai.embeddings.dimension.count': 2,
      'gen_ai.request.encoding_formats': 'float',
    })
    for (const name of ['a', 'c']) {
      const counted = await lineOf(() =>
        anthropic(name).messages.countTokens({ ...ask, model: 'gpt-4o' }),
      )
      expect(counted).toMatchObject({ countTokens: name === 'c' ? 42 : 8 })
      expect(counted).not.toHaveProperty('inputTokens')
    }
  })

  it('tells of calls of tools, whole and streamed', async () => {
    a.answer = calls({ id: 't-1', name: 'weather', input: { city: 'Bern' } })
    const call = { id: 't-1', name: 'weather', arguments: '{"city":"Bern"}' }
    expect(await lineOf(() => openai('a').chat.completions.create(ask))).toMatchObject({
      toolCalls: [call],
    })
    const streamed = await lineOf(async () =>
      collect(await openai('a').chat.completions.create({ ...ask, stream: true })),
    )
    expect(streamed).toMatchObject({ toolCalls: [call] })
    const messages = await lineOf(() => anthropic('a').messages.stream(askC).finalMessage())
    expect(messages).toMatchObject({ toolCalls: [call] })
  })

  it('logs calls of custom tools with name and input, whole and streamed', async () => {
    const custom = { name: 'shell', input: 'ls -l' }
    const called = { index: 0, id: 't-2', type: 'custom', custom }
    const item = { ...custom, type: 'custom_tool_call', id: 'ctc-1', call_id: 't-2' }
    const logged = { toolCalls: [{ id: 't-2', name: 'shell', arguments: 'ls -l' }] }
    a.answer = (_, response) => {
      const whole = completion('m-1', '') as { choices: { message: object }[] }
      const message = { role: 'assistant', content: null, tool_calls: [called] }
      json(response, 200, { ...whole, choices: [{ ...whole.choices[0], message }] })
    }
    expect(await lineOf(() => openai('a').chat.completions.create(ask))).toMatchObject(logged)
    a.answer = (_, response) => {
      openStream(response)
      const first = { ...called, custom: { name: 'shell', input: '' } }
      sendEvent(response, chunk('m-1', { tool_calls: [first] }))
      for (const input of ['ls', ' -l']) {
        sendEvent(response, chunk('m-1', { tool_calls: [{ index: 0, custom: { input } }] }))
      }
      sendEvent(response, chunk('m-1', {}, 'tool_calls'))
      sendEvent(response, '[DONE]')
      response.end()
    }
    const streamed = await lineOf(async () =>
      collect(await openai('a').chat.completions.create({ ...ask, stream: true })),
    )
    expect(streamed).toMatchObject(logged)
    a.answer = (_, response) =>
      json(response, 200, { id: 'resp-1', object: 'response', model: 'm-1', output: [item] })
    const response = await lineOf(() =>
      openai('a').responses.create({ model: 'm-1', input: 'Hello' }),
    )
    expect(response).toMatchObject(logged)
  })

  it('tells masked texts only', async () => {
    const text = 'secret jane@example.com'
    a.answer = completes(...text)
    const line = await lineOf(() =>
      openai('masked')
        .chat.completions.stream({ ...ask, messages: [{ role: 'user', content: text }] })
        .finalContent(),
    )
    expect(line).toMatchObject({
      prompt: [{ role: 'user', content: '<masked> <EMAIL_ADDRESS>' }],
      completion: ['<masked> <EMAIL_ADDRESS>'],
    })
  })
})

it('lets policies of answers know what a whole answer has used', async () => {
  const answer = await fetch(`${base('masked')}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify(ask),
  })
  expect(answer.headers.get('x-tokens')).toBe('18')
})

describe('spans', () => {
  it('are named and described by the conventions for generative AI', async () => {
    await openai('a').chat.completions.create({ ...ask, model: 'spanned', seed: 7 })
    const isIt = (kind: number) => () =>
      collected.spans.find(
        ({ span, attributes }) =>
          span.kind === kind && attributes['gen_ai.request.model'] === 'spanned',
      )
    const client = await waitFor('the span of the call', isIt(3))
    expect(client.span.name).toBe('chat spanned')
    expect(client.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'server.address': '127.0.0.1',
    })
    const server = await waitFor('the span of the request', isIt(2))
    expect(server.attributes).toMatchObject({
      protocol: 'llm',
      'gen_ai.response.model': 'spanned',
      'gen_ai.usage.input_tokens': 11n,
      'gen_ai.usage.output_tokens': 7n,
      'gen_ai.request.seed': 7n,
    })
  })
})

describe('metrics', () => {
  const named = (model: string) => [
    'gen_ai_operation_name="chat"',
    'gen_ai_provider_name="openai"',
    `gen_ai_request_model="${model}"`,
    `gen_ai_response_model="${model}"`,
    'gateway="default/edge"',
    'route="default/a"',
  ]

  it('count tokens and time operations', async () => {
    await openai('a').chat.completions.create({ ...ask, model: 'counted' })
    await collect(
      await openai('a').chat.completions.create({ ...ask, model: 'counted', stream: true }),
    )
    const labels = named('counted')
    const usage = 'sluice_gen_ai_client_token_usage'
    await waitFor('both requests', async () => (await figure(`${usage}_count`, ...labels)) === 2)
    expect(await figure(`${usage}_sum`, 'gen_ai_token_type="input"', ...labels)).toBe(22)
    expect(await figure(`${usage}_sum`, 'gen_ai_token_type="output"', ...labels)).toBe(14)
    for (const name of ['gen_ai_client_operation_duration', 'gen_ai_server_request_duration']) {
      expect(await figure(`sluice_${name}_count`, 'error_type=""', ...labels)).toBe(2)
    }
    for (const name of ['time_to_first_token', 'time_per_output_token']) {
      expect(await figure(`sluice_gen_ai_server_${name}_count`, ...labels)).toBe(1)
    }
  })

  it('give no labels to what clients only ask for', async () => {
    for (const count of [1, 2, 3]) {
      a.next.push(failsA(404, 'no such model'))
      const asked = openai('a').chat.completions.create({ ...ask, model: `invented-${count}` })
      await expect(asked).rejects.toThrow('no such model')
    }
    const name = 'sluice_gen_ai_server_request_duration_count'
    const labels = ['error_type="404"', 'gen_ai_request_model="_OTHER"']
    await waitFor('the failures', async () => (await figure(name, ...labels)) === 3)
    expect(await metrics()).not.toContain('invented')
  })

  it('count decisions of guards', async () => {
    const name = 'sluice_guardrail_checks_total'
    const request = ['phase="Request"', 'guard="regex"']
    const before = (await figure(name, ...request, 'action="Mask"')) ?? 0
    await openai('masked').chat.completions.create({
      ...ask,
      messages: [{ role: 'user', content: 'secret' }],
    })
    await waitFor(
      'the mask',
      async () => (await figure(name, ...request, 'action="Mask"')) === before + 1,
    )
    expect(
      await figure(name, 'phase="Response"', 'guard="regex"', 'action="Allow"'),
    ).toBeGreaterThan(0)
  })

  it('tell why a provider is left out, and that it is', async () => {
    a.next.push(failsA(429, 'slow down', { 'retry-after': '3600' }))
    await openai('pair').chat.completions.create(ask)
    const labels = ['backend="default/pair"', 'provider="one"', 'reason="status 429"']
    await waitFor('the ejection', async () => {
      return (await figure('sluice_model_provider_ejections_total', ...labels)) === 1
    })
    expect(await figure('sluice_model_provider_ejected', ...labels)).toBe(1)
    const told = await sluice('explain', 'providers', 'default/pair', '--stats', stats)
    expect(told.code, told.stderr).toBe(0)
    expect(told.stdout).toMatch(/default\/pair +one +left out by 1 worker +status 429/)
    const json = await sluice('explain', 'providers', '--stats', stats, '-o', 'json')
    expect(JSON.parse(json.stdout)).toEqual({
      providers: [
        {
          proxy: stats,
          backend: 'default/pair',
          provider: 'one',
          reason: 'status 429',
          workers: 1,
          times: 1,
        },
      ],
      problems: [],
    })
  })
})

/** By which memory of WebAssembly grows: as much as pieces that lie otherwise may take. */
const page = 65_536

describe('memory of the core', () => {
  const memory = async () =>
    Number(/^sluice_core_pattern_memory_bytes (\d+)/m.exec(await metrics())?.[1])

  async function swap(from: number, to: number): Promise<void> {
    for (let turn = from; turn < to; turn++) {
      running.write('swapped.yaml', swapped(turn))
      await waitFor(`turn ${turn}`, async () => {
        const { data } = await openai('swapped').models.list()
        return data.some(({ id }) => id === `turn-${turn}`)
      })
      await openai('swapped').chat.completions.create(ask)
    }
  }

  it('does not grow when policies with masks are replaced', async () => {
    await swap(1, 6)
    const before = await memory()
    expect(before).toBeGreaterThan(0)
    await swap(6, 26)
    expect(await memory()).toBeLessThanOrEqual(before + page)
  })

  it('does not grow when clients leave streams that are masked', async () => {
    const leave = async (times: number) => {
      const left = Array.from({ length: times }, async () => {
        const stream = await openai('masked').chat.completions.create({ ...ask, stream: true })
        for await (const _ of stream) break
        stream.controller.abort()
      })
      await Promise.all(left)
      await waitFor('the vendor to be left', () => a.aborted === times)
      a.aborted = 0
    }
    a.answer = (_, response) => {
      openStream(response)
      sendEvent(response, chunk('m', { content: 'call +1 415 555' }))
      sendEvent(response, chunk('m', { content: ' and so on, for a long time' }))
    }
    await leave(40)
    const before = await memory()
    for (const _ of [1, 2, 3]) await leave(40)
    expect(await memory()).toBeLessThanOrEqual(before + page)
  })
})
