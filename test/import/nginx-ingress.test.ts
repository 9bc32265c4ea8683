import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { outline, runImport, useImport } from './rig.ts'

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
---`

const ingress = (
  name: string,
  path: string,
  annotations: Record<string, string>,
  { host = 'shop.example.com', backend = 'main', type = 'ImplementationSpecific' } = {},
) => {
  const lines = Object.entries(annotations).map(
    ([key, value]) => `    nginx.ingress.kubernetes.io/${key}: ${JSON.stringify(value)}\n`,
  )
  return `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: ${name}
  namespace: shop
  annotations:
    kubernetes.io/ingress.class: nginx
${lines.join('')}spec:
  ingressClassName: nginx
  rules:
  - host: ${host}
    http:
      paths:
      - { path: ${path}, pathType: ${type}, backend: { service: { name: ${backend}, port: { name: web } } } }
---`
}

const hash = `{SHA}${createHash('sha1').update('secret').digest('base64')}`

const objects = () =>
  [
    service('main', main),
    service('next', next),
    `
apiVersion: v1
kind: Secret
metadata: { name: users, namespace: shop }
stringData: { auth: "ann:${hash}" }
---`,
    ingress('plain', '/plain', { 'proxy-read-timeout': '30', 'backend-protocol': 'HTTP' }),
    ingress('exact', '/exact', {}, { type: 'Exact' }),
    ingress('cut', '/cut(/|$)(.*)', { 'use-regex': 'true', 'rewrite-target': '/$2' }),
    ingress('limited', '/limited', { 'limit-rpm': '1', 'limit-burst-multiplier': '2' }),
    ingress('blocked', '/blocked', { 'whitelist-source-range': '10.0.0.0/8' }),
    ingress('allowed', '/allowed', { 'whitelist-source-range': '10.0.0.0/8, 127.0.0.1' }),
    ingress('users', '/users', { 'auth-type': 'basic', 'auth-secret': 'users' }),
    ingress('asked', '/asked', {
      'auth-url': `http://127.0.0.1:${authorizer.port}/check`,
      'auth-signin': 'https://$host/start?rd=$escaped_request_uri',
      'auth-response-headers': 'x-user',
    }),
    ingress('scripts', '/scripts', {
      'enable-cors': 'true',
      'cors-allow-origin': 'https://app.example.com',
    }),
    ingress('moved', '/moved', { 'permanent-redirect': 'https://new.example.com/here' }),
    ingress('stable', '/', {}, { host: 'canary.example.com', type: 'Prefix' }),
    ingress(
      'canary',
      '/',
      { canary: 'true', 'canary-weight': '0', 'canary-by-header': 'x-canary' },
      { host: 'canary.example.com', backend: 'next', type: 'Prefix' },
    ),
  ].join('')

describe('sluice import of nginx Ingress objects', () => {
  const { gateway, imported } = useImport(() => ({
    content: objects(),
    args: ['--port', `${port}`, '--allow-stricter'],
  }))
  const host = 'shop.example.com'
  const get = (path: string, headers: Record<string, string> = {}) =>
    gateway.send(port, { host, path, headers })

  it('are detected, lose no protection, and the result is valid', () => {
    expect(imported()).toMatchObject({ code: 0, validation: { code: 0 } })
  })

  it('keep hosts, prefixes, exact paths and rewrites', async () => {
    expect(JSON.parse((await get('/plain/a')).body)).toMatchObject({
      upstream: 'main',
      path: '/plain/a',
      headers: { host },
    })
    expect((await get('/exact')).status).toBe(200)
    expect((await get('/exact/a')).status).toBe(404)
    expect(JSON.parse((await get('/cut/a?q=1')).body)).toMatchObject({ path: '/a?q=1' })
    expect((await gateway.send(port, { host: 'other.example.com', path: '/plain' })).status).toBe(
      404,
    )
  })

  it('limit requests and restrict addresses', async () => {
    const statuses = [await get('/limited'), await get('/limited'), await get('/limited')]
    expect(statuses.map(({ status }) => status)).toEqual([200, 200, 429])
    expect((await get('/blocked')).status).toBe(403)
    expect((await get('/allowed')).status).toBe(200)
  })

  it('ask for passwords', async () => {
    const basic = (text: string) => ({ authorization: `Basic ${btoa(text)}` })
    expect((await get('/users')).status).toBe(401)
    expect((await get('/users', basic('ann:wrong'))).status).toBe(401)
    expect((await get('/users', basic('ann:secret'))).status).toBe(200)
  })

  it('ask the external service, and send clients to its sign-in page', async () => {
    const refused = await get('/asked/a')
    expect(refused.status).toBe(302)
    expect(refused.headers.location).toBe(`https://${host}/start?rd=%2Fasked%2Fa`)
    const allowed = await get('/asked/a', { cookie: 'session=good' })
    expect(JSON.parse(allowed.body)).toMatchObject({ headers: { 'x-user': 'ann' } })
    expect(authorizer.received.at(-1)).toMatchObject({ path: '/check' })
  })

  it('answer cross-origin requests and redirects', async () => {
    const { headers } = await get('/scripts', { origin: 'https://app.example.com' })
    expect(headers['access-control-allow-origin']).toBe('https://app.example.com')
    const moved = await get('/moved')
    expect(moved.status).toBe(301)
    expect(moved.headers.location).toMatch(/^https:\/\/new\.example\.com(:443)?\/here$/)
  })

  it('send canary requests by header and by weight', async () => {
    const upstreamOf = async (headers: Record<string, string>) => {
      const { body } = await gateway.send(port, { host: 'canary.example.com', headers })
      return (JSON.parse(body) as { upstream: string }).upstream
    }
    expect(await upstreamOf({})).toBe('main')
    expect(await upstreamOf({ 'x-canary': 'always' })).toBe('next')
    expect(await upstreamOf({ 'x-canary': 'never' })).toBe('main')
  })
})

describe('annotations without counterpart', () => {
  it('are reported with their line; those that protect something stop the conversion', async () => {
    const result = await runImport(
      ingress('a', '/', {
        'configuration-snippet': 'deny all;',
        'auth-tls-secret': 'shop/ca',
        'proxy-body-size': '50m',
        'unknown-thing': '1',
      }),
    )
    expect(result).toMatchObject({ code: 3, manifests: {} })
    const field = (name: string) => `metadata.annotations["nginx.ingress.kubernetes.io/${name}"]`
    expect(outline(result)).toEqual([
      `lost: ${field('proxy-body-size')}`,
      `lost: ${field('unknown-thing')}`,
      `protection: ${field('auth-tls-secret')}`,
      `protection: ${field('configuration-snippet')}`,
      'route: spec.rules[0].http.paths[0].backend.service.port',
    ])
    expect(result.findings.find(({ field }) => field.includes('tls'))).toMatchObject({ line: 10 })
  })

  it('converts hosts with certificates to HTTPS listeners and redirects', async () => {
    const text = ingress('tls', '/', {}).replace(
      'spec:\n',
      'spec:\n  tls: [{ hosts: [shop.example.com], secretName: cert }]\n',
    )
    const { manifests } = await runImport(service('main', { port: 9000 }) + text)
    expect(manifests['gateway.yaml']).toContain('name: https-shop-example-com')
    expect(manifests['routes.yaml']).toContain('scheme: https')
    expect(manifests['routes.yaml']).toContain('sectionName: https-shop-example-com')
  })
})
