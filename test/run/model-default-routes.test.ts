/** Without a map of routes, the paths that SDKs use have the formats of SDKs. */
import { request as sendRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { policy, secret } from '../support/manifests.ts'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import { eventually } from '../support/wait-for.ts'

const key = { auth: { key: 'gateway-key' } }
const promptGuard = { request: [{ regex: { builtins: ['Ssn'] } }] }
const ssn = '123-45-6789'

const fleet = useFleet(({ at }) => [
  reached('a', { vendorA: {}, ...at('a') }, { ai: undefined, ...key }),
  reached('c', { vendorC: {}, ...at('c') }, { ai: { promptGuard }, ...key }),
  reached('guarded', { vendorA: {}, ...at('a') }, { ai: { promptGuard }, ...key }),
  reached('raw', { vendorA: {}, ...at('a') }, { ai: { routes: { '*': 'Passthrough' } }, ...key }),
  ...['keyed', 'raw-keyed'].map((name) =>
    reached(
      name,
      { vendorA: {}, ...at('a') },
      name === 'keyed' ? { ai: undefined, ...key } : { ai: { routes: { '*': 'Passthrough' } } },
    ),
  ),
  ['keyed', 'raw-keyed'].map((name) =>
    policy(name, `HTTPRoute/${name}`, {
      traffic: { apiKeyAuthentication: { secretRef: { name: 'clients' } } },
    }),
  ),
  [secret('clients', { ann: 'key-of-ann' })],
])
beforeEach(() => fleet.forget())

const openai = (name: string) =>
  new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
const anthropic = (name: string) =>
  new Anthropic({ baseURL: fleet.base(name), apiKey: 'client-key', maxRetries: 0 })
const user = { role: 'user' as const, content: `I am ${ssn}` }

async function send(method: string, path: string, body?: object) {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number | undefined
    allow: string | undefined
    body: string
  }>()
  sendRequest(`${fleet.base('')}${path}`, { method }, async (response) => {
    const { statusCode: status, headers } = response
    resolve({ status, allow: headers.allow, body: await text(response) })
  })
    .on('error', reject)
    .end(body && JSON.stringify(body))
  return promise
}

describe('without a map of routes', () => {
  it('SDKs of vendorA get chats, responses, embeddings and the list of models', async () => {
    const client = openai('guarded')
    const chat = await client.chat.completions.create({ model: 'm', messages: [user] })
    expect(chat.choices[0]?.message.content).toBe('Hello from A')
    expect(fleet.lastCall('a')).toMatchObject({ path: '/v1/chat/completions' })
    const response = await client.responses.create({ model: 'm', input: [user] })
    expect(response.output_text).toBe('Hello from A')
    expect(fleet.lastCall('a')).toMatchObject({ path: '/v1/responses' })
    await client.embeddings.create({ model: 'm', input: user.content })
    expect(fleet.lastCall('a')).toMatchObject({ path: '/v1/embeddings' })
    for (const { text } of fleet.vendors.a.calls) {
      expect(text).toContain('I am <SSN>')
      expect(text).not.toContain(ssn)
    }
    await client.models.list().catch(() => undefined)
    expect(fleet.lastCall('a')).toMatchObject({ method: 'GET', path: '/v1/models' })
  })

  it('SDKs of vendorC get messages and token counts, which are no paid generation', async () => {
    const request = { model: 'm', system: `You know ${ssn}`, messages: [user] }
    const message = await anthropic('c').messages.create({ ...request, max_tokens: 9 })
    expect(message.content).toMatchObject([{ type: 'text', text: 'Hello from C' }])
    const count = await anthropic('c').messages.countTokens(request)
    expect(count.input_tokens).toBe(42)
    const [first, second] = fleet.vendors.c.calls
    expect([first?.path, second?.path]).toEqual(['/v1/messages', '/v1/messages/count_tokens'])
    for (const { text } of fleet.vendors.c.calls) expect(text).not.toContain(ssn)
    expect((await anthropic('a').messages.create({ ...request, max_tokens: 9 })).type).toBe(
      'message',
    )
  })

  it('guards refuse a body of another format before anything is sent', async () => {
    for (const [path, body] of [
      ['/v1/responses', { model: 'm', input: 'x', messages: [user] }],
      ['/v1/messages', { model: 'm', max_tokens: 9, messages: [], input: ssn }],
      ['/v1/chat/completions', { model: 'm', messages: [], system: ssn }],
      ['/v1/embeddings', { model: 'm', input: 'x', messages: [user] }],
    ] as const) {
      const { status, body: error } = await send('POST', `guarded${path}`, body)
      expect([path, status]).toEqual([path, 400])
      expect(error).toContain('spec.policies.ai.routes')
    }
    expect(fleet.vendors.a.calls).toEqual([])
  })

  it('a method that a path does not have gets 405, and names the ones that it has', async () => {
    for (const path of ['/v1/messages', '/v1/responses', '/v1/chat/completions', '/']) {
      expect(await send('GET', `guarded${path}`)).toMatchObject({ status: 405, allow: 'POST' })
    }
    const { status, allow } = await send('POST', 'guarded/v1/models', {})
    expect([status, allow]).toEqual([405, 'GET, HEAD'])
    expect(fleet.vendors.a.calls).toEqual([])
  })

  it('a probe at the root is no failed call of a model', async () => {
    expect(await send('HEAD', 'guarded/?probe=1')).toMatchObject({ status: 405, body: '' })
    await send('POST', 'guarded/v1/chat/completions', { model: 'm', messages: [user] })
    const { running } = fleet
    await eventually(() => expect(running.stdout).toMatch(/method=HEAD.*\n/))
    const line = running.stdout.split('\n').find((one) => one.includes('method=HEAD'))
    expect(line).not.toMatch(/protocol=llm|error=/)
  })
})

describe('the form of errors is that of the API of the path', () => {
  it.each(['keyed', 'raw-keyed'])('for refusals of policies at %s', async (name) => {
    const errorAt = async (path: string) => {
      const { status, body } = await send('POST', `${name}${path}`, {})
      expect(status).toBe(401)
      return JSON.parse(body)
    }
    expect(await errorAt('/v1/messages')).toMatchObject({ type: 'error', error: {} })
    expect(await errorAt('/v1/responses')).toMatchObject({ error: { param: null } })
    expect(await errorAt('/v1beta/models/g:generateContent')).toMatchObject({
      error: { code: 401, status: 'UNAUTHENTICATED' },
    })
    expect(await errorAt('/v1/realtime')).toMatchObject({ error: { param: null } })
    expect(typeof (await errorAt('/model/m/converse')).message).toBe('string')
  })

  it('for paths that are not served', async () => {
    const { status, body } = await send('POST', 'a/v1beta/models/g:batchGenerateContent', {})
    expect(status).toBe(400)
    expect(JSON.parse(body)).toMatchObject({ error: { code: 400, status: 'INVALID_ARGUMENT' } })
    const batches = await send('POST', 'a/v1/messages/batches', {})
    expect(JSON.parse(batches.body)).toMatchObject({ type: 'error' })
  })
})
