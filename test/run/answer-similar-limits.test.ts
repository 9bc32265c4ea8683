/** What limits, budgets and other clients have to do with stored answers to similar requests. */
import { beforeEach, describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { aiBackend, budget, gateway, policy, routeByPath, secret } from '../support/manifests.ts'
import { json } from '../support/vendors/vendor.ts'
import { completes, startVendorA, usageA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'

const a = useFixture(startVendorA)
const embeddings = useFixture(startVendorA)
const port = await freePort()

const provider = (at: number) => ({ provider: { vendorA: {}, host: '127.0.0.1', port: at } })
const semantic = {
  backendRef: { group: 'sluice.dev', kind: 'GatewayBackend', name: 'vectors' },
  model: 'text-embedding-3-small',
}

const cached = (name: string) => [
  aiBackend(name, provider(a.port), { ai: { cache: { semantic } } }),
  routeByPath(name),
  policy(`keys-${name}`, `HTTPRoute/${name}`, {
    traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
  }),
]

const running = useGateway(() => ({
  manifests: [
    gateway(port),
    secret('keys', { ann: 'key-of-ann' }),
    aiBackend('vectors', provider(embeddings.port)),
    ...cached('free'),
    ...cached('paid'),
    budget('paid', 'HTTPRoute/paid', {
      limit: { unit: 'Tokens', amount: '3000' },
      window: { unit: 'Month' },
    }),
  ],
  args: ['--workers', '1'],
}))

beforeEach(() => {
  embeddings.calls.length = 0
  a.calls.length = 0
  a.answer = completes('Hello')
  // All texts are similar.
  embeddings.answer = (_, response) =>
    json(response, 200, {
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding: [1, 2, 3] }],
      model: 'text-embedding-3-small',
      usage: { prompt_tokens: 8, total_tokens: 8 },
    })
})

async function post(name: string, text: string, more: object = {}, headers: object = {}) {
  const messages = [{ role: 'user', content: text }]
  const response = await fetch(`http://127.0.0.1:${port}/${name}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: 'Bearer key-of-ann',
      ...headers,
    },
    body: JSON.stringify({ model: 'gpt-4o', messages, ...more }),
  })
  await response.arrayBuffer()
  const status = response.headers.get('cache-status') ?? ''
  const cache = status.includes('detail=similar') ? 'similar' : 'other'
  return { status: response.status, cache }
}

describe('embeddings of requests', () => {
  it('are not made for requests that a budget refuses', async () => {
    expect((await post('paid', 'What is this?', { max_tokens: 9_000 })).status).toBe(429)
    expect(embeddings.calls).toHaveLength(0)
  })

  it('are charged to budgets, with the answer of a miss and alone for a hit', async () => {
    const spent = (amount: number) =>
      waitFor(`${amount} tokens spent`, async () => {
        const { stdout } = await sluice(
          'budgets',
          'list',
          '-o',
          'json',
          '--log-file',
          running.logFile,
        )
        return JSON.parse(stdout).budgets.find(
          (one: { spent: string }) => one.spent === `${amount}`,
        )
      })
    const settings = { temperature: 0.5, max_tokens: 10 }
    expect((await post('paid', 'When is it?', settings)).cache).toBe('other')
    await spent(usageA.total_tokens + 8)
    expect((await post('paid', 'When are they?', settings)).cache).toBe('similar')
    await spent(usageA.total_tokens + 2 * 8)
  })

  it('are made for the next texts if the backend refuses some', async () => {
    const { answer } = embeddings
    embeddings.answer = (_, response) => json(response, 400, { error: { message: 'filtered' } })
    const settings = { temperature: 0.6 }
    const words = [...'abcdefghij']
    for (const word of words) await post('free', `Who is ${word}?`, settings)
    expect(embeddings.calls).toHaveLength(words.length)
    embeddings.answer = answer
    await post('free', 'Who are you?', settings)
    expect((await post('free', 'Who are they?', settings)).cache).toBe('similar')
  })
})

describe('a request with x-sluice-cache: exact', () => {
  it('does not get the similar answer that an equal request gets at the same time', async () => {
    const settings = { temperature: 0.7 }
    await post('free', 'Where is this?', settings)
    const answer = embeddings.answer
    const held = Promise.withResolvers<void>()
    embeddings.answer = (call, response) => void held.promise.then(() => answer(call, response))
    const first = post('free', 'Where are they?', settings)
    await waitFor('the embedding', () => embeddings.calls[1])
    const exact = post('free', 'Where are they?', settings, { 'x-sluice-cache': 'exact' })
    // The gateway has one worker, so it has read the request above too.
    await post('free', 'Another', {}, { 'x-sluice-cache': 'off' })
    held.resolve()
    expect((await first).cache).toBe('similar')
    expect((await exact).cache).toBe('other')
    expect(a.calls).toHaveLength(3)
  })
})
