import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { DeltaResponse } from '../../src/control/wire/discovery.ts'
import { Authority } from '../support/certificates.ts'
import { ClusterRig, type ControlPlane } from '../support/cluster-rig.ts'
import { manifest, tlsSecret } from '../support/manifests.ts'
import { BareClient, edgeNode } from '../support/xds-client.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

type Fields = Readonly<Record<string, unknown>>

const gatewayApi = 'gateway.networking.k8s.io/v1'
const own = 'sluice.dev/v1alpha1'
const object = (apiVersion: string, kind: string, name: string, fields: Fields): Fields => ({
  apiVersion,
  kind,
  metadata: { name, namespace: `${name.split('-')[0]}-space` },
  ...fields,
})

/**
 * All objects of one tenant, in its own namespace; every name and every value begins with the name
 * of the tenant. `shared-…` belongs to no tenant.
 */
function tenant(name: string, authority: Authority): Fields[] {
  const route = { apiVersion: gatewayApi, kind: 'HTTPRoute' }
  const toOwn = { group: 'sluice.dev', kind: 'GatewayBackend', name: `${name}-backend` }
  const toService = { name: `${name}-service`, port: 80 }
  const target = (kind: string, of: string, more: Fields = {}) => ({
    targetRefs: [{ group: 'gateway.networking.k8s.io', kind, name: of, ...more }],
  })
  const policy = (part: string, spec: Fields) =>
    object(own, 'GatewayPolicy', `${name}-${part}`, { spec })
  const header = {
    headerModifiers: { request: { set: [{ name: 'x-who', value: `${name}-set` }] } },
  }
  const pair = tlsSecret(`${name}-certificate`, authority.issue([`${name}.example.com`]))
  const all = { namespaces: { from: 'All' } }
  const tls = { certificateRefs: [{ name: `${name}-certificate` }] }
  return [
    { ...pair, metadata: { name: `${name}-certificate`, namespace: `${name}-space` } },
    object('v1', 'Secret', `${name}-token`, { stringData: { Authorization: `${name}-value` } }),
    object('v1', 'Secret', `${name}-users`, {
      stringData: { '.htaccess': `${name}:{SHA}nU4eI71bcnBGqeO0t9tXvY1u5oQ=` },
    }),
    object(gatewayApi, 'Gateway', `${name}-gateway`, {
      spec: {
        gatewayClassName: 'agentgateway',
        allowedListeners: all,
        listeners: [
          { name: `${name}-http`, port: 80, protocol: 'HTTP', allowedRoutes: all },
          { name: `${name}-https`, port: 443, protocol: 'HTTPS', allowedRoutes: all, tls },
          { name: `${name}-tcp`, port: 900, protocol: 'TCP', allowedRoutes: all },
        ],
      },
    }),
    object(gatewayApi, 'ListenerSet', `${name}-set`, {
      spec: {
        parentRef: { name: `${name}-gateway` },
        listeners: [{ name: `${name}-entry`, port: 81, protocol: 'HTTP', allowedRoutes: all }],
      },
    }),
    object('v1', 'Service', `${name}-service`, { spec: { ports: [{ name: 'http', port: 80 }] } }),
    {
      ...object('discovery.k8s.io/v1', 'EndpointSlice', `${name}-slice`, {}),
      metadata: {
        name: `${name}-slice`,
        namespace: `${name}-space`,
        labels: { 'kubernetes.io/service-name': `${name}-service` },
      },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 80 }],
      endpoints: [{ addresses: ['127.0.0.1'], nodeName: `${name}-node` }],
    },
    object(own, 'GatewayBackend', `${name}-backend`, {
      spec: {
        static: { host: `${name}.internal`, port: 80 },
        policies: { auth: { secretRef: { name: `${name}-token` } } },
      },
    }),
    object(route.apiVersion, route.kind, `${name}-route`, {
      spec: {
        parentRefs: [{ name: `${name}-gateway` }, { kind: 'ListenerSet', name: `${name}-set` }],
        hostnames: [`${name}.example.com`],
        rules: [{ name: `${name}-rule`, backendRefs: [toOwn, toService] }],
      },
    }),
    object(gatewayApi, 'TCPRoute', `${name}-stream`, {
      spec: {
        parentRefs: [{ name: `${name}-gateway`, sectionName: `${name}-tcp` }],
        rules: [{ backendRefs: [toService] }],
      },
    }),
    policy('on-gateway', { ...target('Gateway', `${name}-gateway`), traffic: header }),
    policy('on-listener', {
      ...target('Gateway', `${name}-gateway`, { sectionName: `${name}-http` }),
      traffic: { basicAuthentication: { secretRef: { name: `${name}-users` } } },
    }),
    policy('on-set', { ...target('ListenerSet', `${name}-set`), traffic: header }),
    policy('on-route', { ...target('HTTPRoute', `${name}-route`), traffic: header }),
    policy('on-rule', {
      ...target('HTTPRoute', `${name}-route`, { sectionName: `${name}-rule` }),
      traffic: { extAuth: { backendRef: toService, http: { path: `/${name}` } } },
    }),
    policy('on-service', {
      targetRefs: [{ group: '', kind: 'Service', name: `${name}-service` }],
      backend: { auth: { secretRef: { name: `${name}-token` } } },
    }),
    policy('frontend', {
      ...target('Gateway', `${name}-gateway`),
      frontend: { accessLog: { attributes: { add: [{ name: `${name}`, expression: '"1"' }] } } },
    }),
  ]
}

/** A route and a backend that both tenants serve. */
const common: readonly Fields[] = [
  object(gatewayApi, 'HTTPRoute', 'shared-route', {
    spec: {
      parentRefs: ['alpha', 'bravo'].flatMap((name) => [
        { name: `${name}-gateway`, namespace: `${name}-space` },
        { kind: 'ListenerSet', name: `${name}-set`, namespace: `${name}-space` },
      ]),
      rules: [
        { backendRefs: [{ group: 'sluice.dev', kind: 'GatewayBackend', name: 'shared-backend' }] },
      ],
    },
  }),
  object(gatewayApi, 'TCPRoute', 'shared-stream', {
    spec: {
      parentRefs: ['alpha', 'bravo'].map((name) => ({
        name: `${name}-gateway`,
        namespace: `${name}-space`,
        sectionName: `${name}-tcp`,
      })),
      rules: [
        { backendRefs: [{ group: 'sluice.dev', kind: 'GatewayBackend', name: 'shared-backend' }] },
      ],
    },
  }),
  object(own, 'GatewayBackend', 'shared-backend', {
    spec: { static: { host: 'shared.internal', port: 80 } },
  }),
]

let rig: ClusterRig
let plane: ControlPlane
beforeAll(async () => {
  const authority = new Authority()
  rig = new ClusterRig({
    'alpha.yaml': manifest(...tenant('alpha', authority)),
    'bravo.yaml': manifest(...tenant('bravo', authority)),
    'common.yaml': manifest(...common),
  })
  authority.dispose()
  plane = await rig.controlPlane()
})
afterAll(() => rig.dispose())

async function received(name: string): Promise<DeltaResponse['upserted']> {
  const client = new BareClient({ address: plane.address })
  const gateway = { namespace: `${name}-space`, name: `${name}-gateway` }
  client.hello({ ...edgeNode, name: `${name}-1`, gateway })
  const all: DeltaResponse['upserted'][number][] = []
  for (let isPartial = true; isPartial; ) {
    const response = await client.next()
    all.push(...response.upserted)
    client.accept(response)
    ;({ isPartial } = response)
  }
  client.close()
  return all
}

const text = (resources: DeltaResponse['upserted']) =>
  resources.map(({ key, body }) => `${key} ${Buffer.from(body).toString('latin1')}`).join('\n')

describe('the configuration of a proxy', () => {
  it.each([
    ['alpha', 'bravo'],
    ['bravo', 'alpha'],
  ])('contains everything that the Gateway of %s needs, and nothing of %s', async (own, other) => {
    const resources = await received(own)
    const types = resources.map(({ key }) => key.slice(0, key.indexOf('/')))
    const count = (type: string) => types.filter((one) => one === type).length
    // Three listeners and an entry; certificate, key, token, and users with their passwords.
    expect(count('listener')).toBe(4)
    expect(count('secret')).toBe(4)
    expect([count('route'), count('stream'), count('backend')]).toEqual([2, 2, 2])
    expect([count('service'), count('workload')]).toEqual([1, 1])
    expect(count('policy')).toBe(8)
    expect(text(resources)).toContain(`${own}-value`)
    expect(text(resources)).not.toContain(other)
  })
})
