/** API keys that are limited to models. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { policy, secret } from '../support/manifests.ts'
import { reached, reachedBackend, useFleet } from '../support/vendors/fleet.ts'
import { failsA } from '../support/vendors/vendor-a.ts'

const messages = [{ role: 'user' as const, content: 'Hello' }]
const fleet = useFleet(({ at }) => {
  const limited = (...allowedModels: string[]) => JSON.stringify({ key: 'k', allowedModels })
  const keyed = (name: string, ...models: string[]) => [
    secret(`key-of-${name}`, { one: limited(...models) }),
    policy(`key-of-${name}`, `HTTPRoute/${name}`, {
      traffic: { apiKeyAuthentication: { secretRef: { name: `key-of-${name}` } } },
    }),
  ]
  const routes = {
    '/v1/chat/completions': 'Completions',
    '/v1/messages': 'Messages',
    '/v1/responses': 'Responses',
    '/v1/models': 'Models',
    '/v1/files': 'Passthrough',
  }
  const pinned = (name: string, model: string) => ({ name, vendorA: { model }, ...at('a') })
  const ai = { routes, modelAliases: { fast: 'gpt-4o-mini', best: 'gpt-5.1' } }
  return [
    reached('a', { vendorA: {}, ...at('a') }, { ai }),
    keyed('a', 'gpt-4o*', 'best'),
    reached('none', { vendorA: {}, ...at('a') }, { ai }),
    keyed('none'),
    reached('pinned', { vendorA: { model: 'gpt-5.1' }, ...at('a') }, { ai }),
    keyed('pinned', 'gpt-4o'),
    reached('c', { vendorC: {}, ...at('c') }, { ai }),
    keyed('c', 'claude-sonnet-4-0'),
    ...['two', 'behind'].flatMap((name) => {
      const all = [pinned('small', 'gpt-4o'), pinned('big', 'gpt-5.1')]
      const groups = (name === 'two' ? all : all.toReversed()).map((one) => ({ providers: [one] }))
      return [reachedBackend(name, { groups }, { ai }), keyed(name, 'gpt-4o')]
    }),
  ]
})

const openai = (name: string) =>
  new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'k', maxRetries: 0 })
const chat = async (name: string, model: string) => {
  fleet.forget()
  return openai(name)
    .chat.completions.create({ model, messages })
    .then(() => fleet.lastCall('a')?.body.model)
    .catch((error: { status: number; message: string }) => `${error.status} ${error.message}`)
}

describe('models that an API key may use', () => {
  it('lets requests for allowed models pass, by their own name or by an allowed alias', async () => {
    expect(await chat('a', 'gpt-4o')).toBe('gpt-4o')
    expect(await chat('a', 'gpt-4o-mini')).toBe('gpt-4o-mini')
    expect(await chat('a', 'fast')).toBe('gpt-4o-mini')
    expect(await chat('a', 'best')).toBe('gpt-5.1')
    expect(await chat('a', 'gpt-4o@preset/gpt-4o-team')).toBe('gpt-4o@preset/gpt-4o-team')
  })

  it.each([
    ['a', 'gpt-5.1'],
    ['a', 'GPT-4O'],
    ['a', 'gpt-4o@preset/any'],
    ['a', 'gpt-5@preset/gpt-4o'],
    ['none', 'gpt-4o'],
    ['pinned', 'gpt-4o'],
    ['none', 'fast'],
  ])('refuses on route %s model %s with 403, and sends nothing', async (name, model) => {
    expect(await chat(name, model)).toMatch(/^403 .*the API key may not use the model/)
    expect(fleet.vendors.a.calls).toEqual([])
  })

  it('refuses in the format of the client', async () => {
    const client = new Anthropic({ baseURL: fleet.base('c'), apiKey: 'k', maxRetries: 0 })
    const ask = (model: string) => client.messages.create({ model, max_tokens: 5, messages })
    await ask('claude-sonnet-4-0')
    await expect(ask('claude-opus-4-5')).rejects.toMatchObject({
      status: 403,
      error: { type: 'error', error: { type: 'permission_error' } },
    })
  })

  it('lists the models that the key may use', async () => {
    const idsOf = async (name: string) =>
      (await openai(name).models.list()).data.map(({ id }) => id)
    expect((await idsOf('a')).toSorted()).toEqual(['best', 'fast'])
    expect(await idsOf('none')).toEqual([])
    expect(await idsOf('c')).toEqual(['claude-sonnet-4-0'])
    expect(await idsOf('pinned')).toEqual([])
  })

  it.each([
    ['models', '/a/v1/chat/completions', { models: ['gpt-5.1'], route: 'fallback' }, 'models[0]'],
    ['models', '/a/v1/responses', { models: ['gpt-4o', 'gpt-5.1'] }, 'models[1]'],
    ['models', '/c/v1/messages', { models: ['gpt-5.1'] }, 'models[0]'],
    [
      'fallbacks',
      '/c/v1/messages',
      { fallbacks: [{ model: 'claude-opus-4-7' }] },
      'fallbacks[0].model',
    ],
    ['fallbacks', '/c/v1/messages', { fallbacks: 'default' }, 'fallbacks'],
    [
      'fallbacks',
      '/a/v1/chat/completions',
      { fallbacks: [{ 'gpt-4o': ['gpt-5.1'] }] },
      'fallbacks[0].gpt-4o[0]',
    ],
    [
      'tools',
      '/c/v1/messages',
      { tools: [{ type: 'advisor_20260301', model: 'claude-opus-4-7' }] },
      'tools[0].model',
    ],
    [
      'tools',
      '/a/v1/responses',
      { tools: [{ type: 'image_generation', model: 'gpt-image-1' }] },
      'tools[0].model',
    ],
    [
      'tools',
      '/a/v1/responses',
      { tools: [{ type: 'image_generation', svg: { model: 'gpt-5.1' } }] },
      'tools[0].svg.model',
    ],
    [
      'tools',
      '/a/v1/chat/completions',
      { tools: [{ type: 'openrouter:fusion', parameters: { model: 'gpt-5.1' } }] },
      'tools[0].parameters.model',
    ],
    [
      'brought tools',
      '/a/v1/responses',
      {
        input: [
          { type: 'additional_tools', tools: [{ type: 'image_generation', model: 'gpt-image-1' }] },
        ],
      },
      'input[0].tools[0].model',
    ],
    [
      'plugins',
      '/a/v1/chat/completions',
      { plugins: [{ id: 'x', model: 'gpt-5.1' }] },
      'plugins[0].model',
    ],
    [
      'moderation',
      '/a/v1/chat/completions',
      { moderation: { model: 'omni-moderation-latest' } },
      'moderation.model',
    ],
    [
      'data sources',
      '/a/v1/chat/completions',
      { data_sources: [{ parameters: { embedding_dependency: { deployment_name: 'big' } } }] },
      'data_sources[0].parameters.embedding_dependency.deployment_name',
    ],
    [
      'models of a router',
      '/a/v1/chat/completions',
      { compound_custom: { models: { answering_model: 'gpt-5.1' } } },
      'compound_custom.models.answering_model',
    ],
    ['a preset', '/a/v1/chat/completions', { preset: 'big' }, 'preset'],
    ['another case', '/a/v1/chat/completions', { Models: ['gpt-5.1'] }, 'Models[0]'],
    ['no names', '/a/v1/chat/completions', { models: [7] }, 'models[0]'],
  ])('refuses %s that name another model: %s %j', async (_what, path, more, member) => {
    fleet.forget()
    const model = path.startsWith('/c') ? 'claude-sonnet-4-0' : 'gpt-4o'
    const sent = await fetch(new URL(path, fleet.base('')), {
      method: 'POST',
      headers: { authorization: 'Bearer k', 'content-type': 'application/json' },
      body: JSON.stringify({ model, max_tokens: 5, messages, input: 'x', ...more }),
    })
    expect([sent.status, await sent.text()]).toEqual([
      403,
      expect.stringContaining(` in ${member}`),
    ])
    expect(fleet.vendors.a.calls.concat(fleet.vendors.c.calls)).toEqual([])
  })

  it('lets members pass that name allowed models, and schemas of tools that have such members', async () => {
    fleet.forget()
    const parameters = { type: 'object', properties: { model: { type: 'string', enum: ['x'] } } }
    const sent = await openai('a').chat.completions.create({
      model: 'gpt-4o',
      messages,
      tools: [{ type: 'function', function: { name: 'model', parameters } }],
      metadata: { model: 'mine' },
      ...{ models: ['gpt-4o-mini'] },
    })
    expect(sent.choices).toHaveLength(1)
    expect(fleet.lastCall('a')?.body.models).toEqual(['gpt-4o-mini'])
  })

  it('sends no repeated member of which only one was read', async () => {
    fleet.forget()
    const tool = '{"type":"x","model":"gpt-5.1","model":"gpt-4o"}'
    await fetch(`${fleet.base('a')}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer k' },
      body: `{"model":"gpt-4o","messages":[{"role":"user","content":"x"}],"plugins":[${tool}]}`,
    })
    expect(fleet.lastCall('a')?.text).not.toContain('gpt-5.1')
  })

  it('keeps the failure of an allowed model if the key may not use the next one', async () => {
    fleet.vendors.a.next.push(failsA(503, 'overloaded'))
    const failed = openai('two').chat.completions.create({ model: 'gpt-4o', messages })
    await expect(failed).rejects.toMatchObject({
      status: 503,
      message: expect.stringContaining('overloaded'),
    })
    // The failed provider is skipped for a while, but it is the only one with an allowed model.
    expect(await chat('two', 'gpt-4o')).toBe('gpt-4o')
  })

  it('passes over a provider whose model the key may not use', async () => {
    expect(await chat('behind', 'gpt-4o')).toBe('gpt-4o')
  })

  it('names the model of the backend if the key may use the one that the client names', async () => {
    expect(await chat('pinned', 'gpt-4o')).toBe(
      '403 403 the API key may not use the model gpt-5.1; it may use gpt-4o',
    )
  })

  it('refuses paths whose model the gateway does not read', async () => {
    const sent = await fetch(`${fleet.base('a')}/v1/files`, {
      headers: { authorization: 'Bearer k' },
    })
    expect([sent.status, await sent.text()]).toEqual([
      403,
      expect.stringContaining('limited to certain models'),
    ])
  })
})
