import { useFixture } from '../support/fixture.ts'
/** Which format a path has; sessions, native SDKs, and what is put into requests for a cache. */

import { connect } from 'node:net'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime'
import { GoogleGenAI } from '@google/genai'
import { generateText, streamText } from 'ai'
import OpenAI from 'openai'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import { beforeEach, describe, expect, it } from 'vitest'
import { policy } from '../support/manifests.ts'
import { reached, reachedBackend, routes, useFleet } from '../support/vendors/fleet.ts'
import { startRealtimeVendor } from '../support/vendors/realtime.ts'
import { completes } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'

const key = { auth: { key: 'gateway-key' } }
const signed = { auth: { aws: { secretRef: { name: 'aws' } } } }
const passing = { ai: { routes: { '*': 'Passthrough' } } }
const email = { builtins: ['Email'] }
const claude = 'anthropic.claude-sonnet-4-v1:0'

const sessions = useFixture(startRealtimeVendor)
const fleet = useFleet(({ at, region }) => {
  const a = { vendorA: {}, ...at('a') }
  const f = { vendorF: { region }, ...at('f') }
  const talk = { host: '127.0.0.1', port: sessions.port }
  const realtime = {
    ai: { routes: { '/realtime': 'Realtime' }, modelAliases: { voice: 'gpt-rt' } },
  }
  const cached = (promptCaching: object) => ({ ...signed, ai: { routes, promptCaching } })
  const group = [
    { name: 'one', vendorA: { model: 'gpt-pinned' }, ...at('a') },
    { name: 'two', vendorF: { model: claude }, ...at('f') },
    { name: 'three', vendorB: { endpoint: 'x', deploymentName: 'deployed' }, ...at('b') },
  ]
  const many = (from: number) =>
    Array.from({ length: 32 }, (_, n) => ({ name: `p-${from + n}`, ...a }))
  return [
    reached('typed', a, {
      ...key,
      ai: {
        routes: {
          '*': 'Passthrough',
          '/completions': 'Passthrough',
          '/chat/completions': 'Completions',
          '/v1/messages': 'Messages',
        },
      },
    }),
    reached('untyped', a, { ai: { defaults: [{ field: 'seed', value: 1 }] } }),
    reached('typed-models', a, { ai: { routes } }),
    reached('limited', a, { ai: { overrides: [{ field: 'max_tokens', value: 7 }] } }),
    reached('partly', a, { ai: { routes: { '/v1/messages': 'Messages' } } }),
    reachedBackend(
      'listed',
      { groups: [{ providers: group }] },
      { ai: { routes, modelAliases: { fast: 'gpt-4o-mini', 'wild-*': 'x' } } },
    ),
    reached('native-d', { vendorD: {}, ...at('d') }, { ...passing, auth: { key: 'AIzaKey' } }),
    reached(
      'native-e',
      { vendorE: { projectId: 'my-project', region: 'us-central1' }, ...at('e') },
      { ...passing, ...key },
    ),
    reached('native-f', f, { ...passing, ...signed }),
    reached('a', a),
    reached('f', f, { ai: { routes }, ...signed }),
    reached('e', { vendorE: { projectId: 'my-project', region: 'us-central1' }, ...at('e') }),
    reached('talk', { vendorA: {}, ...talk }, { ...realtime, ...key }),
    reached('talk-limited', { vendorA: {}, ...talk }, { ...realtime, ...key }),
    [
      policy('limited', 'HTTPRoute/talk-limited', {
        traffic: { rateLimit: { local: [{ tokens: 20, unit: 'Hours' }] } },
      }),
    ],
    reached(
      'talk-b',
      { vendorB: { endpoint: 'x', deploymentName: 'rt' }, ...talk },
      {
        ...realtime,
        ...key,
      },
    ),
    reached('talk-c', { vendorC: {}, ...talk }, { ...realtime, ...key }),
    ...(['request', 'response'] as const).map((list) =>
      reached(
        `talk-guarded-${list}`,
        { vendorA: {}, ...talk },
        { ...key, ai: { ...realtime.ai, promptGuard: { [list]: [{ regex: email }] } } },
      ),
    ),
    reached(
      'talk-audited',
      { vendorA: {}, ...talk },
      {
        ...key,
        ai: {
          ...realtime.ai,
          promptGuard: { request: [{ regex: { ...email, action: 'Audit' } }] },
        },
      },
    ),
    reached('cached', f, cached({})),
    reached('cached-few', f, cached({ minTokens: 0, cacheTools: true })),
    reached('cached-none', f, cached({ minTokens: 0, cacheSystem: false, cacheMessages: false })),
    reachedBackend('named', {
      groups: [
        { providers: [{ name: 'one', ...a, path: '/v1/chat/completions' }] },
        { providers: [{ name: 'two', vendorF: { region }, ...at('f') }] },
      ],
    }),
    reachedBackend('most', {
      groups: Array.from({ length: 2 }, (_, n) => ({ providers: many(32 * n) })),
    }),
  ]
})
beforeEach(() => {
  fleet.forget()
  sessions.sessions.length = 0
  sessions.events.length = 0
  sessions.closed.length = 0
})

const openai = (name: string) =>
  new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
const messages = [{ role: 'user' as const, content: 'Hello' }]
const post = (name: string, path: string, body: object) =>
  fetch(`${fleet.base(name)}${path}`, { method: 'POST', body: JSON.stringify(body) })

describe('the type of a model route', () => {
  it('[BackendAI.routes] is that of the longest matching suffix, else of *, else Completions', async () => {
    const body = { model: 'm', max_tokens: 5, messages }
    await post('typed', '/v1/chat/completions', body)
    expect(fleet.lastCall('a')?.headers['content-type']).toBe('application/json')
    await post('typed', '/v1/messages', body)
    expect(fleet.lastCall('a')?.body).toMatchObject({ max_tokens: 5 })
    // Neither is looked into: what comes back is what the vendor says of it.
    await post('typed', '/v1/completions', body)
    expect(fleet.lastCall('a')).toMatchObject({ path: '/v1/completions' })
    await post('typed', '/v1/messages/count_tokens', body)
    expect(fleet.lastCall('a')).toMatchObject({ path: '/v1/messages/count_tokens', body })
    await post('untyped', '/any/path', body)
    expect(fleet.lastCall('a')).toMatchObject({ path: '/v1/chat/completions', body: { seed: 1 } })
    await post('partly', '/v1/other', body)
    expect(fleet.lastCall('a')?.path).toBe('/v1/chat/completions')
  })

  it('[RouteType=Models] lists the models of all providers', async () => {
    const { data } = await openai('listed').models.list()
    expect(data.map(({ id }) => id)).toEqual(['fast', 'gpt-pinned', claude, 'deployed'])
    expect(data.map(({ object }) => object)).toEqual(Array(4).fill('model'))
  })

  it('[RouteType=Models] asks the vendor for its models if any name is accepted', async () => {
    await fetch(`${fleet.base('typed-models')}/openai/v1/models?limit=2`)
    expect(fleet.lastCall('a')?.path).toBe('/v1/models?limit=2')
  })

  it('[BackendAI.overrides] keeps the field for the token limit if the model supports it', async () => {
    await post('limited', '/v1/chat/completions', { model: 'gpt-4o', max_tokens: 5, messages })
    const older = fleet.lastCall('a')?.body
    expect(older).toMatchObject({ max_tokens: 7 })
    expect(older).not.toHaveProperty('max_completion_tokens')
    await post('limited', '/v1/chat/completions', { model: 'gpt-5', max_tokens: 5, messages })
    expect(fleet.lastCall('a')?.body).toMatchObject({ max_completion_tokens: 7 })
  })

  it('[RouteType=Passthrough] lets SDKs of vendors speak their own format, with credentials of the gateway', async () => {
    const gemini = new GoogleGenAI({
      apiKey: 'client-key',
      httpOptions: { baseUrl: fleet.base('native-d') },
    })
    const request = { model: 'gemini-2.5-flash', contents: 'Hello' }
    const made = await gemini.models.generateContent(request)
    expect(made.text).toBe('Hello from D')
    expect(fleet.lastCall('d')?.headers['x-goog-api-key']).toBe('AIzaKey')
    const pieces = []
    for await (const piece of await gemini.models.generateContentStream(request)) {
      pieces.push(piece.text)
    }
    expect(pieces).toEqual(['Hello ', 'from D'])
    const bedrock = new BedrockRuntimeClient({
      endpoint: fleet.base('native-f'),
      region: 'us-west-2',
      credentials: { accessKeyId: 'client', secretAccessKey: 'client' },
      maxAttempts: 1,
    })
    const content = [{ text: 'Hello' }]
    const converse = { modelId: claude, messages: [{ role: 'user' as const, content }] }
    const answer = await bedrock.send(new ConverseCommand(converse))
    expect(answer.output?.message?.content).toEqual([{ text: 'Hello from F' }])
    const { stream = [] } = await bedrock.send(new ConverseStreamCommand(converse))
    const texts = []
    for await (const { contentBlockDelta } of stream) texts.push(contentBlockDelta?.delta?.text)
    expect(texts.filter((text) => text !== undefined)).toEqual(['Hello ', 'from F'])
    bedrock.destroy()
  })
})

describe('the AI SDK', () => {
  const models = () => {
    const apiKey = 'client-key'
    const f = createOpenAI({ apiKey, baseURL: `${fleet.base('f')}/v1` })
    const e = createAnthropic({ apiKey, baseURL: `${fleet.base('e')}/v1` })
    return {
      chat: f.chat(claude),
      responses: f.responses(claude),
      messages: e('claude-sonnet-4-20250514'),
      other: e('google/gemini-2.5-pro'),
    }
  }

  it.each([
    ['chat', 'Hello from F'],
    ['responses', 'Hello from F'],
    ['messages', 'Hello from E'],
    ['other', 'Hello from E'],
  ] as const)('speaks %s, whole and in a stream', async (name, expected) => {
    const model = models()[name]
    const { text, usage } = await generateText({ model, prompt: 'Hello', maxRetries: 0 })
    expect(text).toBe(expected)
    expect(usage.outputTokens).toBeGreaterThan(0)
    const stream = streamText({ model, prompt: 'Hello', maxRetries: 0 })
    expect(await stream.text).toBe(expected)
    expect((await stream.usage).outputTokens).toBe(usage.outputTokens)
  })
})

/** A session that asks for answers and gives their texts; resolves once it is closed. */
async function talk(name: string, model: string, answers: number): Promise<string> {
  const client = new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'client-key' })
  // The SDK insists on TLS, which this gateway does not speak.
  const createConnection = () => connect(Number(new URL(client.baseURL).port), '127.0.0.1')
  const session = new OpenAIRealtimeWS(
    { model, options: { perMessageDeflate: true, createConnection } },
    { apiKey: client.apiKey, baseURL: client.baseURL },
  )
  let text = ''
  return new Promise((resolve, reject) => {
    session.socket.on('open', () => {
      session.send({ type: 'session.update', session: { type: 'realtime' } })
      session.send({ type: 'response.create' })
    })
    let left = answers
    session.on('response.output_text.delta', ({ delta }) => {
      text += delta
    })
    session.on('response.done', () => {
      left--
      if (left > 0) session.send({ type: 'response.create' })
      else session.close()
    })
    session.on('error', reject)
    session.socket.on('close', () => resolve(text))
  })
}

describe('[RouteType=Realtime] sessions', () => {
  it('pass both ways over a WebSocket, and their tokens are counted', async () => {
    expect(await talk('talk', 'voice', 2)).toBe('Hello thereHello there')
    expect(sessions.events).toEqual(['session.update', 'response.create', 'response.create'])
    expect(sessions.sessions).toMatchObject([
      { path: '/v1/realtime?model=gpt-rt', headers: { authorization: 'Bearer gateway-key' } },
    ])
    await waitFor('the end at the vendor', () => sessions.closed.length === 1)
    await waitFor('the log line', () => /talk.*101/.test(fleet.running.stdout))
  })

  it('are charged to token limits while they run', async () => {
    // 18 tokens each.
    await talk('talk-limited', 'gpt-rt', 2)
    await expect(talk('talk-limited', 'gpt-rt', 1)).rejects.toThrow(/429/)
  })

  it('reach each vendor that supports them at its own path, and are refused for others', async () => {
    await talk('talk-b', 'gpt-rt', 1)
    expect(sessions.sessions[0]?.path).toBe('/openai/v1/realtime?model=rt')
    await expect(talk('talk-c', 'gpt-rt', 1)).rejects.toThrow(/400/)
    const plain = await fetch(`${fleet.base('talk')}/v1/realtime?model=x`)
    expect(plain.status).toBe(400)
  })

  it.each(['request', 'response'])('are refused if a guard of the %s acts', async (list) => {
    await expect(talk(`talk-guarded-${list}`, 'gpt-rt', 1)).rejects.toThrow(/403/)
    expect(sessions.sessions).toEqual([])
  })

  it('pass if guards only report', async () => {
    expect(await talk('talk-audited', 'gpt-rt', 1)).toBe('Hello there')
  })
})

const words = (count: number) => Array.from({ length: count }, (_, n) => `word-${n}`).join(' ')
const tools = [
  { type: 'function' as const, function: { name: 'find', parameters: { type: 'object' } } },
]
const point = { cachePoint: { type: 'default' } }

interface Sent {
  readonly system?: object[]
  readonly messages: { readonly content: object[] }[]
  readonly toolConfig?: { readonly tools: object[] }
}

/** What vendorF got last. */
function sent(): Sent {
  return (fleet.lastCall('f')?.body ?? { messages: [] }) as unknown as Sent
}

/** Where cache points stand in what vendorF got. */
function points(): { system: number; messages: number[]; tools: number } {
  const { system = [], messages: all, toolConfig } = sent()
  const count = (list: readonly object[]) => list.filter((one) => 'cachePoint' in one).length
  return {
    system: count(system),
    messages: all.flatMap(({ content }, at) => (count(content) > 0 ? [at] : [])),
    tools: count(toolConfig?.tools ?? []),
  }
}

describe('prompt caching', () => {
  const ask = async (name: string, system: string, model = claude, user = 'Hello') => {
    await openai(name).chat.completions.create({
      model,
      messages: [
        { role: 'system', content: system },
        { role: 'user', content: user },
        { role: 'assistant', content: 'Well?' },
        { role: 'user', content: user },
      ],
      tools,
    })
    return points()
  }
  const nowhere = { system: 0, messages: [], tools: 0 }

  it('[BackendAI.promptCaching] [PromptCachingConfig.cacheSystem] [PromptCachingConfig.minTokens] [limit.prompt-caching] sets a cache point after system texts that are long enough', async () => {
    // 1.3 tokens a word: 788 words are 1,024 tokens, 787 are 1,023.
    expect(await ask('cached', words(788))).toEqual({ ...nowhere, system: 1 })
    const { system } = sent()
    expect(system).toEqual([{ text: words(788) }, point])
    expect(await ask('cached', words(787))).toEqual(nowhere)
  })

  it('[PromptCachingConfig.cacheMessages] sets cache points after the last two messages if they are long enough together', async () => {
    expect(await ask('cached', 'Be brief.', claude, words(400))).toEqual({
      ...nowhere,
      messages: [1, 2],
    })
    await openai('cached').chat.completions.create({
      model: claude,
      messages: [{ role: 'user', content: words(900) }],
    })
    expect(points()).toEqual({ ...nowhere, messages: [0] })
  })

  it('[PromptCachingConfig.cacheTools] sets a cache point after tools if configured', async () => {
    expect(await ask('cached-few', 'Be brief.')).toEqual({ system: 1, messages: [1, 2], tools: 1 })
    expect(await ask('cached-none', 'Be brief.')).toEqual(nowhere)
  })

  it('[PromptCachingConfig.scope] is used only for models that support it', async () => {
    expect(await ask('cached-few', 'Be brief.', 'amazon.nova-pro-v1:0')).toMatchObject({
      system: 1,
    })
    expect(await ask('cached-few', 'Be brief.', 'anthropic.claude-v2:1')).toEqual(nowhere)
    expect(await ask('cached-few', 'Be brief.', 'meta.llama3-70b-v1:0')).toEqual(nowhere)
    // Without the policy nothing is added.
    expect(await ask('f', words(2_000))).toEqual(nowhere)
  })
})

describe('groups of model providers', () => {
  it('[NamedLLMProvider.path] send requests to the path that the provider names', async () => {
    await openai('named').chat.completions.create({ model: 'm', messages })
    expect(fleet.lastCall('a')?.path).toBe('/v1/chat/completions')
    await post('named', '/v1/embeddings?x=1', { model: 'm', input: 'x' })
    expect(fleet.lastCall('a')?.path).toBe('/v1/chat/completions')
  })

  it('[limit.provider-groups-and-providers] work with the maximum number of providers', async () => {
    fleet.vendors.a.answer = completes('Hello from many')
    const answer = await openai('most').chat.completions.create({ model: 'm', messages })
    expect(answer.choices[0]?.message.content).toBe('Hello from many')
  })
})
