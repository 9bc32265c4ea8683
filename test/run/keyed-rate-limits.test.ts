/** Limits that count for each value of a key, on two workers. */
import { describe, expect, it } from 'vitest'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  hostOf,
  httpRoute,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'

const upstream = useUpstream()
const vendor = useFixture(() => startVendorA())
const port = await freePort()
const limited = (name: string, local: readonly object[], more: object = {}, backend = 'main') => [
  httpRoute(name, {
    hostnames: [hostOf(name)],
    rules: [{ backendRefs: [toBackend(backend)] }],
  }),
  policy(name, `HTTPRoute/${name}`, { traffic: { rateLimit: { local }, ...more } }),
]
const keys = { apiKeyAuthentication: { secretRef: { name: 'keys' } } }
const running = useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('main', upstream.port),
    aiBackend('model', { provider: { vendorA: {}, host: '127.0.0.1', port: vendor.port } }),
    secret('keys', {
      ann: JSON.stringify({ key: 'key-of-ann', metadata: { team: 'a' } }),
      bob: JSON.stringify({ key: 'key-of-bob', metadata: { team: 'a' } }),
      cem: 'key-of-cem',
      dan: 'key-of-dan',
    }),
    ...limited('user', [{ requests: 2, unit: 'Days', key: 'apiKey.id' }], keys),
    ...limited('team', [{ requests: 2, unit: 'Months', key: 'apiKey.team' }], keys),
    ...limited('both', [
      { requests: 3, unit: 'Hours' },
      { requests: 2, unit: 'Hours', key: 'request.headers["x-user"]' },
    ]),
    ...limited('failing', [{ requests: 2, unit: 'Hours', key: '1 / 0 == 1 ? "a" : "b"' }]),
    ...limited('body', [{ requests: 1, unit: 'Hours', key: 'json(request.body).user' }]),
    ...limited('early', [{ requests: 1, unit: 'Hours', key: 'llm.requestModel' }]),
    ...limited('tokens', [{ tokens: 1, unit: 'Hours', key: 'apiKey.id' }], keys, 'model'),
    ...limited('models', [{ tokens: 1, unit: 'Hours', key: 'llm.requestModel' }], {}, 'model'),
  ],
  env: { SLUICE_WORKERS: '2' },
}))

const ask = (name: string, headers: Record<string, string> = {}, body?: string) =>
  running.send(port, {
    host: hostOf(name),
    headers,
    ...(body !== undefined && { method: 'POST', body }),
  })
const bearer = (key: string) => ({ authorization: `Bearer key-of-${key}` })
const statuses = async (count: number, ...args: Parameters<typeof ask>) => {
  const found: number[] = []
  for (let at = 0; at < count; at++) found.push((await ask(...args)).status)
  return found
}

describe('rateLimit.local with a key', () => {
  it('counts each value of the key for itself, in all workers', async () => {
    expect(await statuses(4, 'user', bearer('ann'))).toEqual([200, 200, 429, 429])
    expect(await statuses(3, 'user', bearer('bob'))).toEqual([200, 200, 429])
  })

  it('counts requests of users with one value together, and those without a value too', async () => {
    expect(await statuses(1, 'team', bearer('ann'))).toEqual([200])
    expect(await statuses(2, 'team', bearer('bob'))).toEqual([200, 429])
    expect(await statuses(1, 'team', bearer('cem'))).toEqual([200])
    expect(await statuses(2, 'team', bearer('dan'))).toEqual([200, 429])
  })

  it('names the limit in the refusal, and when the next request is allowed', async () => {
    const { headers } = await ask('user', bearer('ann'))
    expect(headers['x-ratelimit-limit']).toBe('2')
    expect(Number(headers['retry-after'])).toBeGreaterThan(40_000)
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(43_200)
  })

  it('applies limits with and without a key together', async () => {
    expect(await statuses(3, 'both', { 'x-user': 'ann' })).toEqual([200, 200, 429])
    expect(await statuses(1, 'both', { 'x-user': 'bob' })).toEqual([429])
  })

  it('refuses with 500 if the key fails', async () => {
    const { status, body } = await ask('failing')
    expect([status, body]).toEqual([500, 'rate limit failed'])
  })

  it('reads the body for a key that needs it', async () => {
    const chat = (user: string) => JSON.stringify({ user })
    expect(await statuses(2, 'body', {}, chat('ann'))).toEqual([200, 429])
    expect(await statuses(1, 'body', {}, chat('bob'))).toEqual([200])
  })

  it('charges tokens to the value of the key', async () => {
    const chat = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi' }] })
    expect(await statuses(2, 'tokens', bearer('ann'), chat)).toEqual([200, 429])
    expect(await statuses(2, 'tokens', bearer('bob'), chat)).toEqual([200, 429])
  })

  it('limits the tokens of each model', async () => {
    const chat = (model: string) =>
      JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] })
    expect(await statuses(2, 'models', {}, chat('gpt-4o'))).toEqual([200, 429])
    expect(await statuses(2, 'models', {}, chat('gpt-4o-mini'))).toEqual([200, 429])
  })

  it('reports a key of a limit of requests that is known only later', async () => {
    const { message } = await running.condition('GatewayPolicy', 'early', 'Accepted', 'False')
    expect(message).toContain('local[0].key')
  })
})
