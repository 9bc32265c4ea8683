import { describe, expect, it } from 'vitest'
import { useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { outline, runImport, useImport } from './rig.ts'

const port = await freePort()
const main = useUpstream('main')
const next = useUpstream('next')

const service = (name: string, upstream: { port: number }) => `
apiVersion: v1
kind: Service
metadata: { name: ${name}, namespace: shop }
spec: { ports: [{ name: web, port: 80, targetPort: ${upstream.port} }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: ${name}, namespace: shop, labels: { kubernetes.io/service-name: ${name} } }
addressType: IPv4
ports: [{ name: web, port: ${upstream.port} }]
endpoints: [{ addresses: [127.0.0.1] }]
`
const virtualService = (name: string, http: string) =>
  `apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: { name: ${name}, namespace: shop }\nspec:\n  hosts: [shop.example.com]\n  gateways: [edge]\n  http: [${http}]\n`
const to = (host: string, more = '') =>
  `{ destination: { host: ${host}, port: { number: 80 } }${more} }`

const objects = () =>
  [
    service('main', main),
    service('next', next),
    `apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: { name: edge, namespace: shop }\nspec: { selector: { istio: ingress }, servers: [{ port: { number: ${port}, name: http, protocol: HTTP }, hosts: ["*"] }] }\n`,
    virtualService(
      'shop',
      [
        `{ match: [{ uri: { prefix: /api } }], rewrite: { uri: / }, headers: { request: { set: { x-edge: "1" } } }, route: [${to('main')}] }`,
        `{ match: [{ uri: { exact: /beta }, headers: { x-team: { prefix: blue } }, method: { exact: GET } }], route: [${to('next.shop.svc.cluster.local')}], timeout: 5s }`,
        `{ match: [{ uri: { prefix: /split/ } }], route: [${to('main', ', weight: 0')}, ${to('next', ', weight: 100')}] }`,
        '{ match: [{ uri: { prefix: /old } }], redirect: { uri: /new, redirectCode: 308 } }',
        '{ match: [{ uri: { exact: /teapot } }], directResponse: { status: 418, body: { string: tea } } }',
      ].join(', '),
    ),
  ].join('---\n')

describe('sluice import of Istio', () => {
  const { gateway, imported } = useImport(() => ({ content: objects() }))
  const get = (path: string, headers: Record<string, string> = {}) =>
    gateway.send(port, { path, host: 'shop.example.com', headers })
  const seen = async (path: string, headers: Record<string, string> = {}) =>
    JSON.parse((await get(path, headers)).body) as Record<string, unknown>

  it('loses nothing, and the result is valid', () => {
    expect(imported()).toMatchObject({ code: 0, validation: { code: 0 } })
    expect(new Set(imported().findings.map(({ kind }) => kind))).toEqual(new Set(['changed']))
  })

  it('keeps matches, weights, rewritten paths, redirects and fixed responses', async () => {
    expect(await seen('/api/a')).toMatchObject({
      upstream: 'main',
      path: '/a',
      headers: { 'x-edge': '1' },
    })
    expect(await seen('/beta', { 'x-team': 'blue-1' })).toMatchObject({ upstream: 'next' })
    expect((await get('/beta', { 'x-team': 'red' })).status).toBe(404)
    expect(await seen('/split/a')).toMatchObject({ upstream: 'next' })
    const moved = await get('/old')
    expect([moved.status, moved.headers.location]).toEqual([
      308,
      expect.stringMatching(/\/new$/) as string,
    ])
    const tea = await get('/teapot')
    expect([tea.status, tea.body]).toEqual([418, 'tea'])
  })
})

describe('what Istio has and Sluice has not', () => {
  it('keeps fractions of a percent of mirrors', async () => {
    const mirror = 'mirror: { host: next, port: { number: 80 } }, mirrorPercentage: { value: 0.4 }'
    const http = `{ route: [${to('main')}], ${mirror} }`
    const { manifests } = await runImport(virtualService('mirrored', http))
    expect(JSON.stringify(manifests)).toMatch(
      /fraction:\\n\s+numerator: 400\\n\s+denominator: 100000/,
    )
  })

  it('is a lost route for matches that would match too much, and a lost protection for policies', async () => {
    const dropped = await runImport(
      virtualService(
        'r',
        `{ match: [{ withoutHeaders: { x-a: { exact: b } } }], route: [${to('main')}] }, { route: [{ destination: { host: main, subset: v2, port: { number: 80 } } }] }`,
      ),
    )
    expect(dropped).toMatchObject({ code: 4, manifests: {} })
    expect(outline(dropped)).toEqual([
      'changed: spec.http',
      'route: spec.http[0].match[0]',
      'route: spec.http[1].route[0].destination.subset',
    ])
    const guarded = await runImport(
      'apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: { name: deny }\nspec: {}\n',
    )
    expect(guarded.code).toBe(3)
  })

  it('admits only routes of the namespace that a host of a Gateway names', async () => {
    const gateway = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: edge, namespace: shop }
spec: { servers: [{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["team-a/a.example.com", "./b.example.com"] }] }
`
    const { manifests } = await runImport(gateway)
    const text = Object.values(manifests).join('\n')
    expect(text).toMatch(
      /from: Selector\s+selector:\s+matchLabels:\s+kubernetes.io\/metadata.name: team-a/,
    )
    expect(text).toContain('from: Same')
    expect(text).not.toContain('from: All')
  })
})
