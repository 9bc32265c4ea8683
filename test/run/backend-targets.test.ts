import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  hostOf,
  httpRoute,
  policy,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

/** A credential that tells which policy has added it. */
const mark = (level: string) => ({ backend: { auth: { key: level } } })
const routed = (name: string, backends: object[], section?: string) =>
  httpRoute(name, {
    hostnames: [hostOf(name)],
    ...(section && { parentRefs: [{ name: 'edge', sectionName: section }] }),
    rules: [{ name: 'only', backendRefs: backends }],
  })

const upstream = useUpstream()
const port = await freePort()
const special = await freePort()
const more = await freePort()
const running = useGateway(() => {
  const listeners = [
    { name: 'http', port, protocol: 'HTTP' },
    { name: 'special', port: special, protocol: 'HTTP' },
  ]
  const allowedListeners = { namespaces: { from: 'Same' } }
  const host = { host: '127.0.0.1', port: upstream.port }
  const provider = (name: string) => ({ name, vendorA: {}, ...host })
  return {
    manifests: [
      gateway(port, { listeners, allowedListeners }),
      {
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'ListenerSet',
        metadata: { name: 'more' },
        spec: {
          parentRef: { name: 'edge' },
          listeners: [{ name: 'extra', port: more, protocol: 'HTTP' }],
        },
      },
      staticBackend('main', upstream.port),
      staticBackend('other', upstream.port),
      staticBackend('own', upstream.port),
      staticBackend('scoped', upstream.port),
      aiBackend('models', { groups: [{ providers: [provider('one'), provider('two')] }] }),
      ...service('svc', [upstream.port]),
      ...service('other-svc', [upstream.port]),
      routed('plain', [toBackend('main')]),
      routed('listener', [toBackend('main')], 'special'),
      httpRoute('set', {
        hostnames: [hostOf('set')],
        parentRefs: [{ group: 'gateway.networking.k8s.io', kind: 'ListenerSet', name: 'more' }],
        rules: [{ backendRefs: [toBackend('main')] }],
      }),
      routed('route', [toBackend('main'), toBackend('other')]),
      routed('rule', [toBackend('main')]),
      routed('service', [{ name: 'svc', port: 80 }]),
      routed('by-number', [{ name: 'other-svc', port: 80 }]),
      routed('backend', [toBackend('own')]),
      routed('models', [toBackend('models')]),
      routed('scoped', [toBackend('scoped')]),
      policy('gateway', 'Gateway/edge', mark('gateway')),
      policy('listener', 'Gateway/edge#special', mark('listener')),
      policy('set', 'ListenerSet/more', mark('set')),
      policy('route', 'HTTPRoute/route', mark('route')),
      policy('rule', 'HTTPRoute/rule#only', mark('rule')),
      policy('service', 'Service/svc#http', mark('service')),
      policy('by-number', 'Service/other-svc#80', mark('by-number')),
      policy('backend', 'GatewayBackend/own', mark('backend')),
      policy('models', 'GatewayBackend/models', mark('models')),
      policy('one', 'GatewayBackend/models#one', mark('one')),
      policy('two', 'GatewayBackend/models#two', mark('two')),
      policy('scoped', 'GatewayBackend/scoped', {
        backend: { ai: { modelAliases: { fast: 'small' } }, auth: { key: 'scoped' } },
      }),
    ],
  }
})

/** The credential that the upstream was shown. */
async function shown(name: string, through = port) {
  await running.send(through, { host: hostOf(name) })
  return upstream.received.at(-1)?.headers.authorization
}

describe('backend settings [PolicySpec.backend]', () => {
  it.each(['route', 'rule', 'service', 'by-number', 'backend'])(
    '[PolicySpec.backend.target] a policy on a %s takes precedence',
    async (name) => {
      expect(await shown(name)).toBe(`Bearer ${name}`)
    },
  )

  it('[PolicySpec.backend.target] [PolicySpec.backend.grouping] a policy on a Gateway, listener or ListenerSet covers every backend behind it', async () => {
    expect(await shown('plain')).toBe('Bearer gateway')
    expect(await shown('listener', special)).toBe('Bearer listener')
    expect(await shown('set', more)).toBe('Bearer set')
  })

  it('[PolicySpec.backend.grouping] a policy on a route covers each of its backends', async () => {
    const seen = await Promise.all(Array.from({ length: 8 }, () => shown('route')))
    expect(new Set(seen)).toEqual(new Set(['Bearer route']))
  })

  it('[PolicySpec.backend.target] a policy can target one provider of a backend', async () => {
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] })
    const headers = { 'content-type': 'application/json' }
    const path = '/v1/chat/completions'
    const known = new Set(['Bearer one', 'Bearer two'])
    for (let times = 0; times < 4; times++) {
      await running.send(port, { method: 'POST', host: hostOf('models'), path, headers, body })
      expect(known).toContain(upstream.received.at(-1)?.headers.authorization)
    }
  })

  it('[BackendFull.scope] settings for another type of backend are ignored and reported', async () => {
    expect(await shown('scoped')).toBe('Bearer scoped')
    const { message } = await running.condition('GatewayPolicy', 'scoped', 'Accepted', 'True')
    expect(message).toContain('spec.backend.ai is ignored on GatewayBackend default/scoped')
  })
})
