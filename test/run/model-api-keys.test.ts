/** API keys of the gateway where stock SDKs of model vendors put them. */
import { request } from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI, { AzureOpenAI } from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { useFixture, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { send } from '../support/http-client.ts'
import {
  gateway,
  httpRoute,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import { startRealtimeVendor } from '../support/vendors/realtime.ts'

const key = 'key-of-ann'
const messages = [{ role: 'user' as const, content: 'Hello' }]
const passing = { ai: { routes: { '*': 'Passthrough' } } }

const plain = useUpstream()
const sessions = useFixture(startRealtimeVendor)
const early = await freePort()
const fleet = useFleet(({ at }) => {
  const guarded = (name: string, spec: object = {}) =>
    policy(name, `HTTPRoute/${name}`, {
      traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' }, ...spec } },
    })
  const names = ['a', 'b', 'c', 'd', 'talk', 'plain']
  const talk = { host: '127.0.0.1', port: sessions.port }
  const keyOf = (auth: string) => ({ auth: { key: auth } })
  const below = (name: string) => [{ matches: [{ path: { value: `/${name}` } }] }]
  return [
    [secret('keys', { ann: key, bob: JSON.stringify({ key: 'key-of-bob' }) })],
    reached('a', { vendorA: {}, ...at('a') }),
    reached('b', { vendorB: { endpoint: 'x' }, ...at('b') }),
    reached('c', { vendorC: {}, ...at('c') }),
    reached('d', { vendorD: {}, ...at('d') }, { ...passing, ...keyOf('AIzaGateway') }),
    reached('optional', { vendorC: {}, ...at('c') }),
    [guarded('optional', { mode: 'Optional' })],
    reached('talk', { vendorA: {}, ...talk }, { ai: { routes: { '*': 'Realtime' } } }),
    [staticBackend('plain', plain.port)],
    [
      httpRoute('plain', {
        rules: below('plain').map((rule) => ({ ...rule, backendRefs: [toBackend('plain')] })),
      }),
    ],
    names.map((name) => guarded(name)),
    [gateway(early, {}, 'early')],
    [
      httpRoute('early', {
        parentRefs: [{ name: 'early' }],
        rules: [
          { ...below('plain')[0], backendRefs: [toBackend('plain')] },
          { backendRefs: [toBackend('c')] },
        ],
      }),
      policy('early', 'Gateway/early', {
        traffic: {
          phase: 'PreRouting',
          apiKeyAuthentication: { secretRef: { name: 'keys' } },
        },
      }),
    ],
  ]
})
beforeEach(() => {
  fleet.forget()
  sessions.sessions.length = 0
})

const port = () => Number(new URL(fleet.base('a')).port)

type Ask = (apiKey: string) => Promise<unknown>

const sdks: readonly (readonly [name: string, vendor: 'a' | 'b' | 'c' | 'd', ask: Ask])[] = [
  [
    'openai',
    'a',
    (apiKey) =>
      new OpenAI({
        baseURL: `${fleet.base('a')}/v1`,
        apiKey,
        maxRetries: 0,
      }).chat.completions.create({ model: 'gpt-4o', messages }),
  ],
  [
    'AzureOpenAI',
    'b',
    (apiKey) =>
      new AzureOpenAI({
        baseURL: `${fleet.base('b')}/openai`,
        apiKey,
        apiVersion: '2024-10-21',
        maxRetries: 0,
      }).chat.completions.create({ model: 'gpt-4o', messages }),
  ],
  [
    '@anthropic-ai/sdk',
    'c',
    (apiKey) =>
      new Anthropic({ baseURL: fleet.base('c'), apiKey, maxRetries: 0 }).messages.create({
        model: 'claude-sonnet-4-0',
        max_tokens: 5,
        messages,
      }),
  ],
  [
    '@google/genai',
    'd',
    (apiKey) =>
      new GoogleGenAI({
        apiKey,
        httpOptions: { baseUrl: fleet.base('d') },
      }).models.generateContent({ model: 'gemini-2.5-flash', contents: 'Hello' }),
  ],
]

const ask = async (
  name: string,
  headers: Record<string, string | string[]>,
  query = '',
  to = port(),
) => {
  const path = name === 'early' ? `/v1/messages${query}` : `/${name}/v1/messages${query}`
  const body = JSON.stringify({ model: 'claude-sonnet-4-0', max_tokens: 5, messages })
  const all = { 'content-type': 'application/json', ...headers }
  return (await send(to, { method: 'POST', path, headers: all, body })).status
}

const sent = (letter: 'a' | 'b' | 'c' | 'd') => JSON.stringify(fleet.vendors[letter].calls)

describe('apiKeyAuthentication on routes to model providers', () => {
  it.each(sdks)(
    '[APIKeyAuthentication.mode] accepts the key of %s and does not forward it',
    async (_, vendor, call) => {
      await call(key)
      expect(fleet.vendors[vendor].calls).toHaveLength(1)
      expect(sent(vendor)).not.toContain(key)
      await expect(call('key-of-eve')).rejects.toMatchObject({ status: 401 })
      expect(fleet.vendors[vendor].calls).toHaveLength(1)
    },
  )

  it('accepts the same key in several places', async () => {
    const headers = { authorization: `Bearer ${key}`, 'x-api-key': key, 'api-key': key }
    expect(await ask('c', headers, `?key=${key}`)).toBe(200)
    expect(sent('c')).not.toContain(key)
  })

  it('refuses different keys, even if one is valid', async () => {
    const eve = 'key-of-eve'
    expect(await ask('c', { authorization: `Bearer ${key}`, 'x-api-key': eve })).toBe(401)
    expect(await ask('c', { authorization: `Bearer ${eve}`, 'x-api-key': key })).toBe(401)
    expect(await ask('c', { 'x-api-key': [key, 'key-of-bob'] })).toBe(401)
    expect(await ask('c', { 'x-api-key': key, 'x-goog-api-key': 'key-of-bob' })).toBe(401)
    expect(await ask('c', { 'x-api-key': key }, `?key=${eve}`)).toBe(401)
    expect(fleet.vendors.c.calls).toEqual([])
  })

  it('accepts a key in the query, as vendors B and D do', async () => {
    expect(await ask('c', {}, `?key=${key}&x=1`)).toBe(200)
    expect(fleet.lastCall('c')?.path).toBe('/v1/messages?x=1')
    expect(await ask('c', {}, `?%6bey=${encodeURIComponent(key)}`)).toBe(200)
    expect(await ask('c', {}, `?api-key=${key}`)).toBe(200)
    expect(await ask('c', {}, '?key=key-of-eve')).toBe(401)
    expect(await ask('c', {}, '?key=')).toBe(401)
    expect(sent('c')).not.toContain(key)
    expect(fleet.running.stdout).not.toContain(key)
  })

  it('[APIKeyAuthentication=Optional] checks a key in each of the places', async () => {
    expect(await ask('optional', {})).toBe(200)
    expect(await ask('optional', { 'x-api-key': key })).toBe(200)
    expect(await ask('optional', { 'x-api-key': 'key-of-eve' })).toBe(401)
  })

  it('accepts the key that browsers offer as a subprotocol of realtime sessions', async () => {
    const begin = (offered: string) =>
      new Promise<number>((resolve, reject) => {
        const headers = {
          connection: 'upgrade',
          upgrade: 'websocket',
          'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
          'sec-websocket-version': '13',
          'sec-websocket-protocol': `realtime, openai-insecure-api-key.${offered}`,
        }
        const path = '/talk/v1/realtime?model=m'
        const outgoing = request({ host: '127.0.0.1', port: port(), path, headers })
        const done = (status = 0) => {
          outgoing.destroy()
          resolve(status)
        }
        outgoing.once('upgrade', ({ statusCode }) => done(statusCode))
        outgoing.once('response', ({ statusCode }) => done(statusCode))
        outgoing.once('error', reject)
        outgoing.end()
      })
    expect(await begin('key-of-eve')).toBe(401)
    expect(sessions.sessions).toEqual([])
    expect(await begin(key)).toBe(101)
    expect(sessions.sessions[0]?.headers).toMatchObject({
      authorization: 'Bearer gateway-key',
      'sec-websocket-protocol': 'realtime',
    })
  })

  it('accepts keys in all places before routing if the request goes to such a route', async () => {
    expect(await ask('early', { 'x-api-key': key }, '', early)).toBe(200)
    expect(await ask('early', { 'x-api-key': 'key-of-eve' }, '', early)).toBe(401)
    expect(sent('c')).not.toContain(key)
    expect(await ask('plain', { 'x-api-key': key }, '', early)).toBe(401)
    expect(await ask('plain', { authorization: `Bearer ${key}` }, '', early)).toBe(200)
  })
})

describe('apiKeyAuthentication on other routes', () => {
  it('accepts only bearer tokens, and forwards the other places unchanged', async () => {
    expect(await ask('plain', { 'x-api-key': key })).toBe(401)
    expect(await ask('plain', {}, `?key=${key}`)).toBe(401)
    const headers = { authorization: `Bearer ${key}`, 'x-api-key': 'of-the-client' }
    expect(await ask('plain', headers, '?key=name')).toBe(200)
    expect(plain.received.at(-1)).toMatchObject({
      path: '/plain/v1/messages?key=name',
      headers: { 'x-api-key': 'of-the-client' },
    })
  })
})
