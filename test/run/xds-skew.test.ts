import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { encodeBody } from '../../src/control/wire/encode.ts'
import type { Resource } from '../../src/ground/model/resources.ts'
import { ClusterRig, type ProxyProcess, stablePort } from '../support/cluster-rig.ts'
import { send } from '../support/http-client.ts'
import {
  gateway as gatewayOf,
  httpRoute,
  manifest,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'
import { BareClient } from '../support/xds-client.ts'
import { BareController, type BareResource } from '../support/xds-controller.ts'

// Several processes start in each of these.
vi.setConfig({ testTimeout: 90_000 })

/** What a controller sends that knows more than the proxy, and less. */
const edge = { namespace: 'default', name: 'edge' }
const listenerKey = 'listener/Gateway/default/edge/http'

const encoded = (resource: Resource, version = '1', more: Uint8Array[] = []): BareResource => [
  resource.key,
  version,
  Buffer.concat([encodeBody(resource), ...more]),
]

/** Field 999 inside one kind of resource: a second occurrence of the kind's field is merged. */
function unknownField(kind: number): Uint8Array {
  const inside = new BinaryWriter().tag(999, WireType.Varint).uint32(1).finish()
  return new BinaryWriter().tag(kind, WireType.LengthDelimited).bytes(inside).finish()
}

const listener = (port: number): Resource => ({
  type: 'listener',
  key: listenerKey,
  gateway: edge,
  owner: { kind: 'Gateway', ...edge },
  section: 'http',
  port,
  protocol: 'HTTP',
  hostname: '',
})

const backend = (port: number): Resource => ({
  type: 'backend',
  key: 'backend/default/a',
  namespace: 'default',
  name: 'a',
  destination: { type: 'static', host: '127.0.0.1', port },
})

const route = (path = '/'): Resource => ({
  type: 'route',
  key: 'route/HTTPRoute/default/app/0',
  route: { kind: 'HTTPRoute', namespace: 'default', name: 'app' },
  created: 1,
  order: 0,
  ruleIndex: 0,
  attachments: [{ listener: listenerKey, hostnames: [''] }],
  matches: [{ path: { type: 'PathPrefix', value: path }, headers: [], query: [] }],
  filters: [],
  backends: [
    { weight: 1, target: { type: 'backend', namespace: 'default', name: 'a' }, filters: [] },
  ],
})

const policy = (field: string, configVersion: number): Resource => ({
  type: 'policy',
  key: `policy/traffic/default/guard/${field}/Gateway/default/edge`,
  created: 1,
  order: 0,
  policy: { namespace: 'default', name: 'guard' },
  section: 'traffic',
  field,
  phase: 'PostRouting',
  target: { kind: 'Gateway', ...edge },
  configVersion,
  config: '{}',
})

const routeOf = httpRoute('app', { rules: [{ backendRefs: [toBackend('a')] }] })

let rig: ClusterRig
let controller: BareController
let upstream: Upstream
let proxy: ProxyProcess
let port: number
beforeEach(async () => {
  upstream = await startUpstream('a')
  rig = new ClusterRig({})
  controller = await new BareController().start()
  port = await stablePort()
  proxy = rig.proxy({ name: 'edge-1', addresses: [controller.address] }).launch()
})
afterEach(async () => {
  await rig.dispose()
  controller.close()
  await upstream.close()
})

const base = () => [encoded(listener(port)), encoded(backend(upstream.port)), encoded(route())]
const statusOf = async () => (await send(port)).status
const refusalsOf = ({ rejected }: { rejected?: { rejections: readonly object[] } }) =>
  rejected?.rejections ?? []

describe('a proxy that is older than its controller', () => {
  it('serves a resource with unknown fields, and reports them', async () => {
    const [, ...rest] = base()
    const newer = encoded(listener(port), '1', [unknownField(2)])
    const answer = await controller.send([newer, ...rest])
    expect(refusalsOf(answer)).toEqual([
      { key: listenerKey, code: 'resource_partly_known', message: expect.stringMatching(/field/) },
    ])
    expect(await statusOf()).toBe(200)
    await proxy.printed(/the rest of it is in force/)
    expect(refusalsOf(await controller.send([encoded(listener(port), '2')]))).toEqual([])
  })

  it('ignores a resource of an unknown type, and serves the rest', async () => {
    const unknown = new BinaryWriter()
      .tag(1, WireType.LengthDelimited)
      .string('future/default/x')
      .tag(500, WireType.LengthDelimited)
      .bytes(new Uint8Array())
      .finish()
    const answer = await controller.send([...base(), ['future/default/x', '1', unknown]])
    expect(refusalsOf(answer)).toMatchObject([{ key: 'future/default/x' }])
    expect(await statusOf()).toBe(200)
  })

  it.each([
    ['an unknown policy', () => encoded(policy('quantumShield', 1))],
    ['an unknown version of a policy', () => encoded(policy('csrf', 99))],
    ['a policy with an unknown field', () => encoded(policy('csrf', 1), '1', [unknownField(7)])],
  ])('answers 500 for requests under %s, and recovers', async (_, make) => {
    await controller.send(base())
    expect(await statusOf()).toBe(200)
    const guard = make()
    expect(refusalsOf(await controller.send([guard]))).toMatchObject([{ key: guard[0] }])
    expect(await statusOf()).toBe(500)
    expect(refusalsOf(await controller.send([], [guard[0]]))).toEqual([])
    expect(await statusOf()).toBe(200)
  })
})

describe('a policy whose content does not validate', () => {
  it('refuses the requests of its target, and is rejected with the path of the error', async () => {
    await controller.send(base())
    const contents = [
      ['authorization', '{"action":"deny","expressions":["true"]}', /action: expected one of Al/],
      ['authorization', '{}', /action: expected/],
      ['authorization', 'null', /expected an object/],
      ['csrf', '{"additionalOrigins":5}', /additionalOrigins: expected a list/],
      ['csrf', '{"additionalOrigins":[],"more":1}', /more: unknown field/],
      ['csrf', '{', /cannot be used/],
      ['apiKeyAuthentication', '{"mode":"strict","entries":[]}', /mode: expected one of Strict/],
      ['rateLimit', '{"local":[{"rate":-1}]}', /local\[0\]\.rate: expected an integer/],
    ] as const
    for (const [field, config, why] of contents) {
      const guard = encoded({ ...policy(field, 1), config } as Resource)
      const refusals = refusalsOf(await controller.send([guard]))
      const message = expect.stringMatching(why)
      expect(refusals).toEqual([{ key: guard[0], code: 'policy_unenforceable', message }])
      const { status, body } = await send(port)
      expect([status, body]).toEqual([500, 'a policy that covers this route cannot be enforced'])
      expect(refusalsOf(await controller.send([], [guard[0]]))).toEqual([])
      expect(await statusOf()).toBe(200)
    }
  })
})

describe('a policy that protects nothing, at an older proxy', () => {
  const given = (field: string, version: number): Resource =>
    ({ ...policy(field, version), section: 'backend', dispensable: true }) as Resource

  it.each([
    ['unknown policy', () => encoded(given('quantumCertificate', 1))],
    ['unknown version', () => encoded(given('gatewayCertificate', 99))],
  ])('is ignored and reported, and no request is refused (%s)', async (_, make) => {
    const answer = await controller.send([...base(), make()])
    expect(refusalsOf(answer)).toEqual([
      {
        key: make()[0],
        code: 'resource_partly_known',
        message: expect.stringMatching(/the policy is skipped/),
      },
    ])
    expect(await statusOf()).toBe(200)
  })
})

describe('a controller that is older than its proxy', () => {
  it('serves it, and reports rejections with an unknown reason', async () => {
    const manifests = manifest(gatewayOf(port), staticBackend('a', upstream.port), routeOf)
    rig.write('all.yaml', manifests)
    const plane = await rig.controlPlane()
    const client = new BareClient({ address: plane.address })
    const node = { name: 'newer-1', gateway: edge, addresses: ['10.0.0.1'], version: '99' }
    // Field 999 of the request, and of the node inside it.
    const more = Buffer.concat([unknownField(1), unknownField(999)])
    client.say({ node }, more)
    const pushed = await client.next()
    const keys = pushed.upserted.map(({ key }) => key)
    expect(keys).toEqual(expect.arrayContaining([listenerKey, route().key]))
    const rejection = { key: route().key, code: 'quantum_failure', message: 'entangled' }
    const rejected = { rejections: [rejection], omitted: 0, message: 'entangled' }
    client.say({ nonce: pushed.nonce, rejected }, more)
    await plane.condition('HTTPRoute', 'app', 'Programmed', 'False', /newer-1.*entangled/)
    client.accept(pushed)
    await waitFor('the end of it', async () => {
      const { parents = [] } = (await plane.status('HTTPRoute', 'app')) as {
        parents?: { conditions: { type: string }[] }[]
      }
      return parents[0]?.conditions.every(({ type }) => type !== 'Programmed')
    })
    client.close()
  })
})

describe('a proxy that cannot apply a resource', () => {
  const broken = (): BareResource => {
    const resource = route() as Extract<Resource, { type: 'route' }>
    const path = { type: 'RegularExpression' as const, value: '(' }
    return encoded({ ...resource, matches: [{ path, headers: [], query: [] }] }, '2')
  }

  it('keeps the last good version of a route, reports the bad one, and applies the next one', async () => {
    await controller.send(base())
    const answer = await controller.send([broken()])
    expect(refusalsOf(answer)).toMatchObject([{ key: route().key, code: 'rule_unusable' }])
    expect(await statusOf()).toBe(200)
    expect(refusalsOf(await controller.send([encoded(route('/only'), '3')]))).toEqual([])
    await waitFor('the new version', async () => (await statusOf()) === 404)
  })

  it('keeps the good version over a restart, and requests the rejected one again', async () => {
    await controller.send(base())
    await controller.send([broken()])
    await proxy.saved()
    await proxy.stop()
    controller.requests.length = 0
    await proxy.start()
    expect(await statusOf()).toBe(200)
    const { versions } = await controller.answer(({ node }) => node !== undefined)
    expect(versions).toEqual(
      new Map([
        [listenerKey, '1'],
        ['backend/default/a', '1'],
        [route().key, ''],
      ]),
    )
  })
})
