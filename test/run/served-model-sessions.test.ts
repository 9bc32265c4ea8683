/** Sessions that stay at one provider, and the health by which providers are ejected. */
import { beforeEach, describe, expect, it } from 'vitest'
import { aiBackend, policy, routeByPath, servedModel } from '../support/manifests.ts'
import { failsA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'
import { useServedModels } from './served-models-rig.ts'

const affinity = { sessionAffinity: { source: 'request.headers["x-session-id"]' } }
const session = (id: string) => ({ 'x-session-id': id })
const ids = Array.from({ length: 24 }, (_, at) => `session-${at}`)

const models = await useServedModels(({ a, b }) => {
  const at = (port: number) => ({ vendorA: {}, host: '127.0.0.1', port })
  const targets = ['one', 'two'].map((name) => ({ modelRef: { name }, model: 'm' }))
  const judged = (name: string, health: object) => [
    aiBackend(name, {
      groups: [
        { providers: [{ name: 'one', ...at(a.port), policies: { health } }] },
        { providers: [{ name: 'two', ...at(b.port) }] },
      ],
    }),
    routeByPath(name),
  ]
  const model = (name: string, port: number, more: object = {}) =>
    servedModel(name, {
      match: { model: `${name}-*` },
      provider: 'OpenAI',
      baseURL: `http://127.0.0.1:${port}/v1`,
      ...more,
    })
  return [
    model('one', a.port),
    model('two', b.port),
    servedModel('weighted', { virtualModel: { weighted: { targets }, ...affinity } }),
    servedModel('uneven', {
      virtualModel: {
        weighted: {
          targets: [
            { modelRef: { name: 'one' }, model: 'u', weight: 9 },
            { modelRef: { name: 'two' }, model: 'u', weight: 1 },
          ],
        },
        ...affinity,
      },
    }),
    servedModel('failing', { virtualModel: { failover: { targets }, ...affinity } }),
    aiBackend('grouped', {
      groups: [
        {
          providers: [
            { name: 'one', ...at(a.port) },
            { name: 'two', ...at(b.port) },
          ],
        },
      ],
      ...affinity,
    }),
    routeByPath('grouped'),
    ...judged('slow-to-eject', {
      unhealthyCondition: 'response.code == 418',
      eviction: { consecutiveFailures: 2, duration: '1s' },
    }),
    ...judged('never', { unhealthyCondition: 'response.code >= 500' }),
    ...judged('by-default', { eviction: { duration: '60s' } }),
    model('judged', a.port, {
      policies: {
        health: {
          unhealthyCondition: 'response.headers["x-state"] == "bad"',
          eviction: { duration: '60s' },
        },
      },
    }),
    servedModel('by-health', {
      virtualModel: {
        failover: {
          targets: [
            { modelRef: { name: 'judged' }, model: 'judged-1', priority: 0 },
            { modelRef: { name: 'two' }, model: 'm', priority: 1 },
          ],
        },
      },
    }),
    policy('of-model', 'AgentgatewayModel/two', { backend: { auth: { key: 'policy-key' } } }),
  ]
})
const { a, b } = models

beforeEach(() => {
  a.calls.length = 0
  b.calls.length = 0
})

/** Where each of many sessions goes. */
async function placesOf(model: string, path?: string): Promise<(string | null)[]> {
  const found: (string | null)[] = []
  for (const id of ids) found.push(await models.textOf(model, path, session(id)))
  return found
}

describe('sessions', () => {
  it.each([
    [
      '[VirtualModel.sessionAffinity] [ModelSessionAffinity.source] of a weighted model',
      'weighted',
      '',
    ],
    ['of a model with priorities', 'failing', ''],
    ['[AIBackend.sessionAffinity] of a group of providers', 'm', '/grouped'],
  ])('%s stay at one provider, and are spread over all', async (_, model, path) => {
    const before = await placesOf(model, path)
    expect(new Set(before)).toEqual(new Set(['from A', 'from B']))
    expect(await placesOf(model, path)).toEqual(before)
  })

  it('are spread by weight', async () => {
    const places = await placesOf('uneven')
    expect(places.filter((place) => place === 'from B').length).toBeLessThan(9)
  })

  it('move to another provider only while theirs has failed', async () => {
    const before = await placesOf('failing')
    const ofA = before.indexOf('from A')
    a.next.push(failsA(503, 'down'))
    expect(await models.textOf('failing', '', session(ids[ofA] ?? ''))).toBe('from B')
    await waitFor('the provider of the session', async () => {
      return (await models.textOf('failing', '', session(ids[ofA] ?? ''))) === 'from A'
    })
    expect(await placesOf('failing')).toEqual(before)
  })

  it('are chosen as usual without a value', async () => {
    const found = new Set<string | null>()
    for (let count = 0; count < 40; count++) found.add(await models.textOf('weighted'))
    expect(found.size).toBe(2)
  })
})

describe('[BackendHealth] the health of a provider', () => {
  it('[BackendHealth.unhealthyCondition] [HealthEviction.consecutiveFailures] [HealthEviction.duration] ejects after unhealthy responses in a row', async () => {
    const ask = () => models.textOf('m', '/slow-to-eject').catch(() => 'refused')
    a.next.push(failsA(418, 'no'))
    expect(await ask()).toBe('refused')
    expect(await ask()).toBe('from A')
    a.next.push(failsA(418, 'no'), failsA(418, 'no'))
    expect(await ask()).toBe('refused')
    expect(await ask()).toBe('refused')
    expect(await ask()).toBe('from B')
    await waitFor('the end of the ejection', async () => (await ask()) === 'from A')
  })

  // The documentation of agentgateway had it both ways (agentgateway/website pulls 866 and 884).
  it('ejects for 5xx without a condition, and never without settings for the ejection', async () => {
    a.next.push(failsA(500, 'down'))
    expect(await models.textOf('m', '/never')).toBe('from B')
    expect(await models.textOf('m', '/never')).toBe('from A')
    a.next.push(failsA(500, 'down'))
    expect(await models.textOf('m', '/by-default')).toBe('from B')
    expect(await models.textOf('m', '/by-default')).toBe('from B')
  })

  it('is judged for models by their own policies', async () => {
    a.next.push((call, response) => {
      response.setHeader('x-state', 'bad')
      a.answer(call, response)
    })
    expect(await models.textOf('by-health')).toBe('from A')
    expect(await models.textOf('by-health')).toBe('from B')
    // A GatewayPolicy can target a model, too.
    expect(b.calls.at(-1)?.headers.authorization).toBe('Bearer policy-key')
  })
})
