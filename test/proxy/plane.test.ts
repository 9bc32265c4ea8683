import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { useFixture } from '../support/fixture.ts'
import {
  backend,
  gateway,
  listener,
  match,
  policy,
  route,
  service,
  serviceAt,
  slice,
  toBackend,
  toService,
  weighted,
} from './plane-resources.ts'
import { type Rig, startRig, startUpstream } from './plane-rig.ts'

let rig: Rig

const one = useFixture(() => startUpstream('one'))
const two = useFixture(() => startUpstream('two'))
beforeEach(async () => {
  rig = await startRig()
})
afterEach(() => rig.close())

const invalid = { type: 'invalid', reason: 'RefNotPermitted', message: 'no grant' } as const

describe('choosing listener, route and backend', () => {
  it('[dataplane.path] [dataplane.route] selects the route by Host and forwards to its Service', async () => {
    rig.apply([
      listener(rig.port),
      ...serviceAt('one', one.port),
      ...serviceAt('two', two.port),
      route({ name: 'a', hostnames: ['a.test'], to: [toService('one')] }),
      route({ name: 'b', hostnames: ['b.test'], to: [toService('two')] }),
    ])
    expect(await rig.echo({ host: 'a.test', path: '/x?y=1' })).toMatchObject({
      upstream: 'one',
      method: 'GET',
      url: '/x?y=1',
    })
    expect(await rig.echo({ host: 'b.test' })).toMatchObject({ upstream: 'two' })
    const posted = await rig.echo({ host: 'B.test:8080', method: 'POST', body: 'hello' })
    expect(posted).toMatchObject({ upstream: 'two', method: 'POST', body: 'hello' })
  })

  it('logs gateway, listener, route and backend of a request', async () => {
    rig.apply([
      listener(rig.port),
      ...serviceAt('one', one.port),
      route({ name: 'a', ruleName: 'first', to: [toService('one')] }),
    ])
    await rig.send({ path: '/x?y=1' })
    const [facts] = await rig.facts(1)
    expect(facts).toMatchObject({
      gateway: 'infra/edge',
      listener: 'web',
      route: 'shop/a',
      rule: 'first',
      endpoint: `127.0.0.1:${one.port}`,
      backend: 'service/shop/one:80',
      reason: 'Upstream',
      status: 200,
      protocol: 'http',
      method: 'GET',
      host: 'a.test',
      path: '/x?y=1',
    })
    expect(facts?.error).toBe(undefined)
  })

  it('answers 404 if no listener has the host, or no rule matches', async () => {
    rig.apply([
      listener(rig.port, { hostname: 'a.test' }),
      route({ matches: [match('/only')], to: [toService('one')] }),
    ])
    const strange = await rig.send({ host: 'b.test' })
    expect(strange).toMatchObject({ status: 404, body: 'listener not found' })
    expect(strange.headers['content-type']).toBe('text/plain')
    expect(await rig.send({ path: '/other' })).toMatchObject({
      status: 404,
      body: 'route not found',
    })
    const [first, second] = await rig.facts(2)
    expect(first).toMatchObject({ reason: 'NotFound', status: 404 })
    expect(first?.gateway).toBe(undefined)
    expect(second).toMatchObject({ reason: 'NotFound', listener: 'web' })
  })

  it('prefers exact over wildcard listeners and keeps their routes apart', async () => {
    rig.apply([
      listener(rig.port, { section: 'any' }),
      listener(rig.port, { section: 'wild', hostname: '*.a.test' }),
      listener(rig.port, { section: 'exact', hostname: 'x.a.test' }),
      ...serviceAt('one', one.port),
      ...serviceAt('two', two.port),
      route({ name: 'wild', listeners: ['wild'], to: [toService('one')] }),
      route({ name: 'exact', listeners: ['exact'], to: [toService('two')] }),
    ])
    expect(await rig.echo({ host: 'y.z.a.test' })).toMatchObject({ upstream: 'one' })
    expect(await rig.echo({ host: 'x.a.test' })).toMatchObject({ upstream: 'two' })
    expect(await rig.send({ host: 'a.test' })).toMatchObject({ body: 'route not found' })
  })

  it('prefers longer paths, methods, headers and queries, then the older route', async () => {
    const to = [toService('one')]
    const otherTo = [toService('two')]
    const header = { name: 'x-v', type: 'Exact', value: '2' } as const
    const query = { name: 'q', type: 'RegularExpression', value: 'a|ab' } as const
    rig.apply([
      listener(rig.port),
      ...serviceAt('one', one.port),
      ...serviceAt('two', two.port),
      route({ name: 'base', created: 5, to }),
      route({ name: 'long', matches: [match('/long')], to: otherTo }),
      route({ name: 'method', matches: [match('/', { method: 'DELETE' })], to: otherTo }),
      route({ name: 'header', matches: [match('/', { headers: [header] })], to: otherTo }),
      route({ name: 'query', matches: [match('/', { query: [query] })], to: otherTo }),
      route({ name: 'younger', created: 9, to: otherTo }),
    ])
    expect(await rig.echo({ path: '/' })).toMatchObject({ upstream: 'one' })
    expect(await rig.echo({ path: '/longer' })).toMatchObject({ upstream: 'one' })
    expect(await rig.echo({ path: '/long/er' })).toMatchObject({ upstream: 'two' })
    expect(await rig.echo({ method: 'DELETE' })).toMatchObject({ upstream: 'two' })
    expect(await rig.echo({ headers: { 'X-V': '2' } })).toMatchObject({ upstream: 'two' })
    expect(await rig.echo({ path: '/?q=ab' })).toMatchObject({ upstream: 'two' })
    expect(await rig.echo({ path: '/?q=abc' })).toMatchObject({ upstream: 'one' })
  })

  it('prefers the route seen first if creation times are equal', async () => {
    rig.apply([
      listener(rig.port),
      ...serviceAt('one', one.port),
      ...serviceAt('two', two.port),
      route({ name: 'a', order: 12, to: [toService('one')] }),
      route({ name: 'b', order: 7, to: [toService('two')] }),
    ])
    expect(await rig.echo({})).toMatchObject({ upstream: 'two' })
  })

  it('shares requests by weight, and leaves an invalid reference its share', async () => {
    let draw = 0
    await rig.close()
    rig = await startRig({ random: () => draw })
    rig.apply([
      listener(rig.port),
      backend('one', { type: 'static', host: '127.0.0.1', port: one.port }),
      backend('two', { type: 'static', host: '127.0.0.1', port: two.port }),
      route({
        to: [
          weighted(toBackend('one'), 1),
          weighted(toBackend('never'), 0),
          weighted(toBackend('two'), 2),
          weighted(invalid, 1),
        ],
      }),
    ])
    const answers: string[] = []
    for (draw of [0, 0.24, 0.25, 0.74, 0.75, 0.99]) {
      const { status, body } = await rig.send({})
      answers.push(status === 200 ? JSON.parse(body).upstream : body)
    }
    const missing = 'backend does not exist'
    expect(answers).toEqual(['one', 'one', 'two', 'two', missing, missing])
  })
})

describe('backends of routes', () => {
  it('[BackendSpec.static] [StaticBackend.host] [StaticBackend.port] reaches host and port', async () => {
    rig.apply([
      listener(rig.port),
      backend('static', { type: 'static', host: 'localhost', port: one.port }),
      route({ to: [toBackend('static')] }),
    ])
    expect(await rig.echo({})).toMatchObject({ upstream: 'one' })
    const [facts] = await rig.facts(1)
    expect(facts).toMatchObject({ backend: 'shop/static', endpoint: `127.0.0.1:${one.port}` })
  })

  it('follows EndpointSlices, by port name and readiness', async () => {
    rig.apply([
      listener(rig.port),
      service('web', {
        ports: [
          { name: 'http', port: 80 },
          { name: 'admin', port: 81 },
        ],
      }),
      slice('web', one.port, {
        ports: [
          { name: 'http', port: one.port },
          { name: 'admin', port: two.port },
        ],
      }),
      route({ name: 'http', hostnames: ['a.test'], to: [toService('web', 80)] }),
      route({ name: 'admin', hostnames: ['b.test'], to: [toService('web', 81)] }),
    ])
    expect(await rig.echo({ host: 'a.test' })).toMatchObject({ upstream: 'one' })
    expect(await rig.echo({ host: 'b.test' })).toMatchObject({ upstream: 'two' })
    const asleep = [{ address: '127.0.0.1', ready: false }]
    rig.apply([slice('web', one.port, { endpoints: asleep })])
    expect(await rig.send({ host: 'a.test' })).toMatchObject({
      status: 503,
      body: 'no healthy backends',
    })
    rig.apply([slice('web', two.port)])
    expect(await rig.echo({ host: 'a.test' })).toMatchObject({ upstream: 'two' })
  })

  it.each([
    ['no backendRef', [], 500, 'no valid backends', 'NoHealthyBackend'],
    [
      'only weight 0',
      [weighted(toService('web'), 0)],
      500,
      'no valid backends',
      'NoHealthyBackend',
    ],
    ['a missing Service', [toService('gone')], 500, 'service not found', 'NotFound'],
    ['a missing GatewayBackend', [toBackend('gone')], 500, 'service not found', 'NotFound'],
    ['an invalid reference', [invalid], 500, 'backend does not exist', 'NoHealthyBackend'],
    [
      'a Service without endpoints',
      [toService('web')],
      503,
      'no healthy backends',
      'NoHealthyBackend',
    ],
    [
      'a port that the Service lacks',
      [toService('web', 9)],
      503,
      'no healthy backends',
      'NoHealthyBackend',
    ],
    [
      'an unsupported backend',
      [toBackend('ai')],
      500,
      'backend is not supported yet',
      'NoHealthyBackend',
    ],
    [
      'a refused connection',
      [toBackend('closed')],
      503,
      'upstream call failed: connection failure',
      'UpstreamFailure',
    ],
  ] as const)(
    'answers %s with the text of the error catalogue',
    async (_case, to, status, body, reason) => {
      rig.apply([
        listener(rig.port),
        service('web'),
        backend('ai', { type: 'unsupported', message: 'ai' }),
        backend('closed', { type: 'static', host: '127.0.0.1', port: 1 }),
        route({ to }),
      ])
      expect(await rig.send({})).toMatchObject({ status, body })
      const [facts] = await rig.facts(1)
      expect(facts).toMatchObject({ status, reason, route: 'shop/cart' })
      expect(facts?.error).toContain(body)
    },
  )

  it.each([
    ['application/grpc', [], '14', 'no valid backends'],
    ['application/grpc+proto; x=1', [toService('gone')], '2', 'service not found'],
    ['application/grpc', [toService('web')], '14', 'no healthy backends'],
  ] as const)('answers a gRPC client (%s) with grpc-status', async (type, to, code, message) => {
    rig.apply([listener(rig.port), service('web'), route({ to })])
    const answer = await rig.send({ method: 'POST', headers: { 'content-type': type } })
    expect(answer).toMatchObject({ status: 200, body: '' })
    expect(answer.headers).toMatchObject({
      'content-type': 'application/grpc',
      'grpc-status': code,
      'grpc-message': message,
    })
  })

  it('answers a gRPC client without a route with UNIMPLEMENTED', async () => {
    rig.apply([listener(rig.port)])
    const answer = await rig.send({ headers: { 'content-type': 'application/grpc' } })
    expect(answer.headers['grpc-status']).toBe('12')
  })

  it('does not treat application/grpc-web as gRPC', async () => {
    rig.apply([listener(rig.port)])
    const answer = await rig.send({ headers: { 'content-type': 'application/grpc-web' } })
    expect(answer).toMatchObject({ status: 404, body: 'route not found' })
  })
})

describe('the dynamic forward proxy', () => {
  const dynamic = [backend('any', { type: 'dynamic' }), route({ to: [toBackend('any')] })]

  it('[DynamicForwardProxyBackend.host] [BackendSpec.dynamicForwardProxy] forwards to the host of the request', async () => {
    rig.apply([listener(rig.port), ...dynamic])
    const host = `127.0.0.1:${one.port}`
    expect(await rig.echo({ host })).toMatchObject({ upstream: 'one', headers: { host } })
    expect(await rig.echo({ host: `127.0.0.1:${two.port}` })).toMatchObject({ upstream: 'two' })
  })

  it('resolves names, and tries the next address if a connection fails', async () => {
    await rig.close()
    const names: string[] = []
    rig = await startRig({
      lookup: async (name) => {
        names.push(name)
        return { addresses: ['127.0.0.9', '127.0.0.1'], ttlMs: 1_000 }
      },
    })
    rig.apply([listener(rig.port), ...dynamic])
    const host = `named.test:${one.port}`
    expect(await rig.echo({ host })).toMatchObject({ upstream: 'one', headers: { host } })
    expect(names).toEqual(['named.test'])
  })

  it.each(['169.254.169.254', '[fe80::1]', '[::ffff:169.254.169.254]:80', 'metadata.test'])(
    'refuses %s, which resolves to a link-local address',
    async (host) => {
      await rig.close()
      rig = await startRig({
        lookup: async () => ({ addresses: ['10.0.0.1', '169.254.169.254'], ttlMs: 1_000 }),
      })
      rig.apply([listener(rig.port), ...dynamic])
      expect(await rig.send({ host })).toMatchObject({
        status: 403,
        body: 'destination is not allowed',
      })
    },
  )

  it('answers 503 if the name cannot be resolved', async () => {
    await rig.close()
    rig = await startRig({ lookup: () => Promise.reject(new Error('ENOTFOUND')) })
    rig.apply([listener(rig.port), ...dynamic])
    expect(await rig.send({ host: 'nowhere.test' })).toMatchObject({
      status: 503,
      body: 'backends required DNS resolution which failed',
    })
  })

  it('[DynamicForwardProxyBackend.host] applies access controls before it connects', async () => {
    const rule = { action: 'Deny', policy: { matchExpressions: ['request.host != ""'] } }
    rig.apply([listener(rig.port), ...dynamic, policy(gateway, 'authorization', rule)])
    const before = one.requests.length
    expect(await rig.send({ host: `127.0.0.1:${one.port}` })).toMatchObject({ status: 403 })
    expect(one.requests.length).toBe(before)
  })
})
