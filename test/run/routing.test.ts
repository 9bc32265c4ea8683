import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import {
  gateway,
  httpRoute,
  manifest,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import type { ReceivedRequest } from '../support/upstream.ts'

const a = useUpstream('a')
const b = useUpstream('b')
const port = await freePort()
const other = await freePort()
const running = useGateway(() => {
  const toA = [toBackend('a')]
  const toB = [toBackend('b')]
  const manifests = {
    'gateway.yaml': manifest(
      gateway(port, {
        listeners: [
          { name: 'all', port, protocol: 'HTTP' },
          { name: 'shop', port, protocol: 'HTTP', hostname: '*.shop.example.com' },
          { name: 'second', port: other, protocol: 'HTTP' },
        ],
      }),
      staticBackend('a', a.port),
      staticBackend('b', b.port),
      ...service('svc', [b.port]),
    ),
    'routes.yaml': manifest(
      httpRoute('matches', {
        parentRefs: [{ name: 'edge', sectionName: 'all' }],
        hostnames: ['match.example.com'],
        rules: [
          { matches: [{ path: { type: 'Exact', value: '/exact' } }], backendRefs: toA },
          { matches: [{ path: { type: 'PathPrefix', value: '/pre' } }], backendRefs: toA },
          { matches: [{ path: { type: 'PathPrefix', value: '/pre/longer' } }], backendRefs: toB },
          {
            matches: [{ path: { type: 'RegularExpression', value: '/v[0-9]+/.*' } }],
            backendRefs: toB,
          },
          { matches: [{ path: { value: '/method' }, method: 'POST' }], backendRefs: toB },
          { matches: [{ path: { value: '/method' } }], backendRefs: toA },
          {
            matches: [{ path: { value: '/head' }, headers: [{ name: 'X-Team', value: 'red' }] }],
            backendRefs: toB,
          },
          { matches: [{ path: { value: '/head' } }], backendRefs: toA },
          {
            matches: [{ path: { value: '/query' }, queryParams: [{ name: 'v', value: '2' }] }],
            backendRefs: toB,
          },
          { matches: [{ path: { value: '/query' } }], backendRefs: toA },
        ],
      }),
      httpRoute('service', {
        parentRefs: [{ name: 'edge', sectionName: 'all' }],
        hostnames: ['svc.example.com'],
        rules: [{ backendRefs: [{ name: 'svc', port: 80 }] }],
      }),
      httpRoute('wild', {
        parentRefs: [{ name: 'edge', sectionName: 'all' }],
        hostnames: ['*.example.com'],
        rules: [{ backendRefs: toB }],
      }),
      httpRoute('shop', {
        parentRefs: [{ name: 'edge', sectionName: 'shop' }],
        rules: [{ matches: [{ path: { value: '/only' } }], backendRefs: toA }],
      }),
      httpRoute('second', {
        parentRefs: [{ name: 'edge', port: other }],
        rules: [{ backendRefs: toB }],
      }),
    ),
    'broken-references.yaml': manifest(
      httpRoute('broken', {
        parentRefs: [{ name: 'edge', sectionName: 'all' }],
        hostnames: ['broken.example.com'],
        rules: [
          {
            matches: [{ path: { value: '/missing' } }],
            backendRefs: [{ name: 'nobody', port: 80 }],
          },
          { matches: [{ path: { value: '/none' } }] },
          { matches: [{ path: { value: '/zero' } }], backendRefs: [toBackend('a', { weight: 0 })] },
          {
            matches: [{ path: { value: '/elsewhere' } }],
            backendRefs: [{ name: 'svc', namespace: 'other', port: 80 }],
          },
        ],
      }),
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'svc', namespace: 'other' },
        spec: { ports: [{ port: 80 }] },
      },
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'empty' },
        spec: { ports: [{ port: 80 }] },
      },
      httpRoute('empty', {
        parentRefs: [{ name: 'edge', sectionName: 'all' }],
        hostnames: ['empty.example.com'],
        rules: [{ backendRefs: [{ name: 'empty', port: 80 }] }],
      }),
    ),
  }
  return { manifests }
})

async function upstreamOf(request: TestRequest, at = port): Promise<string> {
  const { status, body } = await running.send(at, request)
  return status === 200 ? (JSON.parse(body) as ReceivedRequest).upstream : `${status} ${body}`
}

describe('HTTPRoute matching', () => {
  const host = 'match.example.com'
  it.each<[string, TestRequest, string]>([
    ['an exact path', { path: '/exact' }, 'a'],
    ['not below an exact path', { path: '/exact/more' }, 'b'],
    ['a prefix', { path: '/pre/x' }, 'a'],
    ['the prefix itself with a slash', { path: '/pre/' }, 'a'],
    ['not a prefix within a segment', { path: '/prefix' }, 'b'],
    ['the longer prefix', { path: '/pre/longer/x' }, 'b'],
    ['a regular expression over the whole path', { path: '/v12/items' }, 'b'],
    ['a method before no method', { path: '/method', method: 'POST' }, 'b'],
    ['no method for others', { path: '/method' }, 'a'],
    ['a header by name in any case', { path: '/head', headers: { 'x-TEAM': 'red' } }, 'b'],
    ['no header for other values', { path: '/head', headers: { 'x-team': 'blue' } }, 'a'],
    ['a query parameter', { path: '/query?v=2' }, 'b'],
    ['the first of repeated query parameters', { path: '/query?v=1&v=2' }, 'a'],
    [
      'the host in any case, without its port',
      { path: '/exact', host: `MATCH.example.com:${1}` },
      'a',
    ],
  ])('[dataplane.path] matches %s', async (_, request, expected) => {
    expect(await upstreamOf({ host, ...request })).toBe(expected)
  })
})

describe('backends of routes', () => {
  it('[dataplane.route] reaches the endpoints of a Service by name and port', async () => {
    expect(await upstreamOf({ host: 'svc.example.com' })).toBe('b')
  })

  it('[BackendSpec.static] [StaticBackend.host] [StaticBackend.port] reaches a fixed host and port', async () => {
    const before = a.received.length
    expect(await upstreamOf({ host: 'match.example.com', path: '/exact?q=1' })).toBe('a')
    expect(a.received.slice(before).map(({ path }) => path)).toEqual(['/exact?q=1'])
  })

  it.each([
    ['a missing Service', 'broken.example.com', '/missing', 500],
    ['a rule without backends', 'broken.example.com', '/none', 500],
    ['weights that are all 0', 'broken.example.com', '/zero', 500],
    ['another namespace without a grant', 'broken.example.com', '/elsewhere', 500],
    ['a Service without endpoints', 'empty.example.com', '/', 503],
  ])('answers for %s', async (_, host, path, status) => {
    expect((await running.send(port, { host, path })).status).toBe(status)
  })

  it('reports in the conditions which reference does not resolve', async () => {
    const condition = await running.condition('HTTPRoute', 'broken', 'ResolvedRefs', 'False')
    expect(condition).toMatchObject({ reason: 'BackendNotFound' })
    expect(condition.message).toContain('default/nobody')
  })
})

describe('listeners', () => {
  it('keeps routes of one listener out of another', async () => {
    expect(await upstreamOf({ host: 'x.shop.example.com', path: '/only' })).toBe('a')
    expect((await running.send(port, { host: 'x.shop.example.com', path: '/' })).status).toBe(404)
  })

  it('serves each port with its own routes', async () => {
    expect(await upstreamOf({ host: 'nobody.test' }, other)).toBe('b')
    expect((await running.send(port, { host: 'nobody.test' })).status).toBe(404)
  })

  it('forwards OPTIONS * if a route matches every path', async () => {
    const asterisk = { method: 'OPTIONS', path: '*' }
    const { body } = await running.send(other, { host: 'nobody.test', ...asterisk })
    expect(JSON.parse(body)).toMatchObject({ upstream: 'b', ...asterisk })
    const refused = await running.send(port, { host: 'x.shop.example.com', ...asterisk })
    expect(refused.status).toBe(404)
  })

  it('[GatewayBackend.status] [BackendStatus.conditions] shows Programmed in the status', async () => {
    await running.condition('Gateway', 'edge', 'Programmed', 'True')
    const gatewayStatus = await running.status('Gateway', 'edge')
    const listeners = gatewayStatus?.listeners as { name: string; attachedRoutes: number }[]
    expect(listeners.map(({ name, attachedRoutes }) => [name, attachedRoutes])).toEqual([
      ['all', 5],
      ['shop', 1],
      ['second', 1],
    ])
    const backend = await running.status('GatewayBackend', 'a')
    expect(backend?.conditions).toMatchObject([{ type: 'Accepted', status: 'True' }])
  })
})
