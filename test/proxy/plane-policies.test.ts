import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { PolicyTarget } from '../../src/ground/model/resources.ts'
import { useFixture } from '../support/fixture.ts'
import {
  backend,
  cartRoute,
  gateway,
  listener,
  match,
  policy,
  route,
  serviceAt,
  toBackend,
  toService,
} from './plane-resources.ts'
import { type Rig, startRig, startUpstream } from './plane-rig.ts'

let rig: Rig

const upstream = useFixture(() =>
  startUpstream('one', (_request, response, echo) => {
    response.writeHead(200, { server: 'upstream', 'x-list': ['a', 'b'] })
    response.end(JSON.stringify(echo))
  }),
)
beforeEach(async () => {
  rig = await startRig()
})
afterEach(() => rig.close())

/** A listener and a route to the upstream as a Service. */
const house = (fields: Parameters<typeof route>[0] = {}) => [
  listener(rig.port),
  ...serviceAt('one', upstream.port),
  route({ to: [toService('one')], ...fields }),
]

const setsRequest = (value: string) => ({ request: { set: [{ name: 'x-from', value }] } })

describe('headerModifiers', () => {
  it('[Traffic.headerModifiers] [HeaderModifiers.request] adds, sets and removes', async () => {
    const request = {
      add: [{ name: 'x-more', value: 'added' }],
      set: [{ name: 'X-Set', value: 'set' }],
      remove: ['X-Gone'],
    }
    rig.apply([...house(), policy(cartRoute, 'headerModifiers', { request })])
    const { headers } = await rig.echo({
      headers: { 'x-more': 'sent', 'x-set': 'sent', 'x-gone': 'sent', 'x-kept': 'sent' },
    })
    expect(headers).toMatchObject({ 'x-more': 'sent, added', 'x-set': 'set', 'x-kept': 'sent' })
    expect(headers['x-gone']).toBe(undefined)
  })

  it('treats host in a request filter as the authority', async () => {
    const request = { set: [{ name: 'Host', value: 'inside.test' }] }
    rig.apply([...house(), policy(cartRoute, 'headerModifiers', { request })])
    expect((await rig.echo({})).headers.host).toBe('inside.test')
    expect((await rig.facts(1))[0]?.host).toBe('a.test')
  })

  it('[HeaderModifiers.response] changes responses of the upstream', async () => {
    const response = {
      add: [{ name: 'x-list', value: 'c' }],
      set: [{ name: 'x-set', value: 'set' }],
      remove: ['Server'],
    }
    rig.apply([...house(), policy(cartRoute, 'headerModifiers', { response })])
    const { headers } = await rig.send({})
    expect(headers).toMatchObject({ 'x-list': 'a, b, c', 'x-set': 'set' })
    expect(headers.server).toBe(undefined)
  })

  it('changes direct responses and upstream failures too', async () => {
    const response = { set: [{ name: 'x-set', value: 'set' }] }
    const direct = { ...cartRoute, section: 'direct' }
    rig.apply([
      ...house({ ruleName: 'direct', matches: [match('/direct')] }),
      route({ ruleIndex: 1, to: [toService('gone')] }),
      policy(cartRoute, 'headerModifiers', { response }),
      policy(direct, 'directResponse', { status: 200, body: 'hi' }),
    ])
    expect(await rig.send({ path: '/direct' })).toMatchObject({
      body: 'hi',
      headers: { 'x-set': 'set' },
    })
    expect(await rig.send({})).toMatchObject({ status: 500, headers: { 'x-set': 'set' } })
  })
})

describe('merging traffic policies', () => {
  const rule = { ...cartRoute, section: 'add' }
  const onListener = { ...gateway, section: 'web' }

  it.each([
    ['Gateway', 'listener', gateway, onListener],
    ['listener', 'route', onListener, cartRoute],
    ['route', 'route rule', cartRoute, rule],
  ] as [string, string, PolicyTarget, PolicyTarget][])(
    '[PolicySpec.precedence.traffic] lets a policy on the %s yield to one on the %s',
    async (_low, _high, low, high) => {
      rig.apply([
        ...house({ ruleName: 'add' }),
        policy(low, 'headerModifiers', setsRequest('low'), { name: 'low' }),
        policy(high, 'headerModifiers', setsRequest('high'), { name: 'high', created: 9 }),
      ])
      expect((await rig.echo({})).headers['x-from']).toBe('high')
      rig.apply([], [policy(high, 'headerModifiers', {}, { name: 'high' }).key])
      expect((await rig.echo({})).headers['x-from']).toBe('low')
    },
  )

  it('[rule.merge] replaces a field as a whole and merges other fields', async () => {
    const response = { set: [{ name: 'x-response', value: 'gateway' }] }
    rig.apply([
      ...house(),
      policy(gateway, 'headerModifiers', { ...setsRequest('gateway'), response }),
      policy(gateway, 'hostRewrite', { mode: 'Auto' }),
      policy(cartRoute, 'headerModifiers', setsRequest('route'), { name: 'route' }),
    ])
    const answer = await rig.send({})
    const { headers } = JSON.parse(answer.body)
    expect(headers['x-from']).toBe('route')
    expect(headers.host).toBe('one.shop.svc.cluster.local')
    expect(answer.headers['x-response']).toBe(undefined)
  })

  it('applies the older of two policies on one route', async () => {
    rig.apply([
      ...house(),
      policy(cartRoute, 'headerModifiers', setsRequest('younger'), { name: 'a', created: 2 }),
      policy(cartRoute, 'headerModifiers', setsRequest('older'), { name: 'b', created: 1 }),
    ])
    expect((await rig.echo({})).headers['x-from']).toBe('older')
  })

  it('lets filters of the rule take precedence over policies', async () => {
    const changes = { set: [{ name: 'x-from', value: 'filter' }], add: [], remove: [] }
    const spec = {
      request: {
        set: [
          { name: 'x-from', value: 'policy' },
          { name: 'x-policy', value: 'yes' },
        ],
      },
      response: { set: [{ name: 'x-from', value: 'policy' }] },
    }
    rig.apply([
      ...house({
        filters: [
          { type: 'requestHeaders', changes },
          { type: 'responseHeaders', changes },
        ],
      }),
      policy(cartRoute, 'headerModifiers', spec),
    ])
    const answer = await rig.send({})
    const { headers } = JSON.parse(answer.body)
    expect(headers).toMatchObject({ 'x-from': 'filter', 'x-policy': 'yes' })
    expect(answer.headers['x-from']).toBe('filter')
  })
})

describe('directResponse', () => {
  it('[Traffic.directResponse] [error.9] [DirectResponse.status] [DirectResponse.body] answers as configured', async () => {
    rig.apply([
      listener(rig.port),
      route({}),
      policy(cartRoute, 'directResponse', { status: 418, body: 'short and stout' }),
    ])
    const answer = await rig.send({})
    expect(answer).toMatchObject({ status: 418, body: 'short and stout' })
    expect(answer.headers['content-type']).toBe(undefined)
    expect((await rig.facts(1))[0]).toMatchObject({ reason: 'DirectResponse', status: 418 })
  })

  it('[DirectResponse.body] sends no body if none is configured', async () => {
    rig.apply([listener(rig.port), route({}), policy(cartRoute, 'directResponse', { status: 503 })])
    expect(await rig.send({})).toMatchObject({ status: 503, body: '' })
  })

  it('is not turned into a grpc-status', async () => {
    rig.apply([listener(rig.port), route({}), policy(cartRoute, 'directResponse', { status: 403 })])
    const answer = await rig.send({ headers: { 'content-type': 'application/grpc' } })
    expect(answer.status).toBe(403)
  })

  it('yields to a redirect of the rule', async () => {
    rig.apply([
      listener(rig.port),
      route({ filters: [{ type: 'redirect', statusCode: 301, hostname: 'b.test', port: 80 }] }),
      policy(cartRoute, 'directResponse', { status: 200 }),
    ])
    const answer = await rig.send({ path: '/p?q=1' })
    expect(answer).toMatchObject({ status: 301, body: '' })
    expect(answer.headers.location).toBe('http://b.test/p?q=1')
  })
})

describe('hostRewrite', () => {
  const named = () => [
    listener(rig.port),
    backend('named', { type: 'static', host: 'localhost', port: upstream.port }),
    route({ to: [toBackend('named')] }),
  ]
  const hostSeen = async () => (await rig.echo({ host: 'a.test' })).headers.host

  it('[HostnameRewrite.default] names a hostname destination, port included', async () => {
    rig.apply(named())
    expect(await hostSeen()).toBe(`localhost:${upstream.port}`)
  })

  it('[HostnameRewrite.default] keeps Host for Services and addresses', async () => {
    rig.apply(house())
    expect(await hostSeen()).toBe('a.test')
    rig.apply([
      backend('address', { type: 'static', host: '127.0.0.1', port: upstream.port }),
      route({ to: [toBackend('address')] }),
    ])
    expect(await hostSeen()).toBe('a.test')
  })

  it('[Traffic.hostRewrite] [HostnameRewrite.mode=None] keeps Host for hostnames', async () => {
    rig.apply([...named(), policy(cartRoute, 'hostRewrite', { mode: 'None' })])
    expect(await hostSeen()).toBe('a.test')
  })

  it('[HostnameRewrite.mode=Auto] names a Service and an address', async () => {
    rig.apply([...house(), policy(cartRoute, 'hostRewrite', { mode: 'Auto' })])
    expect(await hostSeen()).toBe('one.shop.svc.cluster.local')
    rig.apply([
      backend('address', { type: 'static', host: '127.0.0.1', port: upstream.port }),
      route({ to: [toBackend('address')] }),
    ])
    expect(await hostSeen()).toBe(`127.0.0.1:${upstream.port}`)
  })

  it('[HostnameRewrite.urlRewrite] yields to the hostname of a urlRewrite filter', async () => {
    const rewriting = route({
      to: [toBackend('named')],
      filters: [{ type: 'rewrite', hostname: 'rewritten.test' }],
    })
    const auto = policy(cartRoute, 'hostRewrite', { mode: 'Auto' })
    rig.apply([...named(), rewriting, auto])
    expect(await hostSeen()).toBe('rewritten.test')
  })

  it('is not switched off by a urlRewrite that changes the path alone', async () => {
    const path = { type: 'ReplaceFullPath', value: '/x' } as const
    const rewriting = route({ to: [toBackend('named')], filters: [{ type: 'rewrite', path }] })
    rig.apply([...named(), rewriting])
    expect(await rig.echo({})).toMatchObject({
      url: '/x',
      headers: { host: `localhost:${upstream.port}` },
    })
  })
})

describe('merging of backend policies', () => {
  const toOne = { kind: 'Service', namespace: 'shop', name: 'one' }
  const chain: [string, PolicyTarget][] = [
    ['Gateway', gateway],
    ['listener', { ...gateway, section: 'web' }],
    ['route', cartRoute],
    ['route rule', { ...cartRoute, section: 'add' }],
    ['Service', toOne],
    ['Service port', { ...toOne, section: 'http' }],
  ]
  const steps = chain.slice(1).map(([name, high], at) => {
    const [below, low] = chain[at]!
    return [below, name, low, high] as const
  })

  // Policies that cannot be enforced make the precedence visible.
  it.each(steps)(
    '[PolicySpec.precedence.backend] lets a policy on the %s yield to one on the %s',
    async (_low, _high, low, high) => {
      const section = 'backend'
      const closed = { section, unenforceable: 'shown by a 500' } as const
      const fine = { section, name: 'fine' } as const
      rig.apply([...house({ ruleName: 'add' }), policy(low, 'tcp', {}, closed)])
      expect((await rig.send({})).status).toBe(500)
      rig.apply([policy(high, 'tcp', {}, fine)])
      expect((await rig.send({})).status).toBe(200)
      const swapped = [policy(low, 'tcp', {}, fine), policy(high, 'tcp', {}, closed)]
      rig.apply(swapped, [policy(low, 'tcp', {}, closed).key, policy(high, 'tcp', {}, fine).key])
      expect((await rig.send({})).status).toBe(500)
    },
  )
})

describe('a policy that cannot be enforced', () => {
  const refusal = {
    status: 500,
    body: 'a policy that covers this route cannot be enforced',
  }
  const withoutCredential = {
    status: 500,
    body: 'the credential for the backend is missing or cannot be used',
  }
  const pending = { unenforceable: 'not supported yet', configVersion: 0 }

  it.each([
    ['traffic', 'jwtAuthentication', cartRoute],
    ['traffic', 'rateLimit', { ...gateway, section: 'web' }],
    ['frontend', 'tls', gateway],
    ['backend', 'tls', { kind: 'Service', namespace: 'shop', name: 'one' }],
    ['backend', 'auth', { kind: 'Service', namespace: 'shop', name: 'one', section: '80' }],
    ['backend', 'auth', { kind: 'Service', namespace: 'shop', name: 'one', section: 'http' }],
  ] as const)('makes its target answer 500 (%s.%s)', async (section, field, target) => {
    rig.apply([...house(), policy(target, field, {}, { section, ...pending })])
    const before = upstream.requests.length
    expect(await rig.send({})).toMatchObject(field === 'auth' ? withoutCredential : refusal)
    expect(upstream.requests.length).toBe(before)
  })

  it('makes its listener answer 500 to all requests in phase PreRouting', async () => {
    const early = { ...pending, phase: 'PreRouting' } as const
    rig.apply([listener(rig.port), policy(gateway, 'jwtAuthentication', {}, early)])
    expect(await rig.send({})).toMatchObject(refusal)
  })

  it('does not affect other routes', async () => {
    const other = { ...cartRoute, name: 'other' }
    rig.apply([...house(), policy(other, 'jwtAuthentication', {}, pending)])
    await rig.echo({})
  })

  it('is rejected by name if its configuration has an unknown version', async () => {
    const future = policy(cartRoute, 'headerModifiers', setsRequest('x'), { configVersion: 99 })
    const { rejected } = rig.apply([...house(), future])
    expect(rejected).toEqual([
      {
        key: future.key,
        code: 'policy_unenforceable',
        message: expect.stringContaining('version 99'),
      },
    ])
    expect(await rig.send({})).toMatchObject(refusal)
    expect(rig.apply([policy(cartRoute, 'headerModifiers', setsRequest('x'))]).rejected).toEqual([])
    await rig.echo({})
  })

  it('is rejected if its configuration is broken, and reported for an unknown field', async () => {
    const broken = policy(cartRoute, 'directResponse', {}, { config: '{' })
    const unknown = policy(cartRoute, 'teleport', {})
    const { rejected } = rig.apply([...house(), broken, unknown])
    expect(rejected.map(({ key }) => key)).toEqual([broken.key, unknown.key])
    expect(await rig.send({})).toMatchObject(refusal)
  })
})
