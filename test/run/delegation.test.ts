/** Rules of HTTPRoutes that hand requests to other HTTPRoutes. */
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { allConditions, freePort, sluice } from '../support/gateway.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'
import type { ReceivedRequest } from '../support/upstream.ts'

const host = 'shop.example.com'
const group = 'gateway.networking.k8s.io'
const main = useUpstream('main')
const team = useUpstream('team')
const port = await freePort()

const under = (value: string, type = 'PathPrefix') => ({ path: { type, value } })
const toRoute = (name: string, namespace?: string) => ({
  group,
  kind: 'HTTPRoute',
  name,
  ...(namespace && { namespace }),
})
const fromParent = (name: string) => ({ ...toRoute(name, 'default') })
const setHeader = (name: string, value: string) => ({
  type: 'RequestHeaderModifier',
  requestHeaderModifier: { set: [{ name, value }] },
})
const addHeader = (name: string, value: string) => ({
  traffic: { transformation: { request: { set: [{ name, value: `"${value}"` }] } } },
})
const requires = (expression: string) => ({
  traffic: { authorization: { action: 'Require', policy: { matchExpressions: [expression] } } },
})
const inTeam = (object: ReturnType<typeof httpRoute>, more: object = {}) => ({
  ...object,
  metadata: { ...(object.metadata as object), namespace: 'team', ...more },
})

const running = useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('main', main.port),
    inTeam(staticBackend('team', team.port)),
    httpRoute('site', {
      hostnames: [host],
      rules: [
        {
          name: 'cart',
          matches: [{ ...under('/cart'), headers: [{ name: 'x-shop', value: 'yes' }] }],
          filters: [setHeader('x-from', 'site')],
          backendRefs: [toRoute('cart', 'team')],
        },
        { matches: [under('/missing')], backendRefs: [toRoute('missing', 'team')] },
        { matches: [under('/blue')], backendRefs: [toRoute('team=blue', 'team')] },
        { matches: [under('/foreign')], backendRefs: [toRoute('foreign', 'team')] },
        { matches: [under('/granted')], backendRefs: [toRoute('granted', 'team')] },
        { matches: [under('/loop')], backendRefs: [toRoute('loop')] },
        { matches: [under('/half')], backendRefs: [toRoute('half'), toRoute('missing')] },
        {
          matches: [under('/mixed')],
          backendRefs: [toRoute('granted', 'team'), toBackend('main')],
        },
        { matches: [under('/exact', 'Exact')], backendRefs: [toRoute('granted', 'team')] },
        { matches: [under('/')], backendRefs: [toBackend('main')] },
      ],
    }),
    inTeam(
      httpRoute('cart', {
        parentRefs: [fromParent('site')],
        rules: [
          {
            name: 'items',
            matches: [under('/cart/items'), under('/elsewhere')],
            filters: [setHeader('x-rule', 'items')],
            backendRefs: [toBackend('team')],
          },
          { matches: [under('/cart/deep')], backendRefs: [toRoute('deep')] },
        ],
      }),
    ),
    inTeam(
      httpRoute('deep', {
        parentRefs: [],
        rules: [{ matches: [under('/')], backendRefs: [toBackend('team')] }],
      }),
    ),
    inTeam(
      httpRoute('blue', {
        parentRefs: [fromParent('site')],
        hostnames: ['*.example.com'],
        rules: [{ matches: [under('/blue/one')], backendRefs: [toBackend('team')] }],
      }),
      { labels: { team: 'blue' } },
    ),
    inTeam(
      httpRoute('elsewhere', {
        parentRefs: [fromParent('site')],
        hostnames: ['other.example.com'],
        rules: [{ matches: [under('/blue/two')], backendRefs: [toBackend('team')] }],
      }),
      { labels: { team: 'blue' } },
    ),
    inTeam(
      httpRoute('foreign', {
        parentRefs: [],
        rules: [{ matches: [under('/foreign')], backendRefs: [toBackend('team')] }],
      }),
    ),
    inTeam(
      httpRoute('granted', {
        parentRefs: [],
        rules: [{ matches: [under('/')], backendRefs: [toBackend('team')] }],
      }),
    ),
    {
      apiVersion: `${group}/v1beta1`,
      kind: 'ReferenceGrant',
      metadata: { name: 'site', namespace: 'team' },
      spec: {
        from: [{ group, kind: 'HTTPRoute', namespace: 'default' }],
        to: [{ group, kind: 'HTTPRoute', name: 'granted' }],
      },
    },
    httpRoute('loop', {
      parentRefs: [fromParent('site')],
      rules: [{ matches: [under('/loop')], backendRefs: [toRoute('site')] }],
    }),
    httpRoute('half', {
      parentRefs: [fromParent('site')],
      rules: [{ matches: [under('/half/one')], backendRefs: [toBackend('main')] }],
    }),
    policy('site', 'HTTPRoute/site#cart', addHeader('x-level', 'site')),
    policy('staff', 'HTTPRoute/site#cart', requires('"x-staff" in request.headers')),
    inTeam(policy('items', 'HTTPRoute/cart#items', addHeader('x-level', 'items'))),
    inTeam(policy('paid', 'HTTPRoute/cart#items', requires('"x-paid" in request.headers'))),
  ],
}))

const noHeaders: ReceivedRequest['headers'] = {}
const ask = async (path: string, headers: Readonly<Record<string, string>> = {}, name = host) => {
  const { status, body } = await running.send(port, { host: name, path, headers })
  if (status !== 200) return { status, from: undefined, seen: noHeaders }
  const { upstream, headers: seen } = JSON.parse(body) as ReceivedRequest
  return { status, from: upstream, seen }
}
const whole = { 'x-shop': 'yes', 'x-staff': 'yes', 'x-paid': 'yes' }

describe('requests that a rule delegates', () => {
  it('are served by the rules of the other route, if the conditions of both hold', async () => {
    const { from, seen } = await ask('/cart/items/1', whole)
    expect(from).toBe('team')
    expect(seen).toMatchObject({ 'x-from': 'site', 'x-rule': 'items' })
    // Without the header of the parent, or below no rule of the child, the last rule of the parent answers.
    for (const [path, headers] of [
      ['/cart/items', { ...whole, 'x-shop': 'no' }],
      ['/cart/other', whole],
      ['/cart/itemsets', whole],
      ['/elsewhere', whole],
    ] as const) {
      expect([path, (await ask(path, headers)).from]).toEqual([path, 'main'])
    }
  })

  it('meet the protections of all routes, and otherwise the policy of the last', async () => {
    for (const missing of ['x-staff', 'x-paid'] as const) {
      const { [missing]: _, ...headers } = whole
      expect((await ask('/cart/items', headers)).status).toBe(403)
    }
    expect((await ask('/cart/items', whole)).seen['x-level']).toBe('items')
    const { 'x-paid': _, ...unpaid } = whole
    expect((await ask('/cart/deep/er', unpaid)).seen['x-level']).toBe('site')
  })

  it('can be delegated again, and come to all routes with a label', async () => {
    expect((await ask('/cart/deep', whole)).from).toBe('team')
    expect((await ask('/blue/one')).from).toBe('team')
  })

  it('keep to the hostnames of both routes', async () => {
    expect((await ask('/blue/two')).from).toBe('main')
    expect((await ask('/blue/two', {}, 'other.example.com')).status).toBe(404)
  })

  it('come to a route of another namespace only if it permits that', async () => {
    expect((await ask('/foreign')).status).toBe(500)
    expect((await ask('/granted')).from).toBe('team')
  })

  it('fail where no route can be used, and other rules go on', async () => {
    for (const path of ['/missing', '/loop', '/mixed', '/exact']) {
      expect([path, (await ask(path)).status]).toEqual([path, 500])
    }
    expect((await ask('/half/one')).from).toBe('main')
  })

  it('have their problems in the conditions of both routes', async () => {
    const messageOf = async (type: string, name: string, namespace?: string) => {
      const conditions = allConditions(await running.status('HTTPRoute', name, namespace))
      const found = conditions.find((condition) => condition.type === type)
      return `${found?.status} ${found?.reason}: ${found?.message}`
    }
    const refs = await messageOf('ResolvedRefs', 'site')
    expect(refs).toContain('False BackendNotFound: HTTPRoute team/missing does not exist; ')
    expect(refs).toContain('its parentRefs do not name HTTPRoute default/site; ')
    expect(refs).toContain('a backendRef leads back to HTTPRoute default/site; ')
    const partial = await messageOf('PartiallyInvalid', 'site')
    expect(partial).toContain(
      'spec.rules[7].backendRefs: a rule that refers to HTTPRoutes can have',
    )
    expect(partial).toContain('spec.rules[8].matches.path: a rule that refers to HTTPRoutes needs')
    expect(await messageOf('Accepted', 'cart', 'team')).toBe('True Accepted: ')
    expect(await messageOf('Accepted', 'elsewhere', 'team')).toContain('False NoMatchingParent')
    expect(await messageOf('ResolvedRefs', 'loop')).toContain(
      'leads back to HTTPRoute default/loop',
    )
  })

  it('are explained with the rules that lead to them', async () => {
    const where = ['--log-file', running.logFile, '--host', host, '--path', '/cart/deep']
    const { stdout } = await sluice('explain', 'request', ...where, '--header', 'x-shop: yes')
    expect(stdout).toContain('  delegated by rule 0 (cart) of HTTPRoute default/site\n')
    expect(stdout).toContain('  delegated by rule 1 of HTTPRoute team/cart\n')
    expect(stdout).toContain('  rule 0 of HTTPRoute team/deep')
  })
})
