import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

/** One response header for each target, each under its own name, so that all that apply show. */
const mark = (name: string) => ({
  traffic: { headerModifiers: { response: { set: [{ name: 'x-target', value: name }] } } },
})

const upstream = useUpstream()
const port = await freePort()
const setPort = await freePort()
const running = useGateway(() => {
  const rules = [{ backendRefs: [toBackend('main')] }]
  const host = (name: string) => [`${name}.example.com`]
  return {
    manifests: [
      gateway(port, {
        listeners: [
          { name: 'http', port, protocol: 'HTTP' },
          { name: 'named', port, protocol: 'HTTP', hostname: 'listener.example.com' },
        ],
        allowedListeners: { namespaces: { from: 'Same' } },
      }),
      {
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'ListenerSet',
        metadata: { name: 'more' },
        spec: {
          parentRef: { name: 'edge' },
          listeners: [
            { name: 'one', port: setPort, protocol: 'HTTP', hostname: 'one.example.com' },
            { name: 'two', port: setPort, protocol: 'HTTP', hostname: 'two.example.com' },
          ],
        },
      },
      staticBackend('main', upstream.port),
      ...service('svc', [upstream.port]),
      httpRoute('plain', { hostnames: host('plain'), rules }),
      httpRoute('early', { hostnames: host('early'), rules }),
      httpRoute('listener', { parentRefs: [{ name: 'edge', sectionName: 'named' }], rules }),
      httpRoute('route', { hostnames: host('route'), rules }),
      httpRoute('rule', { hostnames: host('rule'), rules: [{ name: 'only', ...rules[0] }] }),
      httpRoute('in-set', { parentRefs: [{ kind: 'ListenerSet', name: 'more' }], rules }),
      httpRoute('service', {
        hostnames: host('service'),
        rules: [{ backendRefs: [{ name: 'svc', port: 80 }] }],
      }),
      policy('gateway', 'Gateway/edge', mark('gateway')),
      policy('listener', 'Gateway/edge#named', mark('listener')),
      policy('set', 'ListenerSet/more', mark('set')),
      policy('entry', 'ListenerSet/more#two', mark('entry')),
      policy('route', 'HTTPRoute/route', mark('route')),
      policy('rule', 'HTTPRoute/rule#only', mark('rule')),
      policy('on-service', 'Service/svc', mark('service')),
      policy('on-backend', 'GatewayBackend/main', mark('backend')),
      policy('early', 'HTTPRoute/early', {
        traffic: { phase: 'PreRouting', transformation: { request: { remove: ['x'] } } },
      }),
    ],
  }
})

describe('traffic settings [PolicySpec.traffic] [GatewayPolicy.spec]', () => {
  it.each([
    ['plain', 'gateway'],
    ['listener', 'listener'],
    ['route', 'route'],
    ['rule', 'rule'],
  ])('[PolicySpec.traffic.target] for %s come from the %s', async (name, target) => {
    const { headers } = await running.send(port, { host: `${name}.example.com` })
    expect(headers['x-target']).toBe(target)
  })

  it.each([
    ['one', 'set'],
    ['two', 'entry'],
  ])(
    '[PolicySpec.traffic.target] on listener %s of a ListenerSet come from the %s',
    async (name, target) => {
      const { status, headers } = await running.send(setPort, { host: `${name}.example.com` })
      expect([status, headers['x-target']]).toEqual([200, target])
    },
  )

  it.each([
    ['on-service', 'Service'],
    ['on-backend', 'GatewayBackend'],
  ])('[PolicySpec.traffic.target] %s are refused, and change nothing', async (name, kind) => {
    const condition = await running.condition('GatewayPolicy', name, 'Accepted', 'False')
    expect(condition.message).toContain(`spec.traffic cannot target ${kind}; use Gateway, `)
    const { headers } = await running.send(port, { host: 'service.example.com' })
    expect(headers['x-target']).toBe('gateway')
  })

  it('[Traffic.phase=PreRouting] of phase PreRouting are refused on a route, and requests that they would protect are refused', async () => {
    const condition = await running.condition('GatewayPolicy', 'early', 'Accepted', 'False')
    expect(condition.message).toContain('phase PreRouting needs a Gateway')
    expect((await running.send(port, { host: 'early.example.com' })).status).toBe(500)
  })
})

describe('objects that exist without a manifest', () => {
  it('[GatewayClass.default] is the class agentgateway, accepted', async () => {
    const status = await running.status('GatewayClass', 'agentgateway', '')
    expect(status?.conditions).toMatchObject([{ type: 'Accepted', status: 'True' }])
  })
})

describe('a backend [GatewayBackend.spec]', () => {
  it('without a spec is refused by its path', async () => {
    const { mkdtempSync, writeFileSync, rmSync } = await import('node:fs')
    const folder = mkdtempSync(`${running.folder}/invalid-`)
    writeFileSync(
      `${folder}/backend.yaml`,
      manifest({ ...staticBackend('bare', 1), spec: undefined }),
    )
    const { code, stdout } = await sluice('validate', '-f', folder)
    rmSync(folder, { recursive: true })
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/GatewayBackend default\/bare: spec: is required/),
    ])
  })

  it('with a spec is reached', async () => {
    expect((await running.send(port, { host: 'plain.example.com' })).status).toBe(200)
  })
})
