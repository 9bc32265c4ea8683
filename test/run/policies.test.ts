import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import type { ReceivedRequest } from '../support/upstream.ts'

/** Sets one response header, so that a test can see which policy won. */
const mark = (value: string) => ({
  traffic: { headerModifiers: { response: { set: [{ name: 'x-level', value }] } } },
})

const upstream = useUpstream('main')
const slow = useUpstream('slow', () => undefined)
const port = await freePort()
const running = useGateway(() => {
  const host = (name: string) => [`${name}.example.com`]
  const rules = [{ backendRefs: [toBackend('main')] }]
  return {
    manifests: {
      'base.yaml': manifest(
        gateway(port, {
          listeners: [
            { name: 'http', port, protocol: 'HTTP' },
            { name: 'special', port, protocol: 'HTTP', hostname: 'listener.example.com' },
          ],
        }),
        staticBackend('main', upstream.port),
        staticBackend('slow', slow.port),
        {
          ...staticBackend('by-name', upstream.port),
          spec: { static: { host: 'localhost', port: upstream.port } },
        },
        ...service('svc', [upstream.port]),
      ),
      'levels.yaml': manifest(
        httpRoute('plain', { hostnames: host('plain'), rules }),
        httpRoute('listener', {
          parentRefs: [{ name: 'edge', sectionName: 'special' }],
          rules,
        }),
        httpRoute('route', { hostnames: host('route'), rules }, { labels: { team: 'red' } }),
        httpRoute('rule', {
          hostnames: host('rule'),
          rules: [
            { name: 'first', matches: [{ path: { value: '/first' } }], ...rules[0] },
            { name: 'other', ...rules[0] },
          ],
        }),
        policy('on-gateway', 'Gateway/edge', mark('gateway')),
        policy('on-listener', 'Gateway/edge#special', mark('listener')),
        policy('on-route', 'HTTPRoute/route', mark('route')),
        policy('on-rule-route', 'HTTPRoute/rule', mark('route')),
        policy('on-rule', 'HTTPRoute/rule#first', mark('rule')),
        policy('younger', 'HTTPRoute/route', mark('younger'), {
          creationTimestamp: '2099-01-01T00:00:00Z',
        }),
      ),
      'others.yaml': manifest(
        httpRoute('direct', { hostnames: host('direct'), rules }),
        policy('direct', 'HTTPRoute/direct', {
          traffic: { directResponse: { status: 418, body: 'short and stout' } },
        }),
        httpRoute('computed', { hostnames: host('computed'), rules }),
        policy('computed', 'HTTPRoute/computed', {
          traffic: {
            directResponse: {
              status: 201,
              headers: [
                { name: 'content-type', value: '"text/plain"' },
                { name: 'x-path', value: 'request.path' },
                { name: 'x-bad', value: '"a\\r\\nx-forged: 1"' },
                { name: 'x-none', value: 'request.headers["x-missing"]' },
                { name: 'content-length', value: '"0"' },
              ],
              bodyExpression: '"you sent " + string(request.body)',
            },
          },
        }),
        httpRoute('empty', { hostnames: host('empty'), rules }),
        policy('empty', 'HTTPRoute/empty', { traffic: { directResponse: { status: 204 } } }),
        httpRoute('halves', { hostnames: host('halves'), rules }),
        policy('halves', 'HTTPRoute/halves', {
          traffic: {
            headerModifiers: {
              request: { set: [{ name: 'x-in', value: '1' }], remove: ['x-out'] },
            },
          },
        }),
        httpRoute('named', {
          hostnames: host('named'),
          rules: [{ backendRefs: [toBackend('by-name')] }],
        }),
        httpRoute('kept', {
          hostnames: host('kept'),
          rules: [{ backendRefs: [toBackend('by-name')] }],
        }),
        policy('kept', 'HTTPRoute/kept', { traffic: { hostRewrite: { mode: 'None' } } }),
        httpRoute('service', {
          hostnames: host('service'),
          rules: [{ backendRefs: [{ name: 'svc', port: 80 }] }],
        }),
        httpRoute('auto', {
          hostnames: host('auto'),
          rules: [{ backendRefs: [{ name: 'svc', port: 80 }] }],
        }),
        policy('auto', 'HTTPRoute/auto', { traffic: { hostRewrite: { mode: 'Auto' } } }),
        httpRoute('rewritten', {
          hostnames: host('rewritten'),
          rules: [
            {
              filters: [{ type: 'URLRewrite', urlRewrite: { hostname: 'rule.example.com' } }],
              backendRefs: [toBackend('by-name')],
            },
          ],
        }),
        policy('rewritten', 'HTTPRoute/rewritten', { traffic: { hostRewrite: { mode: 'Auto' } } }),
        httpRoute('late', {
          hostnames: host('late'),
          rules: [{ backendRefs: [toBackend('slow')] }],
        }),
        policy('late', 'HTTPRoute/late', { traffic: { timeouts: { request: '100ms' } } }),
        policy('late-gateway', 'Gateway/edge', { traffic: { timeouts: { request: '1ms' } } }),
        {
          apiVersion: 'sluice.dev/v1alpha1',
          kind: 'GatewayPolicy',
          metadata: { name: 'selected' },
          spec: {
            targetSelectors: [
              {
                group: 'gateway.networking.k8s.io',
                kind: 'HTTPRoute',
                matchLabels: { team: 'red' },
              },
            ],
            traffic: { hostRewrite: { mode: 'None' } },
          },
        },
      ),
      'refused.yaml': manifest(
        httpRoute('guarded', { hostnames: host('guarded'), rules }),
        policy('guarded', 'HTTPRoute/guarded', {
          traffic: { extProc: { backendRef: toBackend('absent') } },
        }),
        httpRoute('encrypted', {
          hostnames: host('encrypted'),
          rules: [{ backendRefs: [toBackend('encrypted')] }],
        }),
        staticBackend('encrypted', upstream.port, {
          tls: { caCertificateRefs: [{ name: 'absent' }] },
        }),
        httpRoute('demanded', {
          hostnames: host('demanded'),
          rules: [{ backendRefs: [{ name: 'demands-tls', port: 80 }] }],
        }),
        ...service('demands-tls', [upstream.port]),
        {
          apiVersion: 'gateway.networking.k8s.io/v1',
          kind: 'BackendTLSPolicy',
          metadata: { name: 'demanded' },
          spec: {
            targetRefs: [{ group: '', kind: 'Service', name: 'demands-tls' }],
            validation: { hostname: 'a.example.com', wellKnownCACertificates: 'acme.com/roots' },
          },
        },
        httpRoute('observed', { hostnames: host('observed'), rules }),
        policy('frontend-on-route', 'HTTPRoute/observed', {
          frontend: { http: { http1MaxHeaders: 5 } },
        }),
        policy('nowhere', 'HTTPRoute/absent', mark('nowhere')),
      ),
    },
  }
})

const send = (name: string, request: TestRequest = {}) =>
  running.send(port, { host: `${name}.example.com`, ...request })
const received = async (name: string, request: TestRequest = {}) =>
  JSON.parse((await send(name, request)).body) as ReceivedRequest

describe('precedence [PolicySpec.precedence.traffic] [rule.merge]', () => {
  it.each([
    ['plain', '/', 'gateway'],
    ['listener', '/', 'listener'],
    ['route', '/', 'route'],
    ['rule', '/', 'route'],
    ['rule', '/first', 'rule'],
  ])('on %s%s the policy on the %s takes precedence', async (name, path, level) => {
    expect((await send(name, { path })).headers['x-level']).toBe(level)
  })

  it('replaces the whole field: the request half of one policy drops the response half of another', async () => {
    const { headers, body } = await send('halves', { headers: { 'x-out': 'secret' } })
    expect(headers).not.toHaveProperty('x-level')
    const upstreamSaw = (JSON.parse(body) as ReceivedRequest).headers
    expect(upstreamSaw).toMatchObject({ 'x-in': '1' })
    expect(upstreamSaw).not.toHaveProperty('x-out')
  })
})

describe('direct responses', () => {
  it('[Traffic.directResponse] [DirectResponse.status] [DirectResponse.body] [error.9] answers without a backend', async () => {
    const before = upstream.received.length
    const { status, body } = await send('direct')
    expect([status, body]).toEqual([418, 'short and stout'])
    expect(upstream.received).toHaveLength(before)
  })

  it('computes fields and the body, and leaves out what cannot be sent', async () => {
    const request = { host: 'computed.example.com', method: 'POST', path: '/a?b=c', body: 'hello' }
    const { status, body, headers } = await running.send(port, request)
    expect([status, body]).toEqual([201, 'you sent hello'])
    expect(headers).toMatchObject({ 'content-type': 'text/plain', 'x-path': '/a' })
    for (const name of ['x-bad', 'x-forged', 'x-none']) expect(headers).not.toHaveProperty(name)
  })

  it('[DirectResponse.body] sends no body if none is configured', async () => {
    const { status, body } = await send('empty')
    expect([status, body]).toEqual([204, ''])
  })
})

describe('host rewrite', () => {
  it('[HostnameRewrite.default] sends the name of a hostname destination, and keeps the host for a Service', async () => {
    expect((await received('named')).headers.host).toBe(`localhost:${upstream.port}`)
    expect((await received('service')).headers.host).toBe('service.example.com')
    expect((await received('plain')).headers.host).toBe('plain.example.com')
  })

  it('[Traffic.hostRewrite] [HostnameRewrite.mode=None] keeps the original host', async () => {
    expect((await received('kept')).headers.host).toBe('kept.example.com')
  })

  it('[HostnameRewrite.mode=Auto] sets the host from the destination', async () => {
    expect((await received('auto')).headers.host).toMatch(/^svc\.default\.svc\.cluster\.local/)
  })

  it('[HostnameRewrite.urlRewrite] leaves a host that a filter has set', async () => {
    expect((await received('rewritten')).headers.host).toBe('rule.example.com')
  })
})

describe('timeouts of policies', () => {
  it('[Traffic.timeouts] [Timeouts.request] ends a request that takes longer', async () => {
    expect((await send('late')).status).toBe(504)
  })

  it('[Traffic.timeouts] has no effect on a Gateway, which the status reports', async () => {
    expect((await send('plain')).status).toBe(200)
    const condition = await running.condition('GatewayPolicy', 'late-gateway', 'Accepted', 'True')
    expect(condition.message).toContain('spec.traffic.timeouts is ignored on a Gateway')
  })
})

describe('header modifiers', () => {
  it('[Traffic.headerModifiers] [HeaderModifiers.request] changes the request', async () => {
    expect((await received('halves')).headers).toMatchObject({ 'x-in': '1' })
  })

  it('[Traffic.headerModifiers] [HeaderModifiers.response] changes responses that the gateway makes too', async () => {
    expect((await send('direct')).headers['x-level']).toBe('gateway')
  })
})

describe('statuses of policies', () => {
  it('[PolicyStatus.ancestors] [GatewayPolicy.status] names each Gateway and this controller', async () => {
    const status = await running.status('GatewayPolicy', 'on-route')
    expect(status?.ancestors).toMatchObject([
      {
        ancestorRef: { kind: 'Gateway', namespace: 'default', name: 'edge' },
        controllerName: 'sluice.dev/gateway-controller',
        conditions: [
          { type: 'Accepted', status: 'True' },
          { type: 'Attached', status: 'True' },
        ],
      },
    ])
  })

  it('[PolicySpec.targetSelectors] attaches to every object with the labels', async () => {
    await running.condition('GatewayPolicy', 'selected', 'Attached', 'True')
  })

  it('[PolicySpec.targetRefs] names a target that does not exist', async () => {
    const condition = await running.condition('GatewayPolicy', 'nowhere', 'Attached', 'False')
    expect(condition.message).toContain('HTTPRoute default/absent does not exist')
  })

  it('[PolicySpec.frontend.target] refuses frontend settings on a route', async () => {
    const condition = await running.condition(
      'GatewayPolicy',
      'frontend-on-route',
      'Accepted',
      'False',
    )
    expect(condition.message).toContain('spec.frontend cannot target HTTPRoute; use Gateway')
    expect((await send('observed')).status).toBe(200)
  })
})

describe('a protecting policy that cannot be enforced', () => {
  it.each([
    ['guarded', 'GatewayPolicy', 'guarded', 'GatewayBackend default/absent does not exist'],
    ['encrypted', 'GatewayBackend', 'encrypted', 'ConfigMap absent does not exist'],
    ['demanded', 'BackendTLSPolicy', 'demanded', 'acme.com/roots is not known'],
  ])('answers 500 on %s and reports the reason', async (name, kind, object, message) => {
    const before = upstream.received.length
    expect((await send(name)).status).toBe(500)
    expect(upstream.received).toHaveLength(before)
    const condition = await running.condition(kind, object, 'Accepted', 'False')
    expect(condition.message).toContain(message)
  })
})
