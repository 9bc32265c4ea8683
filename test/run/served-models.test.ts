import { describe, expect, it } from 'vitest'
import { freePort } from '../support/gateway.ts'
import { httpRoute, policy, servedModel, service } from '../support/manifests.ts'
import { hello, urlOf, useServedModels } from './served-models-rig.ts'

const allModels = { group: 'sluice.dev', kind: 'AgentgatewayModel', name: '*' }
const ofRoute = (name: string, sectionName?: string) => ({
  parentRefs: [{ kind: 'HTTPRoute', name, ...(sectionName && { sectionName }) }],
})

const closedPort = await freePort()

const models = await useServedModels(({ a, b, c }) => [
  servedModel('gpt-5', {
    provider: 'OpenAI',
    baseURL: urlOf(a, '/v1'),
    policies: { auth: { key: 'key-of-a' } },
  }),
  servedModel('claude', {
    match: { model: 'claude-*' },
    provider: 'Anthropic',
    baseURL: urlOf(c),
    policies: { auth: { key: 'key-of-c' } },
  }),
  servedModel('longer', {
    match: { model: 'claude-opus-*' },
    provider: 'OpenAI',
    baseURL: urlOf(b, '/v1'),
  }),
  servedModel('hidden', {
    match: { model: 'hidden-model' },
    visibility: 'Internal',
    provider: 'OpenAI',
    baseURL: urlOf(b, '/v1'),
  }),
  servedModel('smart', {
    virtualModel: {
      conditional: {
        targets: [
          { modelRef: { name: 'hidden' }, when: 'request.headers["x-tier"] == "internal"' },
          {
            modelRef: { name: 'claude' },
            model: 'claude-sonnet-4-5',
            when: 'json(request.body).max_tokens > 100',
          },
          { modelRef: { name: 'gpt-5' } },
        ],
      },
    },
  }),
  servedModel('only-if', {
    virtualModel: { conditional: { targets: [{ modelRef: { name: 'gpt-5' }, when: 'false' }] } },
  }),
  servedModel('split', {
    virtualModel: {
      weighted: {
        targets: [
          { modelRef: { name: 'gpt-5' }, weight: 3 },
          { modelRef: { name: 'longer' }, model: 'claude-opus-4', weight: 1 },
        ],
      },
    },
  }),
  ...service('vllm', [a.port]),
  servedModel('in-cluster', {
    match: { model: 'in-cluster-*' },
    provider: 'Custom',
    custom: { backendRef: { name: 'vllm', port: 80 }, formats: [{ type: 'Completions' }] },
  }),
  ...service('down', [closedPort]),
  servedModel('on-dead-pods', {
    visibility: 'Internal',
    provider: 'Custom',
    custom: { backendRef: { name: 'down', port: 80 }, formats: [{ type: 'Completions' }] },
  }),
  servedModel('mostly-dead', {
    virtualModel: {
      weighted: {
        targets: [
          { modelRef: { name: 'on-dead-pods' }, model: 'any', weight: 10_000 },
          { modelRef: { name: 'in-cluster' }, model: 'in-cluster-1', weight: 1 },
        ],
      },
    },
  }),
  ...service('empty', []),
  servedModel('nobody-there', {
    visibility: 'Internal',
    provider: 'Custom',
    custom: { backendRef: { name: 'empty', port: 80 }, formats: [{ type: 'Completions' }] },
  }),
  servedModel('spare', {
    virtualModel: {
      failover: {
        targets: [
          { modelRef: { name: 'nobody-there' }, priority: 0 },
          { modelRef: { name: 'in-cluster' }, model: 'in-cluster-1', priority: 1 },
        ],
      },
    },
  }),
  httpRoute('team', {
    rules: [
      {
        name: 'first',
        matches: [{ path: { type: 'PathPrefix', value: '/team' } }],
        backendRefs: [allModels],
      },
      {
        name: 'second',
        matches: [{ path: { type: 'PathPrefix', value: '/other' } }],
        backendRefs: [allModels],
      },
    ],
  }),
  servedModel('of-team', {
    ...ofRoute('team', 'first'),
    provider: 'OpenAI',
    baseURL: urlOf(b, '/v1'),
  }),
  policy('names', 'HTTPRoute/team', { backend: { ai: { modelAliases: { fast: 'of-team' } } } }),
])

const { a, b, c } = models

describe('a model that a Gateway serves', () => {
  it('[ModelSpec.parentRefs] [ModelSpec.provider] [ModelSpec.baseURL] [ModelSpec.policies] gets the requests for its name, with its own credential', async () => {
    expect(await models.textOf('gpt-5')).toBe('from A')
    expect(models.sentTo(a)).toEqual(['gpt-5'])
    expect(a.calls[0]?.headers.authorization).toBe('Bearer key-of-a')
    expect(a.calls[0]?.path).toBe('/v1/chat/completions')
  })

  it('[ModelSpec.match] [ModelMatch.model] gets the names that its pattern matches, unless a longer pattern does', async () => {
    expect(await models.textOf('claude-sonnet-4-5')).toBe('from C')
    expect(models.sentTo(c)).toEqual(['claude-sonnet-4-5'])
    expect(c.calls[0]?.headers['x-api-key']).toBe('key-of-c')
    expect(await models.textOf('claude-opus-4')).toBe('from B')
  })

  it('[ModelSpec.visibility] answers 404 in the format of the client if the model is unknown or internal', async () => {
    for (const model of ['nobody', 'hidden-model', 'gpt-5-mini', 'Claude-x']) {
      const refused = models.textOf(model)
      await expect(refused).rejects.toMatchObject({
        status: 404,
        code: 'model_not_found',
        type: 'invalid_request_error',
        message: expect.stringContaining('Model not found'),
      })
    }
    const refused = models
      .anthropic()
      .messages.create({ model: 'nobody', max_tokens: 9, messages: hello })
    await expect(refused).rejects.toMatchObject({
      status: 404,
      error: { type: 'error', error: { type: 'not_found_error', message: 'Model not found' } },
    })
  })

  it('[CustomModelConfig.backendRef] [CustomModelConfig.formats] [ModelSpec.custom] is served by the Pods of a Service', async () => {
    expect(await models.textOf('in-cluster-1')).toBe('from A')
    expect(a.calls[0]?.headers.host).toMatch(/^vllm\.default\.svc/)
    // A Service without Pods is passed over.
    expect(await models.textOf('spare')).toBe('from A')
    expect(models.sentTo(a)).toEqual(['in-cluster-1', 'in-cluster-1'])
  })

  it('refuses a request without a model, and paths whose model it cannot read', async () => {
    const post = (path: string, body: object) =>
      fetch(`${models.base}${path}`, { method: 'POST', body: JSON.stringify(body) })
    const refused = await post('/v1/chat/completions', { messages: hello })
    expect(refused.status).toBe(400)
    expect(await refused.text()).toContain('model not specified')
    expect((await post('/v1/files', { model: 'gpt-5' })).status).toBe(400)
    expect((await fetch(`${models.base}/elsewhere`)).status).toBe(404)
    expect(a.calls).toEqual([])
  })
})

describe('a virtual model', () => {
  it('[VirtualModel.conditional] [ConditionalModelTarget.when] [ConditionalModelTarget.modelRef] [ConditionalModelTarget.model] goes to the first target whose condition is true', async () => {
    expect(await models.textOf('smart')).toBe('from A')
    expect(models.sentTo(a)).toEqual(['gpt-5'])
    expect(await models.textOf('smart', '', { 'x-tier': 'internal' })).toBe('from B')
    expect(models.sentTo(b)).toEqual(['hidden-model'])
    const answer = await models
      .openai()
      .chat.completions.create({ model: 'smart', messages: hello, max_tokens: 200 })
    expect(models.sentTo(c)).toEqual(['claude-sonnet-4-5'])
    // Clients return thinking only to the model that they have asked.
    expect(answer.model).toBe('smart')
  })

  it('fails with 503 if no condition is true', async () => {
    await expect(models.textOf('only-if')).rejects.toMatchObject({ status: 503 })
  })

  it('[VirtualModel.weighted] [WeightedVirtualModel.targets] [WeightedModelTarget.weight] shares requests by weight', async () => {
    for (let count = 0; count < 80; count++) await models.textOf('split')
    // The probability of a count outside of this range is below 1 in 10,000.
    expect(b.calls.length).toBeGreaterThan(5)
    expect(b.calls.length).toBeLessThan(38)
    expect(a.calls.length + b.calls.length).toBe(80)
  })

  it('[WeightedVirtualModel.targets] shares requests among the other targets while all Pods of one are ejected', async () => {
    const texts: (string | null)[] = []
    for (let count = 0; count < 20; count++) {
      texts.push(await models.textOf('mostly-dead').catch(() => null))
    }
    // Each worker learns by a failure of its own that the Pods are gone.
    expect(texts.filter((text) => text === 'from A').length).toBeGreaterThan(10)
  })
})

describe('a rule of an HTTPRoute with the backend AgentgatewayModel *', () => {
  it('serves the models that refer to it, and no others', async () => {
    expect(await models.textOf('of-team', '/team')).toBe('from B')
    await expect(models.textOf('gpt-5', '/team')).rejects.toMatchObject({ status: 404 })
    await expect(models.textOf('of-team', '/other')).rejects.toMatchObject({ status: 404 })
    await expect(models.textOf('of-team')).rejects.toMatchObject({ status: 404 })
  })

  it('applies the aliases of its policies before it looks for a model', async () => {
    expect(await models.textOf('fast', '/team')).toBe('from B')
    expect(models.sentTo(b)).toEqual(['of-team'])
  })
})
