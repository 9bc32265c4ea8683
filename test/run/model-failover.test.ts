import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, policy, routeByPath } from '../support/manifests.ts'
import type { Vendor } from '../support/vendors/vendor.ts'
import { completes, failsA, startVendorA } from '../support/vendors/vendor-a.ts'
import { says, startVendorC } from '../support/vendors/vendor-c.ts'
import { waitFor } from '../support/wait-for.ts'

const routes = {
  '/v1/chat/completions': 'Completions',
  '/v1/messages': 'Messages',
  '/v1/embeddings': 'Embeddings',
}
const at = (vendor: Vendor) => ({ host: '127.0.0.1', port: vendor.port })

const reached = (name: string, groups: readonly object[][]) => [
  aiBackend(name, { groups: groups.map((providers) => ({ providers })) }, { ai: { routes } }),
  routeByPath(name),
]

const base = (name: string) => `http://127.0.0.1:${port}/${name}`
const openai = (name: string) =>
  new OpenAI({ baseURL: `${base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
const ask = { model: 'm-1', messages: [{ role: 'user' as const, content: 'Hello' }] }
const askC = { ...ask, max_tokens: 100 }

const pair = () => [
  [{ name: 'first', vendorA: {}, ...at(first) }],
  [{ name: 'second', vendorC: {}, ...at(second) }],
]

const port = await freePort()
const nobody = await freePort()
const first = useFixture(startVendorA)
const second = useFixture(startVendorC)
useGateway(() => ({
  manifests: [
    gateway(port),
    ...['busy', 'broken', 'hinted', 'streamed', 'healing'].flatMap((name) => reached(name, pair())),
    ...reached('suited', [
      [{ name: 'second', vendorC: {}, ...at(second) }],
      [{ name: 'first', vendorA: {}, ...at(first) }],
    ]),
    ...reached('suited-mixed', [
      [
        { name: 'one', vendorC: {}, ...at(second) },
        { name: 'two', vendorA: {}, ...at(first) },
      ],
    ]),
    ...reached('unsuited', [
      [{ name: 'one', vendorC: {}, ...at(second) }],
      [{ name: 'two', vendorC: { model: 'other' }, ...at(second) }],
    ]),
    ...reached('half-suited', pair()),
    ...reached('refusing', [
      [{ name: 'gone', vendorA: {}, host: '127.0.0.1', port: nobody }],
      [{ name: 'second', vendorC: {}, ...at(second) }],
    ]),
    ...reached('mixed', [
      [
        { name: 'one', vendorA: {}, ...at(first) },
        { name: 'two', vendorC: {}, ...at(second) },
      ],
    ]),
    ...reached('named', [
      [
        {
          name: 'one',
          vendorA: { model: 'own' },
          ...at(first),
          policies: { auth: { key: 'inline-key' } },
        },
      ],
      [{ name: 'two', vendorC: {}, ...at(second) }],
    ]),
    ...reached('again', [[{ name: 'one', vendorA: {}, ...at(first) }]]),
    policy('again', 'HTTPRoute/again', {
      traffic: { retry: { codes: [503], attempts: 2, backoff: '1ms' } },
    }),
    policy('of-one', 'GatewayBackend/named#one', { backend: { auth: { key: 'policy-key' } } }),
    policy('of-two', 'GatewayBackend/named#two', { backend: { auth: { key: 'policy-key' } } }),
  ],
}))

beforeEach(() => {
  for (const vendor of [first, second]) {
    vendor.calls.length = 0
    vendor.next.length = 0
  }
  first.answer = completes('from the first')
  second.answer = says('from the second')
})

const textOf = async (name: string) =>
  (await openai(name).chat.completions.create(ask)).choices[0]?.message.content

const sound = { data: Buffer.from('RIFF').toString('base64'), format: 'wav' as const }
const askAudio = {
  model: 'm-1',
  messages: [
    { role: 'user' as const, content: [{ type: 'input_audio' as const, input_audio: sound }] },
  ],
}
const audioTextOf = async (name: string) =>
  (await openai(name).chat.completions.create(askAudio)).choices[0]?.message.content

describe('a request that some providers of a backend cannot carry', () => {
  it('goes to the next group, and the provider that was passed over stays in use', async () => {
    for (const _ of [1, 2]) {
      expect(await audioTextOf('suited')).toBe('from the first')
      expect(first.calls.at(-1)?.body.messages).toEqual(askAudio.messages)
      expect(first.calls.at(-1)?.headers['anthropic-version']).toBe(undefined)
      expect(second.calls).toEqual([])
    }
    expect(await textOf('suited')).toBe('from the second')
  })

  it('goes to another provider of the same group', async () => {
    for (let count = 0; count < 12; count++) {
      expect(await audioTextOf('suited-mixed')).toBe('from the first')
    }
    expect(second.calls).toEqual([])
  })

  it('goes to a provider that has the interface', async () => {
    const answer = await openai('suited').embeddings.create({ model: 'm-1', input: 'Hello' })
    expect(answer.data[0]?.embedding).toEqual([0.5, 0])
  })

  it('is refused with the name of the part if no provider can carry it', async () => {
    await expect(audioTextOf('unsuited')).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining(
        'messages[0].content[0]: audio parts are not supported by this provider',
      ),
    })
    expect(second.calls).toEqual([])
  })

  it('is answered 503 if the providers that can carry it have failed', async () => {
    first.next.push(failsA(500, 'oh no'))
    await expect(audioTextOf('half-suited')).rejects.toMatchObject({ status: 503 })
    expect(second.calls).toEqual([])
  })
})

describe('groups of model providers', () => {
  it('[AIBackend.groups] [NamedLLMProvider.name] are asked by priority', async () => {
    expect(await textOf('busy')).toBe('from the first')
    expect(second.calls).toEqual([])
  })

  it('send a request to the next group after 429, a failure or a connection error', async () => {
    first.next.push(failsA(429, 'slow down'))
    expect(await textOf('busy')).toBe('from the second')
    first.next.push(failsA(500, 'oh no'))
    expect(await textOf('broken')).toBe('from the second')
    expect(await textOf('refusing')).toBe('from the second')
  })

  it('fail over before the first byte of a stream, in every client format', async () => {
    first.next.push(failsA(503, 'overloaded'))
    const client = new Anthropic({ baseURL: base('streamed'), apiKey: 'k', maxRetries: 0 })
    expect(await client.messages.stream(askC).finalText()).toBe('from the second')
    // The second provider got a request of its own format, translated from the client's request.
    expect(second.calls.at(-1)?.body).toMatchObject({ max_tokens: 100, stream: true })
    expect(second.calls.at(-1)?.headers['anthropic-version']).toBe('2023-06-01')
  })

  it('are retried by a retry policy, with the attempt number', async () => {
    first.next.push(failsA(503, 'once'), failsA(503, 'twice'))
    expect(await textOf('again')).toBe('from the first')
    const attempts = first.calls.map(({ headers }) => headers['x-retry-attempt'])
    expect(attempts).toEqual([undefined, '1', '2'])
  })

  it('eject a provider for as long as its Retry-After says', async () => {
    first.next.push(failsA(429, 'slow down', { 'retry-after': '3600' }))
    expect(await textOf('hinted')).toBe('from the second')
    first.calls.length = 0
    for (const _ of [1, 2, 3]) expect(await textOf('hinted')).toBe('from the second')
    expect(first.calls).toEqual([])
  })

  it('[AIBackend.failover] use a recovered provider again', async () => {
    first.next.push(failsA(503, 'down'))
    expect(await textOf('healing')).toBe('from the second')
    await waitFor('the first provider', async () => (await textOf('healing')) === 'from the first')
  })

  it('[PriorityGroup.providers] [NamedLLMProvider.vendor] [NamedLLMProvider.host] [NamedLLMProvider.port] share requests between providers of one group, of different vendors', async () => {
    for (let count = 0; count < 24; count++) await textOf('mixed')
    expect(first.calls.length).toBeGreaterThan(0)
    expect(second.calls.length).toBeGreaterThan(0)
  })

  it('[NamedLLMProvider.policies] [AIBackend.groups.sectionName] have policies of their own, and inline ones take precedence', async () => {
    expect(await textOf('named')).toBe('from the first')
    expect(first.calls.at(-1)?.headers.authorization).toBe('Bearer inline-key')
    expect(first.calls.at(-1)?.body.model).toBe('own')
    first.next.push(failsA(500, 'oh no'))
    expect(await textOf('named')).toBe('from the second')
    expect(second.calls.at(-1)?.headers['x-api-key']).toBe('policy-key')
    // Nothing of the first provider is left in the request to the second.
    expect(second.calls.at(-1)?.headers.authorization).toBe(undefined)
    expect(second.calls.at(-1)?.body.model).toBe('m-1')
  })
})
