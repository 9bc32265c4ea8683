import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestResponse } from '../support/http-client.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  manifest,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

const rules = [{ backendRefs: [toBackend('main')] }]
const guarded = (name: string, spec: Record<string, unknown>) => [
  httpRoute(name, { hostnames: [hostOf(name)], rules }),
  policy(name, `HTTPRoute/${name}`, { traffic: { apiKeyAuthentication: spec } }),
]

const upstream = useUpstream()
const port = await freePort()
const running = useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('main', upstream.port),
    ...guarded('strict', { secretRef: { name: 'keys' } }),
    ...guarded('optional', { secretRef: { name: 'keys' }, mode: 'Optional' }),
    secret('keys', {
      ann: 'key-of-ann\n',
      bob: JSON.stringify({ key: 'key-of-bob', metadata: { group: 'sales' } }),
      again: 'key-of-ann',
      broken: '{ "key": ',
      empty: ' ',
      keyless: '{ "metadata": {} }',
    }),
    ...guarded('selected', { secretSelector: { matchLabels: { keys: 'yes' } } }),
    secret('first', { shared: 'key-one' }, { keys: 'yes' }),
    secret('second', { shared: 'key-two' }, { keys: 'yes', more: 'x' }),
    secret('third', { shared: 'key-three' }, { keys: 'no' }),
    ...guarded('sales', { secretRef: { name: 'keys' } }),
    policy('sales-only', 'HTTPRoute/sales', {
      traffic: {
        authorization: { policy: { matchExpressions: ['apiKey.group == "sales"'] } },
      },
    }),
    ...guarded('absent', { secretRef: { name: 'nobody' } }),
    ...guarded('unusable', { secretRef: { name: 'unusable' } }),
    secret('unusable', { one: '' }),
    ...guarded('everything', { secretSelector: { matchLabels: {} } }),
  ],
}))

function ask(name: string, authorization?: string | string[]): Promise<TestResponse> {
  const headers: Record<string, string | string[]> = authorization ? { authorization } : {}
  return running.send(port, { host: hostOf(name), headers })
}

const status = async (name: string, key: string) => (await ask(name, `Bearer ${key}`)).status

describe('apiKeyAuthentication [Traffic.apiKeyAuthentication]', () => {
  it('[APIKeyAuthentication=Strict] [APIKeyAuthentication.mode] [error.8] refuses a request without a key', async () => {
    const { status, body, headers } = await ask('strict')
    expect([status, body]).toEqual([401, 'api key authentication failure: no API Key found'])
    expect(headers['www-authenticate']).toBe('Bearer realm="Restricted"')
    expect((await ask('strict', 'Basic a2V5OmtleQ==')).body).toContain('no API Key found')
  })

  it('[APIKeyAuthentication.secretRef] [APIKeyAuthentication.entry.string] accepts a plain text key', async () => {
    expect(await status('strict', 'key-of-ann')).toBe(200)
    expect(upstream.received.at(-1)?.headers).not.toHaveProperty('authorization')
  })

  it('[APIKeyAuthentication.entry.json] [Authorization.order] shows the metadata of a key to rules', async () => {
    expect(await status('sales', 'key-of-bob')).toBe(200)
    expect(await status('sales', 'key-of-ann')).toBe(403)
    expect((await ask('sales')).status).toBe(401)
  })

  it.each(['key-of-eve', 'ann', 'KEY-OF-ANN', '{"key":"key-of-bob","metadata":{"group":"sales"}}'])(
    'refuses %s',
    async (key) => {
      const { status, body, headers } = await ask('strict', `Bearer ${key}`)
      expect([status, body]).toEqual([401, 'api key authentication failure: invalid credentials'])
      const challenge = 'Bearer realm="Restricted", error="invalid_token"'
      expect(headers['www-authenticate']).toBe(challenge)
    },
  )

  it('refuses a request with two keys, even if one is valid', async () => {
    const keys = ['Bearer key-of-ann', 'Bearer key-of-eve']
    expect((await ask('strict', keys)).status).toBe(401)
    expect((await ask('optional', keys)).status).toBe(401)
  })

  it('[APIKeyAuthentication=Optional] mode Optional lets requests without a key pass, but refuses a wrong key', async () => {
    expect((await ask('optional')).status).toBe(200)
    expect(await status('optional', 'key-of-ann')).toBe(200)
    expect(await status('optional', 'key-of-eve')).toBe(401)
  })

  it('[APIKeyAuthentication.secretSelector] accepts the keys of every Secret with the labels', async () => {
    expect(await status('selected', 'key-one')).toBe(200)
    expect(await status('selected', 'key-two')).toBe(200)
    expect(await status('selected', 'key-three')).toBe(401)
  })

  it('follows labels that change', async () => {
    const later = (labels: Record<string, string>) =>
      running.write('later.yaml', manifest(secret('later', { a: 'key-four' }, labels)))
    const request = { host: hostOf('selected'), headers: { authorization: 'Bearer key-four' } }
    later({ keys: 'yes' })
    await running.sendUntil(port, request, (answer) => answer.status === 200)
    later({ keys: 'no' })
    await running.sendUntil(port, request, (answer) => answer.status === 401)
  })

  it('reports entries that are not keys, and accepts the others', async () => {
    const { message } = await running.condition('GatewayPolicy', 'strict', 'Accepted', 'True')
    for (const text of ['broken', 'is empty', 'has neither a "key"'])
      expect(message).toContain(text)
  })

  it.each([
    ['absent', 'Secret nobody does not exist'],
    ['unusable', 'contains no usable key'],
    ['everything', 'matchLabels is empty'],
  ])('refuses all requests and reports it if the Secret is %s', async (name, text) => {
    expect(await status(name, 'key-of-ann')).toBe(401)
    const { message } = await running.condition('GatewayPolicy', name, 'Accepted', 'False')
    expect(message).toContain(text)
  })
})
