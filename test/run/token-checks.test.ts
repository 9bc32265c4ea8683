/** Checks of tokens beyond their signature: their place, required claims, and introspection. */
import { createServer } from 'node:http'
import { beforeEach, describe, expect, it } from 'vitest'
import { useGateway, useListening, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import { inSeconds, keySetOf, sign, signingKey } from '../support/identity-provider.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const issuer = 'https://idp.example.com'
const clientSecret = 'a-secret+with/odd:signs'
const port = await freePort()
const key = await signingKey('one')
const upstream = useUpstream()

/** What the introspection endpoint answers, by token; a number is a status. */
const answers = new Map<string, object | number>()
const asked: { form: URLSearchParams; authorization: string | undefined }[] = []
const endpoint = useListening(
  createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const form = new URLSearchParams(body)
      asked.push({ form, authorization: request.headers.authorization })
      const answer = answers.get(form.get('token') ?? '') ?? { active: false }
      response.writeHead(typeof answer === 'number' ? answer : 200)
      response.end(typeof answer === 'number' ? '' : JSON.stringify(answer))
    })
  }),
)
beforeEach(() => {
  asked.length = 0
})

const keys = { issuer, jwks: { inline: JSON.stringify(keySetOf(key)) } }
const introspected = (name: string, path: string, more: object = {}) => ({
  issuer: 'https://opaque.example.com',
  introspection: {
    backendRef: toBackend(name),
    path,
    clientAuth: { clientId: 'gateway', secretRef: { name: 'client' }, ...more },
  },
})
const opaque = introspected('endpoint', '/introspect')
const guarded = (name: string, spec: Record<string, unknown>) => [
  httpRoute(name, {
    hostnames: [hostOf(name)],
    rules: [{ backendRefs: [toBackend('main')] }],
  }),
  policy(name, `HTTPRoute/${name}`, {
    traffic: {
      jwtAuthentication: { providers: [keys], ...spec },
      transformation: { request: { set: [{ name: 'x-user', value: 'jwt.sub' }] } },
    },
  }),
]

const running = useGateway(() => ({
  args: ['--workers', '2'],
  manifests: [
    gateway(port),
    secret('client', { clientSecret }),
    staticBackend('main', upstream.port),
    staticBackend('endpoint', endpoint.port),
    ...guarded('header', { location: { header: { name: 'X-Token' } } }),
    ...guarded('scheme', { location: { header: { name: 'authorization', prefix: 'Token ' } } }),
    ...guarded('query', { location: { queryParameter: { name: 'access_token' } } }),
    ...guarded('cookie', { location: { cookie: { name: 'token' } } }),
    ...guarded('expression', { location: { expression: 'request.headers["x-a"]' } }),
    ...guarded('shown', { location: { queryParameter: { name: 'page' } } }),
    ...guarded('claims', { providers: [{ ...keys, requiredClaims: ['sub', 'tenant'] }] }),
    ...guarded('opaque', { providers: [keys, { ...opaque, audiences: ['api'] }] }),
    ...guarded('short', {
      providers: [
        {
          ...opaque,
          introspection: { ...opaque.introspection, cacheDuration: '100ms' },
        },
      ],
    }),
    ...guarded('post', {
      providers: [introspected('endpoint', 'introspect', { method: 'ClientSecretPost' })],
    }),
    ...guarded('tolerant', { mode: 'Permissive', providers: [opaque] }),
    ...guarded('twice', { providers: [opaque, { ...opaque, issuer: 'https://b.example.com' }] }),
    ...guarded('secretless', {
      providers: [introspected('endpoint', '/x', { secretRef: { name: 'nothing' } })],
    }),
  ],
}))

const ask = (name: string, request: TestRequest = {}) =>
  running.send(port, { host: hostOf(name), ...request })
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
const challengeOf = async (name: string, request: TestRequest) =>
  (await ask(name, request)).headers['www-authenticate']

describe('the place of a token [JWTAuthentication.location]', () => {
  it('[AuthorizationExtractionLocation.header] [AuthorizationExtractionLocation.queryParameter] [AuthorizationExtractionLocation.cookie] [AuthorizationExtractionLocation.expression] is a header, a parameter, a cookie or an expression, and the backend does not see it', async () => {
    const token = await sign(key, { iss: issuer, sub: 'ann' })
    const places: Record<string, TestRequest> = {
      header: { headers: { 'x-token': token } },
      scheme: { headers: { authorization: `token  ${token}` } },
      query: { path: `/a?b=1&access_token=${token}&c=2` },
      cookie: { headers: { cookie: `a=1; token=${token}; b=2` } },
      expression: { headers: { 'x-a': token } },
    }
    for (const [name, request] of Object.entries(places)) {
      expect([name, (await ask(name, request)).status]).toEqual([name, 200])
      expect(upstream.received.at(-1)?.headers['x-user']).toBe('ann')
      if (name !== 'expression')
        expect(JSON.stringify(upstream.received.at(-1))).not.toContain(token)
      expect((await ask(name)).status).toBe(401)
      expect((await ask(name, bearer(token))).status).toBe(401)
    }
    expect((await ask('query', places.query)).body).toContain('/a?b=1&c=2')
    expect((await ask('cookie', places.cookie)).body).toContain('a=1; b=2')
    const twice = { path: `/?access_token=${token}&access_token=x` }
    expect((await ask('query', twice)).status).toBe(401)
    expect((await ask('cookie', { headers: { cookie: `token=${token}; token=x` } })).status).toBe(
      401,
    )
    expect((await ask('header', { headers: { 'x-token': [token, 'x'] } })).status).toBe(401)
  })

  it('[AuthorizationQueryLocation.name] must not be a parameter whose value logs would show', async () => {
    const { message } = await running.condition('GatewayPolicy', 'shown', 'Accepted', 'False')
    expect(message).toContain('must be a name that logs mask, such as access_token')
    expect((await ask('shown')).status).toBe(500)
    const token = await sign(key, { iss: issuer })
    await ask('query', { path: `/?access_token=${token}` })
    await waitFor('the access log', () => running.stdout.includes('access_token=<redacted>'))
    expect(running.stdout).not.toContain(token)
  })

  it('[JWTProvider.requiredClaims] must have a token with all required claims', async () => {
    const whole = await sign(key, { iss: issuer, sub: 'ann', tenant: 'a' })
    expect((await ask('claims', bearer(whole))).status).toBe(200)
    for (const claims of [{ sub: 'ann' }, { sub: 'ann', tenant: null }, { tenant: 'a' }]) {
      const token = await sign(key, { iss: issuer, ...claims })
      expect(await challengeOf('claims', bearer(token))).toMatch(
        /^Bearer realm="Restricted", error="invalid_token", error_description="the token has no claim (?:sub|tenant)"$/,
      )
    }
  })
})

describe('introspection [JWTProvider.introspection]', () => {
  const active = { active: true, sub: 'ann', aud: 'api', exp: inSeconds(300) }

  it('[TokenIntrospection.path] [TokenIntrospection.backendRef] [IntrospectionClientAuth.clientId] [IntrospectionClientAuth.secretRef] asks once about a token, and sends tokens of other issuers nowhere [CVE-2026-35030]', async () => {
    answers.set('good', active)
    const all = await Promise.all(Array.from({ length: 5 }, () => ask('opaque', bearer('good'))))
    expect(all.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect(upstream.received.at(-1)?.headers['x-user']).toBe('ann')
    // Each of two workers may have asked.
    expect(asked.length).toBeGreaterThan(0)
    expect(asked.length).toBeLessThanOrEqual(2)
    const [first] = asked
    expect(first?.form.get('token')).toBe('good')
    const credentials = `gateway:${encodeURIComponent(clientSecret)}`
    expect(first?.authorization).toBe(`Basic ${Buffer.from(credentials).toString('base64')}`)
    asked.length = 0
    const signed = await sign(key, { iss: issuer, sub: 'bob' })
    expect((await ask('opaque', bearer(signed))).status).toBe(200)
    const foreign = await sign(key, { iss: 'https://elsewhere.example.com' })
    expect((await ask('opaque', bearer(foreign))).status).toBe(401)
    expect(asked).toEqual([])
    // A token that begins like a valid one is another token.
    expect((await ask('opaque', bearer('good2'))).status).toBe(401)
  })

  it('accepts only an active token of the issuer and the audience [CVE-2026-58425]', async () => {
    const wrong: Record<string, object> = {
      inactive: { active: false, sub: 'ann', aud: 'api' },
      'active-text': { active: 'true', aud: 'api' },
      audience: { ...active, aud: ['other'] },
      'no-audience': { ...active, aud: undefined },
      issuer: { ...active, iss: 'https://elsewhere.example.com' },
      expired: { ...active, exp: inSeconds(-120) },
      early: { ...active, nbf: inSeconds(120) },
    }
    for (const [token, answer] of Object.entries(wrong)) {
      answers.set(token, answer)
      const { status, headers } = await ask('opaque', bearer(token))
      const expected = token === 'active-text' ? 503 : 401
      expect([token, status]).toEqual([token, expected])
      if (expected === 401) expect(headers['www-authenticate']).toContain('error="invalid_token"')
    }
  })

  it('[IntrospectionClientAuthMethod=ClientSecretPost] [IntrospectionClientAuth.method] can authenticate in the form', async () => {
    answers.set('posted', active)
    expect((await ask('post', bearer('posted'))).status).toBe(200)
    expect(asked[0]?.authorization).toBeUndefined()
    expect(asked[0]?.form.get('client_secret')).toBe(clientSecret)
  })

  it('[TokenIntrospection.cacheDuration] accepts a revoked token no longer than answers are kept', async () => {
    answers.set('revoked', active)
    expect((await ask('short', bearer('revoked'))).status).toBe(200)
    answers.set('revoked', { active: false })
    await running.sendUntil(
      port,
      { host: hostOf('short'), ...bearer('revoked') },
      ({ status }) => status === 401,
    )
  })

  it('refuses with 503 if the endpoint fails, also for a token that was valid before', async () => {
    answers.set('failing', 500)
    const { status, headers } = await ask('opaque', bearer('failing'))
    expect([status, headers['retry-after']]).toEqual([503, '5'])
    answers.set('before', active)
    expect((await ask('short', bearer('before'))).status).toBe(200)
    answers.set('before', 500)
    await running.sendUntil(
      port,
      { host: hostOf('short'), ...bearer('before') },
      (response) => response.status === 503,
    )
    expect((await ask('tolerant', bearer('failing'))).status).toBe(200)
    expect(upstream.received.at(-1)?.headers).not.toHaveProperty('x-user')
  })

  it('is reported if it cannot work, and accepts no token then', async () => {
    const twice = await running.condition('GatewayPolicy', 'twice', 'Accepted', 'True')
    expect(twice.message).toContain('providers[1].introspection: providers[0] already has')
    const { message } = await running.condition('GatewayPolicy', 'secretless', 'Accepted', 'True')
    expect(message).toContain('clientAuth.secretRef: Secret nothing does not exist')
    expect((await ask('secretless', bearer('good'))).status).toBe(401)
  })
})
