import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestResponse } from '../support/http-client.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'

const partner = 'https://partner.example.com'

/** The CORS policy of each host. */
const policies = {
  listed: {
    allowOrigins: [
      partner,
      'http://dev.example.com:3000',
      'https://*.apps.example.com',
      'http://*',
    ],
    allowMethods: ['GET', 'PUT'],
    allowHeaders: ['X-Team', 'X-Trace'],
    exposeHeaders: ['X-Answer', 'X-Other'],
    maxAge: 600,
  },
  open: { allowOrigins: ['*'], allowMethods: ['*'], allowHeaders: ['*'], exposeHeaders: ['*'] },
  trusting: {
    allowOrigins: ['*'],
    allowCredentials: true,
    allowMethods: ['*'],
    allowHeaders: ['*'],
    exposeHeaders: ['*'],
  },
} as const

const rule = { backendRefs: [toBackend('main')] }
const route = (name: string, more = {}) =>
  httpRoute(name, { hostnames: [`${name}.example.com`], rules: [{ ...rule, ...more }] })
const cors = { allowOrigins: ['https://filter.example.com'], allowMethods: ['DELETE'] }

const upstream = useUpstream('upstream', (_, response) => {
  response.setHeader('access-control-allow-origin', 'https://upstream.example.com')
  response.setHeader('x-answer', '42')
  response.setHeader('vary', 'Accept')
  response.end('hello')
})
const port = await freePort()
const running = useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('main', upstream.port),
    ...Object.entries(policies).flatMap(([name, spec]) => [
      route(name),
      policy(name, `HTTPRoute/${name}`, { traffic: { cors: spec } }),
    ]),
    route('filter', { filters: [{ type: 'CORS', cors }] }),
    policy('beaten', 'HTTPRoute/filter', { traffic: { cors: policies.listed } }),
    route('odd'),
    policy('odd', 'HTTPRoute/odd', {
      traffic: { cors: { allowOrigins: ['https://a.example.com:99999', partner] } },
    }),
  ],
}))

type Headers = Record<string, string>

function ask(at: string, method: string, headers: Headers): Promise<TestResponse> {
  return running.send(port, { method, host: `${at}.example.com`, headers })
}

const preflight = (at: string, origin: string, more: Headers = {}) =>
  ask(at, 'OPTIONS', { origin, 'access-control-request-method': 'PUT', ...more })

/** The part of the headers that browsers read. */
function told({ headers }: TestResponse): Headers {
  const named = Object.entries(headers).filter(([name]) => name.startsWith('access-control-'))
  return Object.fromEntries(named.map(([name, value]) => [name.slice(15), `${value}`]))
}

describe('cors [Traffic.cors]', () => {
  it('answers a preflight of an allowed origin itself, without forwarding it', async () => {
    const before = upstream.received.length
    const answer = await preflight('listed', partner)
    expect([answer.status, answer.body]).toEqual([200, ''])
    expect(told(answer)).toEqual({
      'allow-origin': partner,
      'allow-methods': 'GET,PUT',
      'allow-headers': 'X-Team,X-Trace',
      'max-age': '600',
      'expose-headers': 'X-Answer,X-Other',
    })
    expect(answer.headers.vary).toContain('Origin')
    expect(upstream.received).toHaveLength(before)
  })

  it('answers a preflight of another origin without CORS headers', async () => {
    const before = upstream.received.length
    const answer = await preflight('listed', 'https://evil.example.com')
    expect([answer.status, told(answer)]).toEqual([200, {}])
    expect(upstream.received).toHaveLength(before)
  })

  it('replaces the CORS headers of the upstream', async () => {
    const answer = await ask('listed', 'GET', { origin: partner })
    expect(answer.body).toBe('hello')
    expect(told(answer)).toEqual({
      'allow-origin': partner,
      'expose-headers': 'X-Answer,X-Other',
    })
    expect(told(await ask('listed', 'GET', { origin: 'https://evil.example.com' }))).toEqual({})
  })

  it('adds Origin to Vary, whether or not the request has an Origin', async () => {
    for (const headers of [{}, { origin: partner }, { origin: 'https://evil.example.com' }]) {
      const answer = await ask('listed', 'GET', headers as Headers)
      expect(answer.headers.vary).toBe('Accept, Origin')
    }
  })

  it.each([
    ['https://partner.example.com:443', true],
    ['HTTPS://PARTNER.example.com', true],
    ['https://partner.example.com:444', false],
    ['https://partner.example.com.evil.com', false],
    ['http://dev.example.com:3000', true],
    ['https://a.apps.example.com', true],
    ['https://a.b.apps.example.com', true],
    ['https://apps.example.com', false],
    ['https://evilapps.example.com', false],
    ['https://evil.com\\.apps.example.com', false],
    ['https://a.apps.example.com:8443', false],
    ['http://anything.test', true],
    ['http://anything.test:81', false],
    ['null', false],
    ['', false],
  ])('compares origin %s by scheme, host and port: %s', async (origin, isAllowed) => {
    const answer = await preflight('listed', origin)
    expect(told(answer)['allow-origin']).toBe(isAllowed ? origin : undefined)
  })

  it('allows every origin with *, and returns the requested headers', async () => {
    const asked = { 'access-control-request-headers': 'x-a, x-b' }
    expect(told(await preflight('open', 'null', asked))).toEqual({
      'allow-origin': 'null',
      'allow-methods': 'PUT',
      'allow-headers': 'x-a, x-b',
      'max-age': '5',
      'expose-headers': '*',
    })
    expect(told(await preflight('open', partner))['allow-headers']).toBe('*')
  })

  it('never answers credentialed requests with *', async () => {
    expect(told(await preflight('trusting', partner))).toEqual({
      'allow-origin': partner,
      'allow-methods': 'PUT',
      'max-age': '5',
      'allow-credentials': 'true',
    })
    const answer = told(await ask('trusting', 'GET', { origin: partner }))
    expect([answer['allow-origin'], answer['allow-credentials']]).toEqual([partner, 'true'])
    expect(answer['expose-headers']?.split(',')).toContain('x-answer')
    expect(answer['expose-headers']).not.toContain('*')
  })

  it('works as a filter of a rule, which overrides CORS policies', async () => {
    expect(told(await preflight('filter', 'https://filter.example.com'))).toEqual({
      'allow-origin': 'https://filter.example.com',
      'allow-methods': 'DELETE',
      'max-age': '5',
    })
    expect(told(await preflight('filter', partner))).toEqual({})
  })

  it('reports an origin that can never match, and keeps the others', async () => {
    const { message } = await running.condition('GatewayPolicy', 'odd', 'Accepted', 'True')
    expect(message).toContain('spec.traffic.cors.allowOrigins[0]')
    expect(told(await preflight('odd', partner))['allow-origin']).toBe(partner)
  })
})
