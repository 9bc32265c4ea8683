import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Resource, RouteFilter } from '../../src/ground/model/resources.ts'
import { useFixture } from '../support/fixture.ts'
import { waitFor } from '../support/wait-for.ts'
import {
  cartRoute,
  gateway,
  listener,
  match,
  policy,
  route,
  serviceAt,
  toService,
  weighted,
} from './plane-resources.ts'
import { type Echo, type Rig, startRig, startUpstream, type Upstream } from './plane-rig.ts'

let rig: Rig
let mirror: Upstream
/** Resolves with the next request that the mirror has got. */
let mirrored: Promise<Echo>

const upstream = useFixture(() => startUpstream('one'))
beforeEach(async () => {
  rig = await startRig()
  let resolve: (echo: Echo) => void = () => {}
  mirrored = new Promise((settle) => {
    resolve = settle
  })
  mirror = await startUpstream('mirror', (_request, response, echo) => {
    response.end()
    resolve(echo)
  })
})
afterEach(async () => {
  await rig.close()
  await mirror.close()
})

/** A listener and a route with these filters to the upstream as a Service. */
const house = (filters: readonly RouteFilter[], fields: Parameters<typeof route>[0] = {}) => [
  listener(rig.port),
  ...serviceAt('one', upstream.port),
  ...serviceAt('mirror', mirror.port),
  route({ to: [toService('one')], filters, ...fields }),
]

const set = (name: string, value: string) => ({ set: [{ name, value }], add: [], remove: [] })

describe('rewrite filters', () => {
  it('replaces a matched prefix and keeps the query', async () => {
    const path = { type: 'ReplacePrefixMatch', value: '/new' } as const
    rig.apply(house([{ type: 'rewrite', path }], { matches: [match('/old/')] }))
    expect(await rig.echo({ path: '/old/x?y=1' })).toMatchObject({ url: '/new/x?y=1' })
    expect(await rig.echo({ path: '/old' })).toMatchObject({ url: '/new' })
    expect((await rig.facts(2))[0]?.path).toBe('/old/x?y=1')
  })

  it('uses the prefix of the match that applied, among several of the rule', async () => {
    const path = { type: 'ReplacePrefixMatch', value: '/new' } as const
    const matches = [match('/a'), match('/a/b', { method: 'PUT' })]
    rig.apply(house([{ type: 'rewrite', path }], { matches }))
    expect(await rig.echo({ path: '/a/b/c' })).toMatchObject({ url: '/new/b/c' })
    expect(await rig.echo({ path: '/a/b/c', method: 'PUT' })).toMatchObject({ url: '/new/c' })
  })

  it('answers 500 if the rule to replace a prefix has not matched one', async () => {
    const path = { type: 'ReplacePrefixMatch', value: '/new' } as const
    const exact = { ...match('/'), path: { type: 'Exact', value: '/x' } as const }
    rig.apply(house([{ type: 'rewrite', path }], { matches: [exact] }))
    expect(await rig.send({ path: '/x' })).toMatchObject({
      status: 500,
      body: 'failed to apply filters',
    })
  })

  it('sets the host', async () => {
    rig.apply(house([{ type: 'rewrite', hostname: 'inside.test' }]))
    expect((await rig.echo({})).headers.host).toBe('inside.test')
  })
})

describe('redirect filters', () => {
  it('answers with a Location, without a backend', async () => {
    const path = { type: 'ReplacePrefixMatch', value: '/new' } as const
    const redirect = { type: 'redirect', statusCode: 308, scheme: 'https', path } as const
    rig.apply([listener(rig.port), route({ filters: [redirect], matches: [match('/old')] })])
    const answer = await rig.send({ host: 'a.test:8080', path: '/old/x?y=1' })
    expect(answer).toMatchObject({ status: 308, body: '' })
    expect(answer.headers.location).toBe('https://a.test/new/x?y=1')
  })

  it('goes to the port of the listener if the filter names neither scheme nor port', async () => {
    const redirect = { type: 'redirect', statusCode: 302, hostname: 'b.test' } as const
    rig.apply([listener(rig.port), route({ filters: [redirect] })])
    expect((await rig.send({})).headers.location).toBe(`http://b.test:${rig.port}/`)
  })
})

describe('header filters', () => {
  it('apply on the rule and then on the backendRef, to requests and responses', async () => {
    const both = (name: string, value: string): RouteFilter[] => [
      { type: 'requestHeaders', changes: set(name, value) },
      { type: 'responseHeaders', changes: set(name, value) },
    ]
    const rule = [...both('x-who', 'rule'), ...both('x-rule', 'yes')]
    const to = [weighted(toService('one'), 1, both('x-who', 'backendRef'))]
    rig.apply(house(rule, { to }))
    const answer = await rig.send({})
    const { headers } = JSON.parse(answer.body)
    expect(headers).toMatchObject({ 'x-who': 'backendRef', 'x-rule': 'yes' })
    expect(answer.headers).toMatchObject({ 'x-who': 'backendRef', 'x-rule': 'yes' })
  })

  it('answer 500 if a value cannot be sent', async () => {
    rig.apply(house([{ type: 'requestHeaders', changes: set('x', 'a\r\nx-evil: 1') }]))
    expect(await rig.send({})).toMatchObject({
      status: 500,
      body: 'this route rule cannot be served',
    })
  })
})

describe('rules that cannot be applied', () => {
  it('answer 500 to the requests that they match, and to no others', async () => {
    rig.apply([
      ...house([], { matches: [match('/')] }),
      route({
        name: 'odd',
        matches: [match('/odd')],
        unusable: 'a filter',
        to: [toService('one')],
      }),
    ])
    expect(await rig.send({ path: '/odd/x' })).toMatchObject({
      status: 500,
      body: 'this route rule cannot be served',
    })
    await rig.echo({ path: '/even' })
  })
})

describe('mirror filters', () => {
  const mirrorFilter = (numerator: number, denominator: number): RouteFilter => ({
    type: 'mirror',
    target: toService('mirror'),
    numerator,
    denominator,
  })

  it('get the request that the backend gets, and their answer is discarded', async () => {
    const change: RouteFilter = { type: 'requestHeaders', changes: set('x-edited', 'yes') }
    rig.apply(house([mirrorFilter(1, 1), change]))
    const echo = await rig.echo({ method: 'POST', path: '/p?q=1', body: 'hello' })
    expect(echo.upstream).toBe('one')
    expect(await mirrored).toMatchObject({
      method: 'POST',
      url: '/p?q=1',
      headers: { 'x-edited': 'yes' },
    })
  })

  it('get only their configured share of requests', async () => {
    let draw = 0
    await rig.close()
    rig = await startRig({ random: () => draw })
    rig.apply(house([mirrorFilter(1, 4)]))
    draw = 0.26
    await rig.echo({ path: '/not-mirrored' })
    draw = 0.24
    await rig.echo({ path: '/mirrored' })
    await mirrored
    expect(mirror.requests.map(({ url }) => url)).toEqual(['/mirrored'])
  })

  it('do not affect the request if their backend does not exist', async () => {
    const nowhere = { ...mirrorFilter(1, 1), target: toService('gone') } as RouteFilter
    rig.apply(house([nowhere]))
    await rig.echo({})
  })

  it('are not sent under a backend policy that cannot be enforced', async () => {
    const target = { kind: 'Service', namespace: 'shop', name: 'mirror' }
    const tls = policy(target, 'tls', {}, { section: 'backend', unenforceable: 'pending' })
    rig.apply([...house([mirrorFilter(1, 1)]), tls])
    await rig.echo({ path: '/first' })
    rig.apply([], [tls.key])
    await rig.echo({ path: '/second' })
    await mirrored
    expect(mirror.requests.map(({ url }) => url)).toEqual(['/second'])
  })
})

describe('timeouts of rules and policies', () => {
  /** Responses that an upstream owes. */
  const held: ServerResponse[] = []
  const silent = useFixture(() =>
    startUpstream('silent', (_request, response) => void held.push(response)),
  )

  const toSilent = (fields: Parameters<typeof route>[0]) => [
    listener(rig.port),
    ...serviceAt('silent', silent.port),
    route({ to: [toService('silent')], ...fields }),
  ]

  /** The status of a request that is answered after a later one has run into a timeout of 30 ms. */
  const outlasting = async (...resources: Resource[]) => {
    const limited = route({
      ruleIndex: 1,
      ruleName: 'limited',
      to: [toService('silent')],
      matches: [match('/limited')],
      requestTimeoutMs: 30,
    })
    rig.apply([...resources, limited])
    held.length = 0
    const answer = rig.send({})
    await waitFor('the request', () => held.length === 1)
    expect(await rig.send({ path: '/limited' })).toMatchObject({ status: 504 })
    held[0]?.end()
    return (await answer).status
  }

  it('of the rule end a request without an answer', async () => {
    rig.apply(toSilent({ requestTimeoutMs: 30 }))
    expect(await rig.send({})).toMatchObject({ status: 504, body: 'request timeout' })
    rig.apply(toSilent({ backendTimeoutMs: 30 }))
    expect(await rig.send({})).toMatchObject({ status: 504, body: 'upstream call timeout' })
    expect((await rig.facts(2))[1]).toMatchObject({ reason: 'Timeout', status: 504 })
  })

  it('[Traffic.timeouts] [Timeouts.request] of a policy end a request without an answer', async () => {
    rig.apply([...toSilent({}), policy(cartRoute, 'timeouts', { request: '30ms' })])
    expect(await rig.send({})).toMatchObject({ status: 504, body: 'request timeout' })
  })

  it('of the rule take precedence over those of a policy', async () => {
    const long = policy(cartRoute, 'timeouts', { request: '1h' })
    rig.apply([...toSilent({ requestTimeoutMs: 30 }), long])
    expect(await rig.send({})).toMatchObject({ status: 504 })
    const short = policy(cartRoute, 'timeouts', { request: '1ms' })
    expect(await outlasting(...toSilent({ requestTimeoutMs: 0 }), short)).toBe(200)
  })

  it('[Traffic.timeouts] of a policy on anything but an HTTPRoute are ignored', async () => {
    const short = policy(gateway, 'timeouts', { request: '1ms' })
    expect(await outlasting(...toSilent({}), short)).toBe(200)
  })
})
