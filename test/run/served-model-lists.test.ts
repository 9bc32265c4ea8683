/** The list of models in the formats of the SDKs, and what keys may see and use. */
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { httpRoute, policy, secret, servedModel } from '../support/manifests.ts'
import { hello, urlOf, useServedModels } from './served-models-rig.ts'

const limited = (key: string, ...allowedModels: string[]) => JSON.stringify({ key, allowedModels })

const models = await useServedModels(({ a, b, c }) => [
  servedModel('gpt-5', { provider: 'OpenAI', baseURL: urlOf(a, '/v1') }),
  servedModel('claude', {
    match: { model: 'claude-sonnet-4-5' },
    provider: 'Anthropic',
    baseURL: urlOf(c),
  }),
  servedModel('wild', { match: { model: 'open-*' }, provider: 'OpenAI', baseURL: urlOf(b, '/v1') }),
  servedModel('inner', {
    match: { model: 'inner' },
    visibility: 'Internal',
    provider: 'OpenAI',
    baseURL: urlOf(b, '/v1'),
  }),
  servedModel('smart', {
    virtualModel: {
      failover: {
        targets: [
          { modelRef: { name: 'claude' }, priority: 0 },
          { modelRef: { name: 'inner' }, priority: 1 },
        ],
      },
    },
  }),
  secret('keys', {
    all: 'key-all',
    smart: limited('key-smart', 'smart'),
    sent: limited('key-sent', 'claude-sonnet-4-5'),
    open: limited('key-open', 'open-weights', 'gpt-*'),
  }),
  policy('keys', 'Gateway/edge', {
    traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
  }),
  httpRoute('below', {
    rules: [
      {
        matches: [{ path: { type: 'PathPrefix', value: '/below' } }],
        backendRefs: [{ group: 'sluice.dev', kind: 'AgentgatewayModel', name: '*' }],
      },
    ],
  }),
])
const { a, b, c, base } = models
const openai = (apiKey: string, path = '') =>
  new OpenAI({ baseURL: `${base}${path}/v1`, apiKey, maxRetries: 0 })
const anthropic = (apiKey: string) => new Anthropic({ baseURL: base, apiKey, maxRetries: 0 })
const gemini = (apiKey: string) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: base } })

const idsOf = async (apiKey: string, path?: string) =>
  (await openai(apiKey, path).models.list()).data.map(({ id }) => id)

describe('[RouteType=Models] the list of models', () => {
  it('has the public models with exact names, with what the catalog knows', async () => {
    expect(await idsOf('key-all')).toEqual(['claude-sonnet-4-5', 'gpt-5', 'smart'])
    const { data } = await openai('key-all').models.list()
    expect(data.find(({ id }) => id === 'gpt-5')).toMatchObject({
      object: 'model',
      owned_by: 'openai',
      context_window: expect.any(Number),
      max_output_tokens: 128000,
      input_modalities: expect.arrayContaining(['text', 'image']),
      capabilities: { reasoning: true },
    })
    // A virtual model has the properties of its first target.
    expect(data.find(({ id }) => id === 'smart')).toMatchObject({ owned_by: 'anthropic' })
    expect(a.calls).toEqual([])
  })

  it('has the format of the SDK that asks', async () => {
    const page = await anthropic('key-all').models.list()
    expect(page.data.map(({ id }) => id)).toEqual(['claude-sonnet-4-5', 'gpt-5', 'smart'])
    expect(page.data[0]).toMatchObject({
      type: 'model',
      max_input_tokens: 200000,
      capabilities: { thinking: { supported: true } },
    })
    expect(page.data[1]).toMatchObject({ capabilities: { image_input: { supported: true } } })
    const found: (string | undefined)[] = []
    const pager = await gemini('key-all').models.list({ config: { queryBase: true } })
    for await (const { name } of pager) found.push(name)
    const names = ['models/claude-sonnet-4-5', 'models/gpt-5', 'models/smart']
    expect(found).toEqual(names)
    const headers = { 'x-goog-api-key': 'key-all' }
    const older = await fetch(`${base}/v1beta/models`, { headers })
    expect(await older.json()).toMatchObject({ models: names.map((name) => ({ name })) })
  })

  it('has an entry for each model', async () => {
    expect(await openai('key-all').models.retrieve('gpt-5')).toMatchObject({ id: 'gpt-5' })
    expect(await anthropic('key-all').models.retrieve('smart')).toMatchObject({ type: 'model' })
    const one = await gemini('key-all').models.get({ model: 'gpt-5' })
    expect(one).toMatchObject({ name: 'models/gpt-5', inputTokenLimit: expect.any(Number) })
    for (const id of ['inner', 'nobody', 'open-*']) {
      await expect(openai('key-all').models.retrieve(id)).rejects.toMatchObject({
        status: 404,
        code: 'model_not_found',
      })
    }
    await expect(anthropic('key-all').models.retrieve('nobody')).rejects.toMatchObject({
      status: 404,
      error: { error: { type: 'not_found_error' } },
    })
  })

  it('has only what the key may use', async () => {
    expect(await idsOf('key-smart')).toEqual(['smart'])
    expect(await idsOf('key-sent')).toEqual(['claude-sonnet-4-5', 'smart'])
    expect(await idsOf('key-open')).toEqual(['gpt-5', 'open-weights'])
    await expect(openai('key-open').models.retrieve('smart')).rejects.toMatchObject({ status: 404 })
    expect(await idsOf('key-all', '/below')).toEqual([])
  })

  it('refuses other methods, and a client without a key', async () => {
    const posted = await fetch(`${base}/v1/models`, {
      method: 'POST',
      headers: { authorization: 'Bearer key-all' },
    })
    expect(posted.status).toBe(405)
    expect((await fetch(`${base}/v1/models`)).status).toBe(401)
  })
})

describe('a key that is limited to certain models', () => {
  const ask = async (key: string, model: string) => {
    const answer = await openai(key).chat.completions.create({ model, messages: hello })
    return answer.choices[0]?.message.content
  }

  it('may use a model by the name that it has, whatever the provider gets', async () => {
    expect(await ask('key-smart', 'smart')).toBe('from C')
    expect(models.sentTo(c)).toEqual(['claude-sonnet-4-5'])
    expect(await ask('key-sent', 'smart')).toBe('from C')
    expect(await ask('key-open', 'open-weights')).toBe('from B')
  })

  it('may not reach another model by any name', async () => {
    const cases = [
      ['key-smart', 'claude-sonnet-4-5'],
      ['key-smart', 'gpt-5'],
      ['key-sent', 'gpt-5'],
      ['key-open', 'open-source'],
      ['key-open', 'smart'],
      // An unknown or internal name is refused as a known one is.
      ['key-open', 'inner'],
      ['key-open', 'nobody'],
    ] as const
    for (const [key, model] of cases) {
      await expect(ask(key, model), `${key} ${model}`).rejects.toMatchObject({ status: 403 })
    }
    expect([...a.calls, ...b.calls, ...c.calls]).toEqual([])
  })

  it('may not be sent to a target that only another name leads to', async () => {
    // The key has the first target alone, so that a failure does not lead to the second, and is told.
    c.next.push((_, response) => {
      response.writeHead(503).end('{}')
    })
    await expect(ask('key-sent', 'smart')).rejects.toMatchObject({ status: 503 })
    expect(b.calls).toEqual([])
  })
})
