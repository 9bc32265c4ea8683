/** Refusals of policies on routes to models: stock SDKs read them like errors of their vendor. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
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

const issuer = 'https://issuer.example.com'
const traffic: Readonly<Record<string, object>> = {
  keys: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
  basic: { basicAuthentication: { users: ['ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g='], realm: 'ai' } },
  jwt: { jwtAuthentication: { providers: [{ issuer, jwks: { inline: '{"keys":[]}' } }] } },
  rules: { authorization: { policy: { matchExpressions: ['false'] } } },
  external: { extAuth: { backendRef: toBackend('nobody'), grpc: {} } },
  limited: { rateLimit: { local: [{ requests: 1, unit: 'Hours' }] } },
  brief: { rateLimit: { local: [{ requests: 1, unit: 'Minutes' }] } },
  raw: { authorization: { policy: { matchExpressions: ['false'] } } },
}

const nobody = await freePort()
const early = await freePort()
const fleet = useFleet(({ at }) => [
  [secret('keys', { ann: 'key-of-ann' }), staticBackend('nobody', nobody)],
  ...Object.keys(traffic).map((name) =>
    reached(
      name,
      { vendorA: {}, ...at('a') },
      name === 'raw' ? { ai: { routes: { '*': 'Passthrough' } } } : {},
    ),
  ),
  Object.entries(traffic).map(([name, one]) => policy(name, `HTTPRoute/${name}`, { traffic: one })),
  [
    gateway(early, {}, 'early'),
    httpRoute('early', {
      parentRefs: [{ name: 'early' }],
      rules: [{ backendRefs: [toBackend('keys')] }],
    }),
    policy('early', 'Gateway/early', { traffic: { phase: 'PreRouting', ...traffic.keys } }),
  ],
])

beforeAll(async () => {
  await ask('limited', '/v1/messages')
})

const messages = [{ role: 'user' as const, content: 'Hello' }]
const port = () => Number(new URL(fleet.base('keys')).port)
const ask = (name: string, path: string, to = port()) =>
  send(to, {
    method: 'POST',
    path: `${to === early ? '' : `/${name}`}${path}`,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', max_tokens: 5, messages }),
  })

const asOpenAi = (message: string) => ({
  error: { message, type: expect.any(String), param: null, code: null },
})

const asAnthropic = (message: string) => ({
  type: 'error',
  error: { type: expect.any(String), message },
})

describe('a policy that refuses a request to a model', () => {
  it.each([
    ['keys', 401, 'api key authentication failure: no API Key found'],
    ['basic', 401, expect.any(String)],
    ['jwt', 401, expect.any(String)],
    ['rules', 403, 'authorization failed'],
    ['external', 403, 'external authorization failed'],
  ])('answers in the format of the client: %s', async (name, status, message) => {
    for (const path of ['/v1/chat/completions', '/v1/responses', '/v1/embeddings']) {
      const { status: got, headers, body } = await ask(name, path)
      expect({ got, type: headers['content-type'] }).toEqual({
        got: status,
        type: 'application/json',
      })
      expect(JSON.parse(body)).toEqual(asOpenAi(message))
    }
    const { status: got, body } = await ask(name, '/v1/messages')
    expect(got).toBe(status)
    expect(JSON.parse(body)).toEqual(asAnthropic(message))
  })

  it('says which limit is used up and when it frees, and that the client must not retry', async () => {
    const message = expect.stringMatching(
      /^rate limit exceeded: 1 requests per hour are used up; the next request is allowed in (1 h|\d+ min( \d+ s)?)$/,
    )
    const quota = 'insufficient_quota'
    for (const path of ['/v1/chat/completions', '/v1/responses', '/v1/embeddings']) {
      const { status, headers, body } = await ask('limited', path)
      expect([status, headers['x-should-retry']]).toEqual([429, 'false'])
      expect(JSON.parse(body)).toEqual({
        error: { message, type: quota, param: null, code: quota },
      })
    }
    const { headers, body } = await ask('limited', '/v1/messages')
    expect(headers['x-should-retry']).toBe('false')
    const type = 'rate_limit_error'
    expect(JSON.parse(body)).toEqual({ type: 'error', error: { type, message } })
  })

  it('has the code rate_limit_exceeded if the limit frees soon', async () => {
    await ask('brief', '/v1/messages')
    const { headers, body } = await ask('brief', '/v1/chat/completions')
    expect(headers['x-should-retry']).toBe('false')
    expect(JSON.parse(body).error).toMatchObject({
      type: 'rate_limit_error',
      code: 'rate_limit_exceeded',
    })
  })

  it('keeps the headers of the refusal', async () => {
    const challenge = async (name: string) =>
      (await ask(name, '/v1/messages')).headers['www-authenticate']
    expect(await challenge('keys')).toBe('Bearer realm="Restricted"')
    expect(await challenge('jwt')).toBe('Bearer realm="Restricted"')
    const basic = await ask('basic', '/v1/messages')
    expect(basic.headers['www-authenticate']).toBe('Basic realm="ai"')
    const limited = await ask('limited', '/v1/messages')
    expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0)
    expect(limited.headers['x-ratelimit-limit']).toBe('1')
  })

  it('answers in the format of the client before routing as well', async () => {
    const { status, body } = await ask('early', '/v1/messages', early)
    expect({ status, body: JSON.parse(body) }).toEqual({
      status: 401,
      body: asAnthropic('api key authentication failure: no API Key found'),
    })
  })

  it('is understood by official SDKs', async () => {
    const options = { apiKey: 'key-of-eve', maxRetries: 0 }
    const openai = new OpenAI({ ...options, baseURL: `${fleet.base('keys')}/v1` })
    await expect(openai.chat.completions.create({ model: 'm', messages })).rejects.toMatchObject({
      status: 401,
      error: { message: 'api key authentication failure: invalid credentials' },
    })
    const anthropic = new Anthropic({ ...options, baseURL: fleet.base('keys') })
    await expect(
      anthropic.messages.create({ model: 'm', max_tokens: 5, messages }),
    ).rejects.toMatchObject({
      status: 401,
      error: { type: 'error', error: { type: 'authentication_error' } },
    })
  })

  it('answers in plain text if no API has the path of a request that passes unread', async () => {
    const known = await ask('raw', '/v1/messages')
    expect(JSON.parse(known.body)).toMatchObject({ type: 'error' })
    const { status, headers, body } = await ask('raw', '/other')
    expect({ status, type: headers['content-type'], body }).toEqual({
      status: 403,
      type: 'text/plain',
      body: 'authorization failed',
    })
  })
})
