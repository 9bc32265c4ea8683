import { beforeEach, describe, expect, it } from 'vitest'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestResponse } from '../support/http-client.ts'
import {
  aiBackend,
  gateway,
  hostOf,
  httpRoute,
  policy,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startRateLimitServer } from '../support/rate-limit-server.ts'
import { waitFor } from '../support/wait-for.ts'

type Fields = Record<string, unknown>

const entry = (name: string, expression: string) => ({ name, expression })
const team = entry('team', 'request.headers["x-team"]')
const limited = (name: string, global: Fields, more: Fields = {}) => [
  httpRoute(name, { hostnames: [hostOf(name)], rules: [{ backendRefs: [toBackend('main')] }] }),
  policy(name, `HTTPRoute/${name}`, {
    traffic: {
      rateLimit: {
        global: { domain: 'shop', backendRef: toBackend('limits'), ...global },
        ...more,
      },
    },
  }),
]

const upstream = useUpstream()
const models = useUpstream('models', (_, response) => {
  const message = { role: 'assistant', content: 'Hello' }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }
  const answer = { id: 'a', object: 'chat.completion', created: 1, model: 'm', choices, usage }
  response.setHeader('content-type', 'application/json').end(JSON.stringify(answer))
})
const server = useFixture(startRateLimitServer)
const port = await freePort()
const closedPort = await freePort()
const running = useGateway(async () => {
  const slow = policy('slow', 'GatewayBackend/impatient', {
    backend: { http: { requestTimeout: '100ms' } },
  })
  return {
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      staticBackend('limits', server.port),
      staticBackend('impatient', server.port),
      slow,
      staticBackend('down', await freePort()),
      ...service('limits-service', [server.port]),
      ...limited('team', {
        descriptors: [
          { entries: [team, entry('path', 'request.path'), entry('fixed', '"yes"')] },
          { entries: [entry('number', '1 + 1'), entry('flag', 'true')] },
          { entries: [entry('list', '[1, 2]')] },
          { entries: [team], unit: 'Tokens' },
        ],
      }),
      ...limited('service', {
        backendRef: { name: 'limits-service', port: 80 },
        descriptors: [{ entries: [team] }],
      }),
      ...limited('impatient', {
        backendRef: toBackend('impatient'),
        descriptors: [{ entries: [team] }],
      }),
      ...limited('by-body', {
        descriptors: [{ entries: [entry('team', 'json(request.body).team')] }],
      }),
      ...limited('down', {
        backendRef: toBackend('down'),
        descriptors: [{ entries: [team] }],
      }),
      ...limited('nowhere', {
        backendRef: toBackend('nowhere'),
        descriptors: [{ entries: [team] }],
      }),
      aiBackend('models', {
        provider: { vendorA: {}, host: '127.0.0.1', port: models.port },
      }),
      httpRoute('models', {
        hostnames: [hostOf('models')],
        rules: [{ backendRefs: [toBackend('models')] }],
      }),
      policy('models', 'HTTPRoute/models', {
        traffic: {
          rateLimit: {
            global: {
              domain: 'shop',
              backendRef: toBackend('limits'),
              descriptors: [{ entries: [entry('fixed', '"yes"')], unit: 'Tokens' }],
            },
          },
        },
      }),
      ...['by-path', 'by-provider'].flatMap((name) => [
        aiBackend(`failing-${name}`, {
          groups: [
            { providers: [{ name: 'bad', vendorA: {}, host: '127.0.0.1', port: closedPort }] },
            { providers: [{ name: 'good', vendorA: {}, host: '127.0.0.1', port: models.port }] },
          ],
        }),
        httpRoute(name, {
          hostnames: [hostOf(name)],
          rules: [{ backendRefs: [toBackend(`failing-${name}`)] }],
        }),
        policy(name, `HTTPRoute/${name}`, {
          traffic: {
            rateLimit: {
              global: {
                domain: name,
                backendRef: toBackend('limits'),
                descriptors: [
                  {
                    entries: [entry('key', name === 'by-path' ? 'request.path' : 'llm.provider')],
                    unit: 'Tokens',
                  },
                ],
              },
            },
          },
        }),
      ]),
      aiBackend('renamed', {
        provider: { vendorA: { model: 'other' }, host: '127.0.0.1', port: models.port },
      }),
      httpRoute('renamed', {
        hostnames: [hostOf('renamed')],
        rules: [{ backendRefs: [toBackend('renamed')] }],
      }),
      policy('renamed', 'HTTPRoute/renamed', {
        traffic: {
          rateLimit: {
            global: {
              domain: 'by-model',
              backendRef: toBackend('limits'),
              descriptors: [
                {
                  entries: [
                    entry('asked', 'json(request.body).model'),
                    entry('backend', 'backend.name'),
                    entry('sent', 'llm.requestModel + " " + llmRequest.model'),
                  ],
                  unit: 'Tokens',
                },
              ],
            },
          },
        },
      }),
      ...limited(
        'local-first',
        { descriptors: [{ entries: [team] }] },
        {
          local: [{ requests: 1, unit: 'Hours' }],
        },
      ),
    ],
  }
})

beforeEach(() => server.answer({ overallCode: 1 }))

const ask = (name: string, headers: Record<string, string> = {}): Promise<TestResponse> =>
  running.send(port, { host: hostOf(name), path: '/cart?x=1', headers })
const asked = () =>
  server.asked
    .at(-1)
    ?.descriptors.map(({ entries }) => entries.map(({ key, value }) => [key, value]))

describe('rateLimit.global [RateLimits.global]', () => {
  it('[GlobalRateLimit.domain] [GlobalRateLimit.descriptors] [RateLimitDescriptor.entries] [RateLimitDescriptor.unit=Requests] sends descriptors with the values of expressions', async () => {
    expect((await ask('team', { 'x-team': 'red' })).status).toBe(200)
    expect(server.asked.at(-1)).toMatchObject({ domain: 'shop', hitsAddend: 1 })
    expect(asked()).toEqual([
      [
        ['team', 'red'],
        ['path', '/cart'],
        ['fixed', 'yes'],
      ],
      [
        ['number', '2'],
        ['flag', 'true'],
      ],
    ])
  })

  it('[RateLimitDescriptor.unit=Tokens] charges the tokens of a model once they are known', async () => {
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] })
    const request = {
      method: 'POST',
      host: hostOf('models'),
      path: '/v1/chat/completions',
      headers: { 'content-type': 'application/json' },
      body,
    }
    expect((await running.send(port, request)).status).toBe(200)
    const charged = await waitFor('the charge', () =>
      server.asked.find(({ descriptors }) => descriptors[0]?.hitsAddend === 18n),
    )
    expect(charged.descriptors[0]?.entries).toMatchObject([{ key: 'fixed', value: 'yes' }])
    server.answer({ overallCode: 2 })
    expect((await running.send(port, request)).status).toBe(429)
  })

  it('checks and charges a token limit by the same values, although the request is rewritten', async () => {
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] })
    const headers = { 'content-type': 'application/json' }
    const path = '/v1/chat/completions'
    const request = { method: 'POST', host: hostOf('renamed'), path, headers, body }
    expect((await running.send(port, request)).status).toBe(200)
    const own = () => server.asked.filter(({ domain }) => domain === 'by-model')
    await waitFor('check and charge', () => own().length === 2)
    const entries = [
      ['asked', 'm'],
      ['backend', 'default/renamed'],
      ['sent', 'other m'],
    ].map(([key, value]) => ({ key, value }))
    expect(own()).toMatchObject([{ descriptors: [{ entries }] }, { descriptors: [{ entries }] }])
  })

  it('asks once for a request that fails over, unless the limit may count it by its provider', async () => {
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] })
    const headers = { 'content-type': 'application/json' }
    const path = '/v1/chat/completions'
    for (const [name, checks] of [
      ['by-path', 1],
      ['by-provider', 2],
    ] as const) {
      const own = () => server.asked.filter(({ domain }) => domain === name)
      const isCharged = () => own().some(({ descriptors }) => descriptors[0]?.hitsAddend === 18n)
      const request = { method: 'POST', host: hostOf(name), path, headers, body }
      expect((await running.send(port, request)).status).toBe(200)
      await waitFor('the charge', isCharged)
      expect(own()).toHaveLength(checks + 1)
    }
  })

  it('omits a descriptor with a missing value, and sends nothing if none is left', async () => {
    await ask('team')
    expect(asked()).toEqual([
      [
        ['number', '2'],
        ['flag', 'true'],
      ],
    ])
    const before = server.asked.length
    expect((await ask('service')).status).toBe(200)
    expect(server.asked).toHaveLength(before)
  })

  it('refuses a request for which an expression fails, which could evade the limit', async () => {
    const before = [server.asked.length, upstream.received.length]
    const post = (body: string) =>
      running.send(port, { method: 'POST', host: hostOf('by-body'), body })
    expect((await post('{"team":"red"')).status).toBe(500)
    expect((await post(`{"team":"red"}${' '.repeat(2_097_152)}`)).status).toBe(500)
    expect([server.asked.length, upstream.received.length]).toEqual(before)
    expect((await post('{"team":"red"}')).status).toBe(200)
    expect(asked()).toEqual([[['team', 'red']]])
    expect((await post('{}')).status).toBe(200)
  })

  it('counts a header of several lines by its joined value', async () => {
    await running.send(port, { host: hostOf('service'), headers: { 'x-team': ['red', 'blue'] } })
    expect(asked()).toEqual([[['team', 'red, blue']]])
  })

  it('[GlobalRateLimit.backendRef] reaches the server through a Service', async () => {
    const before = server.asked.length
    expect((await ask('service', { 'x-team': 'red' })).status).toBe(200)
    expect(server.asked).toHaveLength(before + 1)
  })

  it("copies headers and limits of the server's answer", async () => {
    server.answer({
      overallCode: 1,
      statuses: [
        { code: 1, currentLimit: { requestsPerUnit: 100 }, limitRemaining: 50 },
        {
          code: 1,
          currentLimit: { requestsPerUnit: 10 },
          limitRemaining: 3,
          durationUntilReset: { seconds: 42n },
        },
      ],
      requestHeadersToAdd: [
        { key: 'x-tier', value: 'gold' },
        { key: 'host', value: 'evil' },
      ],
      responseHeadersToAdd: [{ key: 'x-served-by', value: 'limits' }],
    })
    const { status, headers } = await ask('service', { 'x-team': 'red', 'x-tier': 'forged' })
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'x-ratelimit-limit': '10',
      'x-ratelimit-remaining': '3',
      'x-ratelimit-reset': '42',
      'x-served-by': 'limits',
    })
    const received = upstream.received.at(-1)?.headers
    expect([received?.['x-tier'], received?.host]).toEqual(['gold', hostOf('service')])
  })

  it('answers 429 with the headers and body of the server', async () => {
    server.answer({
      overallCode: 2,
      statuses: [
        {
          code: 2,
          currentLimit: { requestsPerUnit: 10 },
          limitRemaining: 0,
          durationUntilReset: { seconds: 7n },
        },
      ],
      responseHeadersToAdd: [{ key: 'x-why', value: 'team' }],
      rawBody: Buffer.from('too many'),
    })
    const before = upstream.received.length
    const { status, body, headers } = await ask('service', { 'x-team': 'red' })
    expect([status, body]).toEqual([429, 'too many'])
    expect(headers).toMatchObject({
      'x-why': 'team',
      'x-ratelimit-limit': '10',
      'retry-after': '7',
    })
    server.answer({ overallCode: 2 })
    const plain = await ask('service', { 'x-team': 'red' })
    expect([plain.status, plain.body]).toEqual([429, 'rate limit exceeded'])
    expect(upstream.received).toHaveLength(before)
  })

  it.each([
    ['answers with an error', 'service', 14],
    ['answers with UNIMPLEMENTED', 'service', 12],
    ['does not answer in time', 'impatient', 'nothing'],
    ['is unreachable', 'down', { overallCode: 1 }],
    ['answers with no code', 'service', {}],
    ['answers with an unknown code', 'service', { overallCode: 3 }],
    ['answers with bytes that cannot be read', 'service', Uint8Array.of(0xff, 0xff)],
  ] as const)('fails closed if the server %s', async (_, name, answer) => {
    server.answer(answer)
    const { status, body } = await ask(name, { 'x-team': 'red' })
    expect([status, body]).toEqual([500, 'rate limit failed'])
  })

  it('works again as soon as the server does', async () => {
    server.answer(14)
    await ask('service', { 'x-team': 'red' })
    server.answer({ overallCode: 1 })
    expect((await ask('service', { 'x-team': 'red' })).status).toBe(200)
  })

  it('comes after the local limits', async () => {
    const headers = { 'x-team': 'red' }
    expect((await ask('local-first', headers)).status).toBe(200)
    const before = server.asked.length
    expect((await ask('local-first', headers)).status).toBe(429)
    expect(server.asked).toHaveLength(before)
  })

  it('refuses requests and reports it if the backendRef does not resolve', async () => {
    expect((await ask('nowhere', { 'x-team': 'red' })).status).toBe(500)
    const { message } = await running.condition('GatewayPolicy', 'nowhere', 'Accepted', 'False')
    expect(message).toContain('global.backendRef: GatewayBackend default/nowhere does not exist')
  })
})
