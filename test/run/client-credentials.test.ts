/** Credentials of clients on their way to model providers: removed, unless `passthrough` keeps the vendor's own. */
import Anthropic from '@anthropic-ai/sdk'
import { BedrockRuntimeClient, ConverseCommand } from '@aws-sdk/client-bedrock-runtime'
import { GoogleGenAI } from '@google/genai'
import OpenAI, { AzureOpenAI } from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { useFixture, useUpstream } from '../support/fixture.ts'
import { send } from '../support/http-client.ts'
import { policy, secret, staticBackend, toBackend } from '../support/manifests.ts'
import { startRateLimitServer } from '../support/rate-limit-server.ts'
import { type Fleet, reached, reachedBackend, routes, useFleet } from '../support/vendors/fleet.ts'
import { startWebhook } from '../support/vendors/guard-services.ts'
import { startRealtimeVendor } from '../support/vendors/realtime.ts'
import { failsA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'

const passing = { ai: { routes: { '*': 'Passthrough' } } }
const passed = { auth: { passthrough: {} } }
const claude = 'anthropic.claude-sonnet-4-v1:0'
const messages = [{ role: 'user' as const, content: 'Hello' }]
const vendorsByLetter = { a: 'vendorA', b: 'vendorB', c: 'vendorC', d: 'vendorD', e: 'vendorE' }
const configs: Readonly<Record<string, object>> = {
  b: { endpoint: 'x' },
  e: { projectId: 'my-project', region: 'us-central1' },
}

/** A backend and its route, below a path of the name. */
type Manifests = readonly Readonly<Record<string, unknown>>[]

const route = (manifests: Manifests, more: object): Manifests =>
  manifests.map((one) => {
    if (one.kind !== 'HTTPRoute') return one
    const spec = one.spec as { rules: { filters: object[] }[] }
    const [rule] = spec.rules
    const filters = [...(rule?.filters ?? []), ...((more as { filters?: object[] }).filters ?? [])]
    return { ...one, spec: { ...spec, rules: [{ ...rule, ...more, filters }] } }
  })

const backendFilters = (manifests: Manifests, filters: object[]): Manifests =>
  manifests.map((one) => {
    if (one.kind !== 'HTTPRoute') return one
    const spec = one.spec as { rules: { backendRefs: object[] }[] }
    const rules = spec.rules.map((rule) => ({
      ...rule,
      backendRefs: rule.backendRefs.map((ref) => ({ ...ref, filters })),
    }))
    return { ...one, spec: { ...spec, rules } }
  })

const setHeader = (name: string, value: string) => ({
  type: 'RequestHeaderModifier',
  requestHeaderModifier: { set: [{ name, value }] },
})

const shadow = useUpstream('shadow')
const collector = useUpstream('collector')
const webhook = useFixture(startWebhook)
const limits = useFixture(startRateLimitServer)
const sessions = useFixture(startRealtimeVendor)
const fleet = useFleet(({ at, region }) => {
  const provider = (letter: keyof typeof vendorsByLetter) => ({
    [vendorsByLetter[letter]]: configs[letter] ?? {},
    ...at(letter),
  })
  const f = { vendorF: { region }, ...at('f') }
  const signed = { auth: { aws: { secretRef: { name: 'aws' } } } }
  const letters = ['a', 'b', 'c', 'd', 'e'] as const
  const realtime = { ai: { routes: { '/realtime': 'Realtime' } } }
  const talk = { host: '127.0.0.1', port: sessions.port }
  const guard = {
    webhook: {
      backendRef: toBackend('webhook'),
      forwardHeaderMatches: [
        { name: 'x-api-key', type: 'RegularExpression', value: 'canary-.*' },
        { name: 'x-tenant', type: 'RegularExpression', value: '.*' },
      ],
    },
  }
  const mirror = { type: 'RequestMirror', requestMirror: { backendRef: toBackend('shadow') } }
  const descriptors = [
    {
      entries: [
        { name: 'key', expression: 'request.headers["x-api-key"]' },
        { name: 'path', expression: 'request.path' },
      ],
      unit: 'Tokens',
    },
  ]
  return [
    ...letters.map((letter) => reached(letter, provider(letter))),
    ...letters.map((letter) => reached(`raw-${letter}`, provider(letter), passing)),
    ...letters.map((letter) => reached(`pass-${letter}`, provider(letter), passed)),
    ...letters.map((letter) =>
      reached(`raw-pass-${letter}`, provider(letter), { ...passing, ...passed }),
    ),
    reached('f', f, signed),
    reached('raw-f', f, { ...passing, ...signed }),
    reached('pass-f', f, passed),
    reached('no-auth', provider('a'), { auth: undefined }),
    reachedBackend(
      'failover',
      {
        groups: [
          { providers: [{ name: 'one', ...provider('a') }] },
          { providers: [{ name: 'two', ...provider('c') }] },
          { providers: [{ name: 'three', ...provider('d') }] },
        ],
      },
      passed,
    ),
    route(reached('set', provider('c'), { auth: undefined }), {
      filters: [setHeader('x-api-key', 'key-of-the-route')],
    }),
    [
      policy('set', 'HTTPRoute/set-policy', {
        traffic: {
          transformation: {
            request: { set: [{ name: 'authorization', value: '"Bearer key-of-the-policy"' }] },
          },
        },
      }),
    ],
    reached('set-policy', provider('a'), { auth: undefined }),
    route(reached('mirrored', provider('a')), { filters: [mirror] }),
    [
      policy('traced', 'Gateway/edge', {
        frontend: { tracing: { backendRef: toBackend('collector'), randomSampling: 'true' } },
      }),
      staticBackend('collector', collector.port),
    ],
    backendFilters(
      reachedBackend('edited', {
        groups: [
          { providers: [{ name: 'one', ...provider('a') }] },
          { providers: [{ name: 'two', ...provider('c') }] },
        ],
      }),
      [setHeader('x-of-the-backend', 'yes')],
    ),
    [staticBackend('shadow', shadow.port), staticBackend('webhook', webhook.port)],
    reached('guarded', provider('a'), { ai: { routes, promptGuard: { request: [guard] } } }),
    reached('limited', provider('a')),
    [
      staticBackend('limits', limits.port),
      policy('limited', 'HTTPRoute/limited', {
        traffic: {
          rateLimit: { global: { backendRef: toBackend('limits'), domain: 'd', descriptors } },
        },
      }),
    ],
    reached('verified', provider('c'), { ...passed, ai: { routes } }),
    [
      secret('keys', { one: 'gateway-client-key' }),
      policy('verified', 'HTTPRoute/verified', {
        traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
      }),
    ],
    reached('talk', { vendorA: {}, ...talk }, realtime),
    reached('talk-pass', { vendorA: {}, ...talk }, { ...realtime, ...passed }),
    reached('talk-raw', { vendorA: {}, ...talk, path: undefined }, passing),
  ]
})
beforeEach(() => {
  fleet.forget()
  sessions.sessions.length = 0
})

const canary = 'canary-4711'

/** A credential in every place where one may stand; all are told by the same word. */
const everywhere: Readonly<Record<string, string>> = {
  authorization: `Bearer ${canary}-bearer`,
  'proxy-authorization': `Basic ${canary}`,
  'X-API-Key': `${canary}-c`,
  'Api-Key': `${canary}-b`,
  'x-goog-api-key': `${canary}-d`,
  'x-goog-iam-authorization-token': canary,
  'ocp-apim-subscription-key': canary,
  'x-amz-security-token': canary,
  'x-amz-date': canary,
  'x-amz-content-sha256': canary,
  'x-auth-token': canary,
  'x-forwarded-access-token': canary,
  cookie: `session=${canary}; other=${canary}`,
  'sec-websocket-protocol': `realtime, openai-insecure-api-key.${canary}`,
}
const parameters = ['key', '%6Bey', 'KEY', 'api-key', 'api_key', 'access_token', 'token']
const signing = ['X-Amz-Security-Token', 'X-Amz-Signature', 'X-Amz-Credential', 'sig']
const query = [...parameters, ...signing].map((name) => `${name}=${canary}`).join('&')

const port = () => Number(new URL(fleet.base('a')).port)

function post(name: string, path: string, model = 'm', headers = everywhere) {
  const body = JSON.stringify({ model, max_tokens: 5, messages })
  const type = { 'content-type': 'application/json' }
  return send(port(), {
    method: 'POST',
    path: `/${name}${path}`,
    headers: { ...type, ...headers },
    body,
  })
}

/** What reached a vendor, as one text. */
function seen(letter: keyof Fleet['vendors']): string {
  const calls = fleet.vendors[letter].calls.map(({ path, headers }) => ({ path, headers }))
  expect(calls.length).toBeGreaterThan(0)
  return JSON.stringify(calls)
}

const credentialHeaders = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'] as const

/** Headers with a credential that reached a vendor last. */
function shown(letter: keyof Fleet['vendors']): Record<string, unknown> {
  const { headers = {} } = fleet.lastCall(letter) ?? {}
  const found = credentialHeaders.filter((name) => headers[name] !== undefined)
  return Object.fromEntries(found.map((name) => [name, headers[name]]))
}

describe('a request to a model provider', () => {
  it.each([
    ['a', 'gpt-4o', { authorization: 'Bearer gateway-key' }],
    ['b', 'gpt-4o', { authorization: 'Bearer gateway-key', 'api-key': 'gateway-key' }],
    ['c', 'claude-sonnet-4-0', { 'x-api-key': 'gateway-key' }],
    ['d', 'gemini-2.5-flash', { authorization: 'Bearer gateway-key' }],
    ['e', 'claude-sonnet-4-0', { authorization: 'Bearer gateway-key' }],
  ] as const)('carries to %s the credential of the gateway alone', async (letter, model, own) => {
    for (const path of ['/v1/chat/completions', '/v1/messages', '/v1/responses']) {
      await post(letter, `${path}?${query}&kept=1`, model)
      expect(shown(letter)).toEqual(own)
    }
    await post(`raw-${letter}`, `/any/path?kept=1&${query}`, model)
    expect(shown(letter)).toEqual(own)
    expect(fleet.lastCall(letter)?.path).toBe('/any/path?kept=1')
    expect(seen(letter)).not.toContain(canary)
  })

  it('is signed without anything that a client has signed', async () => {
    await post('f', `/v1/chat/completions?${query}`, claude)
    await post('raw-f', `/model/x/converse?${query}`)
    const bedrock = new BedrockRuntimeClient({
      endpoint: fleet.base('raw-f'),
      region: 'us-west-2',
      credentials: { accessKeyId: canary, secretAccessKey: 's', sessionToken: canary },
      maxAttempts: 1,
    })
    const content = [{ text: 'Hello' }]
    const request = { modelId: claude, messages: [{ role: 'user' as const, content }] }
    const answer = await bedrock.send(new ConverseCommand(request))
    expect(answer.output?.message?.content).toEqual([{ text: 'Hello from F' }])
    bedrock.destroy()
    expect(fleet.lastCall('f')?.headers['x-amz-security-token']).toBe('session-token')
    expect(seen('f')).not.toContain(canary)
  })

  it('carries none if the gateway has none', async () => {
    await post('no-auth', `/v1/chat/completions?${query}`)
    expect(seen('a')).not.toContain(canary)
    expect(shown('a')).toEqual({})
  })

  it('keeps a credential that a filter or a policy of the route has set', async () => {
    await post('set', '/v1/messages', 'claude-sonnet-4-0')
    expect(shown('c')).toEqual({ 'x-api-key': 'key-of-the-route' })
    await post('set-policy', '/v1/chat/completions')
    expect(shown('a')).toEqual({ authorization: 'Bearer key-of-the-policy' })
    expect(seen('a') + seen('c')).not.toContain(canary)
  })

  it('shows no credential of the client to mirrors', async () => {
    await post('mirrored', `/v1/chat/completions?${query}&kept=1`)
    const [copy] = await waitFor('the mirror', () => shadow.received.length > 0 && shadow.received)
    expect(copy?.path).toContain('kept=1')
    expect(JSON.stringify({ ...copy, body: '' })).not.toContain(canary)
  })

  it('shows webhooks the headers that forwardHeaderMatches selects, and no others', async () => {
    await post('guarded', '/v1/chat/completions', 'm', { ...everywhere, 'x-tenant': 'one' })
    const { headers } = webhook.calls.at(-1) ?? { headers: {} }
    expect(headers).toMatchObject({ 'x-api-key': `${canary}-c`, 'x-tenant': 'one' })
    expect(JSON.stringify({ ...headers, 'x-api-key': '' })).not.toContain(canary)
    expect(seen('a')).not.toContain(canary)
  })

  it('is charged to limits by what the client has sent', async () => {
    await post('limited', '/v1/chat/completions')
    const asked = await waitFor('check and charge', () => limits.asked.length > 1 && limits.asked)
    const entries = asked.map(({ descriptors }) =>
      descriptors[0]?.entries.map(({ value }) => value),
    )
    const expected = [`${canary}-c`, '/v1/chat/completions']
    expect(entries).toEqual([expected, expected])
    expect(seen('a')).not.toContain(canary)
  })
})

describe('passthrough', () => {
  it('gives each vendor the credential of its own SDK', async () => {
    const options = { apiKey: 'key-of-the-client', maxRetries: 0 }
    const openai = new OpenAI({ ...options, baseURL: `${fleet.base('pass-a')}/v1` })
    await openai.chat.completions.create({ model: 'gpt-4o', messages })
    expect(shown('a')).toEqual({ authorization: 'Bearer key-of-the-client' })
    const azure = new AzureOpenAI({
      ...options,
      baseURL: `${fleet.base('pass-b')}/openai`,
      apiVersion: '2024-10-21',
    })
    await azure.chat.completions.create({ model: 'gpt-4o', messages })
    expect(shown('b')).toEqual({ 'api-key': 'key-of-the-client' })
    const anthropic = new Anthropic({ ...options, baseURL: fleet.base('pass-c') })
    await anthropic.messages.create({ model: 'claude-sonnet-4-0', max_tokens: 5, messages })
    expect(shown('c')).toEqual({ 'x-api-key': 'key-of-the-client' })
    const gemini = new GoogleGenAI({
      apiKey: 'key-of-the-client',
      httpOptions: { baseUrl: fleet.base('raw-pass-d') },
    })
    await gemini.models.generateContent({ model: 'gemini-2.5-flash', contents: 'Hello' })
    expect(shown('d')).toEqual({ 'x-goog-api-key': 'key-of-the-client' })
  })

  it.each([
    ['a', 'gpt-4o', { authorization: `Bearer ${canary}-bearer` }],
    ['b', 'gpt-4o', { 'api-key': `${canary}-b` }],
    ['c', 'claude-sonnet-4-0', { 'x-api-key': `${canary}-c` }],
    ['d', 'gemini-2.5-flash', { 'x-goog-api-key': `${canary}-d` }],
    ['e', 'claude-sonnet-4-0', { authorization: `Bearer ${canary}-bearer` }],
    ['f', claude, { authorization: `Bearer ${canary}-bearer` }],
  ] as const)('keeps for %s the one place of its own', async (letter, model, own) => {
    await post(`pass-${letter}`, `/v1/chat/completions?${query}`, model)
    expect(shown(letter)).toEqual(own)
    const [value = ''] = Object.values(own)
    expect(seen(letter).replaceAll(value, '')).not.toContain(canary)
  })

  it('moves a key from the query to the header of the vendor', async () => {
    await post('raw-pass-d', '/v1beta/models?key=key-in-query&x=1', 'm', {})
    expect(fleet.lastCall('d')?.path).toBe('/v1beta/models?x=1')
    expect(shown('d')).toEqual({ 'x-goog-api-key': 'key-in-query' })
  })

  it('moves a bearer token to the place of the only vendor of the backend', async () => {
    await post('pass-c', '/v1/chat/completions', 'claude-sonnet-4-0', {
      authorization: 'Bearer key-of-the-client',
    })
    expect(shown('c')).toEqual({ 'x-api-key': 'key-of-the-client' })
  })

  it('sends no vendor the credential of another when one fails', async () => {
    const headers = { authorization: 'Bearer key-of-a', 'x-api-key': 'key-of-c' }
    fleet.vendors.a.answer = failsA(503, 'out of order')
    fleet.vendors.c.answer = failsA(503, 'out of order')
    await post('failover', '/v1/chat/completions', 'm', headers)
    expect(shown('a')).toEqual({ authorization: 'Bearer key-of-a' })
    expect(shown('c')).toEqual({ 'x-api-key': 'key-of-c' })
    expect(shown('d')).toEqual({})
  })

  it('follows filters of the backendRef at every provider', async () => {
    fleet.vendors.a.answer = failsA(503, 'out of order')
    await post('edited', '/v1/chat/completions', 'claude-sonnet-4-0', {})
    expect(fleet.lastCall('a')?.headers['x-of-the-backend']).toBe('yes')
    expect(fleet.lastCall('c')?.headers['x-of-the-backend']).toBe('yes')
  })

  it('restores a key that a policy has verified, where the vendor expects it', async () => {
    await post('verified', '/v1/chat/completions', 'claude-sonnet-4-0', {
      'api-key': 'gateway-client-key',
    })
    expect(shown('c')).toEqual({ 'x-api-key': 'gateway-client-key' })
  })
})

describe('realtime sessions', () => {
  const begin = async (name: string, path: string, protocols: string) => {
    const headers = {
      connection: 'upgrade',
      upgrade: 'websocket',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-version': '13',
      'sec-websocket-protocol': protocols,
      cookie: canary,
    }
    await upgrade(`/${name}${path}`, headers)
    const [session] = await waitFor(
      'the session',
      () => sessions.sessions.length > 0 && sessions.sessions,
    )
    return session
  }

  const upgrade = (path: string, headers: Record<string, string>) =>
    new Promise<void>((resolve, reject) => {
      import('node:http').then(({ request }) => {
        const outgoing = request({ host: '127.0.0.1', port: port(), path, headers })
        outgoing.once('upgrade', (_, socket) => {
          socket.destroy()
          resolve()
        })
        outgoing.once('response', (response) => {
          response.resume()
          resolve()
        })
        outgoing.once('error', reject)
        outgoing.end()
      }, reject)
    })

  const offered = `realtime, openai-insecure-api-key.${canary}, openai-beta.realtime-v1`

  it.each(['talk', 'talk-raw'])(
    'of %s hide the key that a browser offers as a subprotocol',
    async (name) => {
      const session = await begin(name, `/v1/realtime?model=m&api-key=${canary}`, offered)
      expect(session?.path).toBe('/v1/realtime?model=m')
      expect(session?.headers.authorization).toBe('Bearer gateway-key')
      expect(session?.headers['sec-websocket-protocol']).toBe('realtime, openai-beta.realtime-v1')
      expect(JSON.stringify(session)).not.toContain(canary)
    },
  )

  it('carry that key in Authorization with passthrough', async () => {
    const session = await begin('talk-pass', '/v1/realtime?model=m', offered)
    expect(session?.headers.authorization).toBe(`Bearer ${canary}`)
    expect(session?.headers['sec-websocket-protocol']).toBe('realtime, openai-beta.realtime-v1')
  })
})

describe('what is written about requests', () => {
  it('has no credential of a client, whatever the answer was', async () => {
    const log = () => fleet.running.stdout
    await post('a', `/v1/chat/completions?mark=served&${query}`)
    await post('verified', `/v1/chat/completions?mark=refused&${query}`)
    await send(port(), { path: `/nowhere?mark=unrouted&${query}` })
    await waitFor('the log', () =>
      ['served', 'refused', 'unrouted'].every((mark) => log().includes(`mark=${mark}`)),
    )
    expect(log()).toContain('mark=refused&key=<redacted>')
    expect(log() + fleet.running.stderr).not.toContain(canary)
    const spans = () => collector.received.map(({ body }) => body).join('')
    await waitFor('the spans', () => spans().includes('mark=refused'))
    expect(spans()).not.toContain(canary)
  })
})
