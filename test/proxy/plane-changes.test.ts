import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { useFixture } from '../support/fixture.ts'
import { gateway, listener, match, route, serviceAt, toService } from './plane-resources.ts'
import { type Echo, type Rig, startRig, startUpstream } from './plane-rig.ts'

let rig: Rig
/** Answers wait for this; a test that sets it decides when. */
let gate: Promise<void> = Promise.resolve()
/** Called when a request has reached the first upstream. */
let arrived: (echo: Echo) => void = () => {}

const one = useFixture(() =>
  startUpstream('one', (_request, response, echo) => {
    arrived(echo)
    void gate.then(() => response.end(JSON.stringify(echo)))
  }),
)
const two = useFixture(() => startUpstream('two'))
beforeEach(async () => {
  rig = await startRig()
})
afterEach(async () => {
  gate = Promise.resolve()
  arrived = () => {}
  await rig.close()
})

const services = () => [...serviceAt('one', one.port), ...serviceAt('two', two.port)]
const badRegex = { ...match('/'), path: { type: 'RegularExpression', value: '/(' } as const }

describe('changes of the configuration', () => {
  it('apply to the next request, in whatever order their parts arrive', async () => {
    const early = route({ to: [toService('one')] })
    expect(rig.apply([early])).toEqual({ rejected: [], ports: [] })
    expect(await rig.send({})).toMatchObject({ status: 404, body: 'listener not found' })
    expect(rig.apply([listener(rig.port)]).ports).toEqual([rig.port])
    expect(await rig.send({})).toMatchObject({ status: 500, body: 'service not found' })
    rig.apply(services())
    expect(await rig.echo({})).toMatchObject({ upstream: 'one' })
    rig.apply([route({ to: [toService('two')] })])
    expect(await rig.echo({})).toMatchObject({ upstream: 'two' })
    rig.apply([], [early.key])
    expect(await rig.send({})).toMatchObject({ status: 404, body: 'route not found' })
    expect(rig.apply([], [listener(rig.port).key]).ports).toEqual([])
    expect(await rig.send({})).toMatchObject({ status: 404, body: 'listener not found' })
  })

  it('do not affect a request in progress', async () => {
    let open: () => void = () => {}
    gate = new Promise((resolve) => {
      open = resolve
    })
    const reached = new Promise<Echo>((resolve) => {
      arrived = resolve
    })
    const changes = { set: [{ name: 'x-rule', value: 'old' }], add: [], remove: [] }
    const old = route({ to: [toService('one')], filters: [{ type: 'responseHeaders', changes }] })
    rig.apply([listener(rig.port), ...services(), old])
    const pending = rig.send({})
    await reached
    rig.apply([], [old.key, listener(rig.port).key])
    open()
    expect(await pending).toMatchObject({ status: 200, headers: { 'x-rule': 'old' } })
    expect((await rig.facts(1))[0]).toMatchObject({ route: 'shop/cart', status: 200 })
  })

  it('move a listener with its routes to another hostname and owner', async () => {
    rig.apply([listener(rig.port), ...services(), route({ to: [toService('one')] })])
    await rig.echo({ host: 'a.test' })
    rig.apply([listener(rig.port, { hostname: 'b.test' })])
    expect(await rig.send({ host: 'a.test' })).toMatchObject({ body: 'listener not found' })
    expect(await rig.echo({ host: 'b.test' })).toMatchObject({ upstream: 'one' })
  })

  it('keep the last good version of a rule that the core refuses, and apply the rest', async () => {
    rig.apply([listener(rig.port), ...services(), route({ to: [toService('one')] })])
    const { rejected } = rig.apply([
      route({ to: [toService('two')], matches: [match('/'), badRegex] }),
      route({ name: 'other', matches: [match('/other')], to: [toService('two')] }),
    ])
    expect(rejected).toEqual([
      { key: 'route/HTTPRoute/shop/cart/0', code: 'rule_unusable', message: expect.any(String) },
    ])
    expect(await rig.echo({})).toMatchObject({ upstream: 'one' })
    expect(await rig.echo({ path: '/other' })).toMatchObject({ upstream: 'two' })
    expect(rig.apply([route({ to: [toService('two')] })]).rejected).toEqual([])
    expect(await rig.echo({})).toMatchObject({ upstream: 'two' })
  })

  it('refuse all requests of a new rule that the core rejects in part', async () => {
    const broken = route({
      name: 'new',
      to: [toService('two')],
      matches: [match('/new'), badRegex],
    })
    const base = [...services(), route({ to: [toService('one')] })]
    const refused = [{ key: broken.key, code: 'rule_unusable' }]
    expect(rig.apply([...base, broken]).rejected).toEqual([])
    expect(rig.apply([listener(rig.port)]).rejected).toMatchObject(refused)
    expect(await rig.send({ path: '/new' })).toMatchObject({ status: 500 })
    expect(await rig.echo({ path: '/' })).toMatchObject({ upstream: 'one' })
    expect(rig.apply([broken]).rejected).toMatchObject(refused)
    expect(await rig.send({ path: '/new' })).toMatchObject({ status: 500 })
    rig.apply([], [broken.key])
    expect(await rig.echo({ path: '/new' })).toMatchObject({ upstream: 'one' })
  })

  it('let the second listener with a hostname wait until the first is gone', async () => {
    const owner = { ...gateway, name: 'other' }
    const first = listener(rig.port)
    const second = listener(rig.port, { key: 'listener/Gateway/infra/other/web', owner })
    const attachments = [{ listener: second.key, hostnames: [''] }]
    rig.apply([...services(), route({ to: [toService('one')] })])
    rig.apply([route({ name: 'second', to: [toService('two')], attachments })])
    expect(rig.apply([second]).rejected).toEqual([])
    expect(await rig.echo({})).toMatchObject({ upstream: 'two' })
    expect(rig.apply([first]).rejected).toMatchObject([{ key: second.key, code: 'port_in_use' }])
    expect(await rig.echo({})).toMatchObject({ upstream: 'one' })
    rig.apply([], [first.key])
    expect(await rig.echo({})).toMatchObject({ upstream: 'two' })
    expect(rig.apply([first, second]).rejected).toMatchObject([{ key: second.key }])
  })

  it('report a resource again if it is rejected again, and keep the rest', async () => {
    const bad = route({ name: 'bad', matches: [badRegex], to: [toService('one')] })
    const all = [listener(rig.port), ...services(), route({ to: [toService('one')] }), bad]
    const refused = { rejected: [{ key: bad.key }], ports: [rig.port] }
    expect(rig.apply(all)).toMatchObject(refused)
    expect(rig.apply(all)).toMatchObject(refused)
    await rig.echo({})
    rig.apply([], [bad.key, listener(rig.port).key])
    expect(await rig.send({})).toMatchObject({ status: 404 })
    expect(rig.apply(all)).toMatchObject(refused)
    await rig.echo({})
  })

  it('keep listeners of other protocols away from requests', async () => {
    rig.apply([listener(rig.port, { protocol: 'TLS' })])
    expect(await rig.send({})).toMatchObject({ status: 404, body: 'listener not found' })
    rig.apply([listener(rig.port, { protocol: 'HTTP' })])
    expect(await rig.send({})).toMatchObject({ status: 404, body: 'route not found' })
    rig.apply([listener(rig.port, { protocol: 'TCP' })])
    expect(await rig.send({})).toMatchObject({ status: 404, body: 'listener not found' })
  })

  it('leak no memory of the core over 300 rules', async () => {
    const rules = Array.from({ length: 300 }, (_, at) =>
      route({ name: `r${at}`, matches: [match(`/r${at}`)], to: [toService('one')] }),
    )
    rig.apply([listener(rig.port), ...services(), ...rules])
    await rig.echo({ path: '/r299' })
    rig.apply(
      [],
      rules.map(({ key }) => key),
    )
    expect(await rig.send({ path: '/r0' })).toMatchObject({ body: 'route not found' })
    expect(await rig.send({ path: '/r299' })).toMatchObject({ body: 'route not found' })
    rig.apply(rules.slice(0, 1))
    await rig.echo({ path: '/r0' })
  })
})
