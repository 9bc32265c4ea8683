import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { alternativesOf } from '../../src/tools/import/traefik/expression.ts'
import { useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { runImport, useImport } from './rig.ts'

const port = await freePort()
const main = useUpstream('main')
const next = useUpstream('next')
const authorizer = useUpstream('authorizer', ({ headers }, response) => {
  response.statusCode = headers.cookie === 'session=good' ? 200 : 401
  response.setHeader('x-user', 'ann')
  response.end()
})

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

const route = (match: string, more = '', target = '{ name: main, port: web }') =>
  `    - { kind: Rule, match: '${match}', services: [${target}]${more} }\n`
const router = (name: string, routes: string, spec = '') =>
  `apiVersion: traefik.io/v1alpha1\nkind: IngressRoute\nmetadata: { name: ${name}, namespace: shop }\nspec:\n  entryPoints: [web]\n${spec}  routes:\n${routes}`
const middleware = (name: string, spec: string) =>
  `apiVersion: traefik.io/v1alpha1\nkind: Middleware\nmetadata: { name: ${name}, namespace: shop }\nspec: ${spec}\n`
const uses = (...names: string[]) =>
  `, middlewares: [${names.map((name) => `{ name: ${name} }`).join(', ')}]`

const hash = `{SHA}${createHash('sha1').update('secret').digest('base64')}`
const host = 'Host(`shop.example.com`)'

const objects = () =>
  [
    service('main', main),
    service('next', next),
    `apiVersion: v1\nkind: Secret\nmetadata: { name: people, namespace: shop }\nstringData: { users: "ann:${hash}" }\n`,
    middleware('strip', '{ stripPrefix: { prefixes: [/api] } }'),
    middleware('people', '{ basicAuth: { secret: people } }'),
    middleware(
      'session',
      `{ forwardAuth: { address: "http://127.0.0.1:${authorizer.port}/check", authRequestHeaders: [cookie], authResponseHeaders: [x-user] } }`,
    ),
    middleware(
      'slow',
      '{ rateLimit: { average: 2, period: 1h, sourceCriterion: { requestHeaderName: X-Team } } }',
    ),
    middleware('internal', '{ ipAllowList: { sourceRange: [10.0.0.0/8] } }'),
    middleware(
      'safe',
      '{ headers: { frameDeny: true, customRequestHeaders: { X-Edge: "1", X-Old: "" } } }',
    ),
    middleware('both', '{ chain: { middlewares: [{ name: safe }, { name: people }] } }'),
    `apiVersion: traefik.io/v1alpha1\nkind: TraefikService\nmetadata: { name: split, namespace: shop }\nspec: { weighted: { services: [{ name: main, port: 80, weight: 0 }, { name: next, port: 80, weight: 1 }] } }\n`,
    router(
      'shop',
      route(`${host} && PathPrefix(\`/api\`) && Method(\`GET\`)`, uses('strip')) +
        route(`${host} && (Path(\`/a\`) || Path(\`/b\`))`, uses('both')) +
        route(`${host} && Path(\`/session\`)`, uses('session')) +
        route(`${host} && Path(\`/slow\`)`, uses('slow')) +
        route(`${host} && Path(\`/internal\`)`, uses('internal')) +
        route(`${host} && Header(\`x-beta\`, \`1\`)`, '', '{ name: split, kind: TraefikService }'),
    ),
  ].join('---\n')

describe('sluice import of Traefik', () => {
  const { gateway, imported } = useImport(() => ({
    content: objects(),
    args: ['--port', String(port)],
  }))
  const get = (path: string, headers: Record<string, string> = {}) =>
    gateway.send(port, { path, host: 'shop.example.com', headers })
  const seen = async (path: string, headers: Record<string, string> = {}) =>
    JSON.parse((await get(path, headers)).body) as {
      upstream: string
      path: string
      headers: Record<string, string>
    }

  it('loses nothing, and the result is valid', () => {
    const kinds = new Set(imported().findings.map(({ kind }) => kind))
    expect(imported()).toMatchObject({ code: 0, validation: { code: 0 } })
    expect([...kinds]).toEqual(['changed'])
  })

  it('keeps rules, paths that are rewritten, and weights', async () => {
    expect(await seen('/api/orders')).toMatchObject({ upstream: 'main', path: '/orders' })
    expect(
      (await gateway.send(port, { path: '/api', host: 'shop.example.com', method: 'POST' })).status,
    ).toBe(404)
    expect((await get('/other')).status).toBe(404)
    expect(await seen('/other', { 'x-beta': '1' })).toMatchObject({ upstream: 'next' })
  })

  it('keeps passwords, header changes, external authentication, addresses and limits', async () => {
    expect((await get('/b')).status).toBe(401)
    const authorization = `Basic ${Buffer.from('ann:secret').toString('base64')}`
    const page = await get('/b', { authorization, 'x-old': '1' })
    expect(page.headers['x-frame-options']).toBe('DENY')
    const received = JSON.parse(page.body) as { headers: Record<string, string> }
    expect(received.headers).toMatchObject({
      'x-edge': '1',
      'x-forwarded-host': 'shop.example.com',
    })
    expect(received.headers).not.toHaveProperty('x-old')
    expect((await get('/session')).status).toBe(401)
    expect((await seen('/session', { cookie: 'session=good' })).headers['x-user']).toBe('ann')
    expect((await get('/internal')).status).toBe(403)
    const statuses = ['a', 'a', 'a', 'b'].map((team) => get('/slow', { 'x-team': team }))
    expect((await Promise.all(statuses)).map(({ status }) => status).sort()).toEqual([
      200, 200, 200, 429,
    ])
  })
})

describe('what Traefik has and Sluice has not', () => {
  it('needs consent by its class, and routes that are left out never exit with 0', async () => {
    const dropped = await runImport(router('r', route('!Path(`/a`)') + route('Path(`/b`)')))
    expect(dropped).toMatchObject({ code: 4, manifests: {} })
    expect(dropped.findings).toContainEqual(
      expect.objectContaining({ kind: 'route', field: 'spec.routes[0]' }),
    )
    const protection = [
      router(
        'r',
        route('Path(`/a`)', uses('missing', 'busy')),
        '  tls: { options: { name: strict } }\n',
      ),
      middleware('busy', '{ inFlightReq: { amount: 3 } }'),
      'apiVersion: traefik.io/v1alpha1\nkind: TLSOption\nmetadata: { name: strict, namespace: shop }\nspec: { minVersion: VersionTLS13 }\n',
    ].join('---\n')
    const lost = await runImport(protection)
    expect(lost.code).toBe(3)
    const fields = lost.findings
      .filter(({ kind }) => kind === 'protection')
      .map(({ field }) => field)
    expect(fields).toEqual(
      expect.arrayContaining([
        'spec.routes[0].middlewares[0]',
        'spec.inFlightReq',
        'spec.tls',
        'spec.tls.options',
      ]),
    )
  })

  it('reports protections of which a route has only one, entry points, and further changes of paths', async () => {
    const basic = (name: string) =>
      middleware(name, `{ basicAuth: { secret: ${name} }, stripPrefix: { prefixes: [/a] } }`)
    const inside = router('r', route('PathPrefix(`/a`)', uses('one', 'two'))).replace(
      'entryPoints: [web]',
      'entryPoints: [web, internal]',
    )
    const { code, findings } = await runImport([inside, basic('one'), basic('two')].join('---\n'))
    expect(code).toBe(3)
    expect(findings.filter(({ kind }) => kind !== 'changed')).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ kind: 'protection', field: 'spec.entryPoints[1]' }),
        expect.objectContaining({ kind: 'protection', field: 'spec.basicAuth' }),
        expect.objectContaining({ kind: 'route', field: 'spec.routes[0].match' }),
      ]),
    )
  })

  it.each([
    ['Path(`/a`', 'is not a rule of Traefik'],
    ['Path(`/a`) &&', 'is not a rule of Traefik'],
    ['ClientIP(`10.0.0.0/8`)', 'ClientIP has no counterpart in matches'],
    ['PathPrefix(`/a`) && PathRegexp(`b$`)', 'only one condition for the path'],
    [`${'('.repeat(100)}Path(\`/a\`)${')'.repeat(100)}`, 'is nested too deep'],
    [
      Array.from({ length: 7 }, () => '(Method(`A`) || Header(`a`, `b`))').join(' && '),
      'alternatives',
    ],
  ])('is a reason to leave out the rule %s', (rule, reason) => {
    expect(alternativesOf(rule)).toContain(reason)
  })
})
