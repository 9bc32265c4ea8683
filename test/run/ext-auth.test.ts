import { beforeEach, describe, expect, it } from 'vitest'
import { startExtAuthServer } from '../support/ext-auth-server.ts'
import { useAuthority, useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest, TestResponse } from '../support/http-client.ts'
import { keySetOf, sign, signingKey } from '../support/identity-provider.ts'
import {
  configMap,
  gateway,
  httpRoute,
  policy,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { type Answer, startTlsUpstream } from '../support/upstream.ts'

let answer: Answer

type Fields = Record<string, unknown>

const issuer = 'https://idp.example.com'
const allow: Answer = (_, response) => response.end()
const at = (name: string) => `${name}.example.com`
const guarded = (name: string, extAuth: Fields, more: Fields = {}) => [
  httpRoute(name, { hostnames: [at(name)], rules: [{ backendRefs: [toBackend('main')] }] }),
  policy(name, `HTTPRoute/${name}`, {
    traffic: { extAuth: { backendRef: toBackend('http'), ...extAuth }, ...more },
  }),
]
const overGrpc = (name: string, fields: Fields, more: Fields = {}) =>
  guarded(name, { backendRef: toBackend('grpc'), grpc: {}, ...fields }, more)

const key = await signingKey('one')
const upstream = useUpstream()
const http = useUpstream('http', (received, response) => answer(received, response))
const authority = useAuthority()
const secure = useFixture(() =>
  startTlsUpstream({
    tls: authority.issue(['auth.example.com']),
    answer: (received, response) => answer(received, response),
  }),
)
const grpc = useFixture(startExtAuthServer)
const port = await freePort()
const down = await freePort()
const running = useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('main', upstream.port),
    staticBackend('http', http.port),
    staticBackend('grpc', grpc.port),
    staticBackend('down', down),
    staticBackend('impatient', http.port),
    staticBackend('impatient-grpc', grpc.port),
    policy('impatient-backend', 'GatewayBackend/impatient', {
      backend: { http: { requestTimeout: '100ms' } },
    }),
    policy('impatient-grpc-backend', 'GatewayBackend/impatient-grpc', {
      backend: { http: { requestTimeout: '100ms' } },
    }),
    configMap('authority', { 'ca.crt': authority.certificate }),
    staticBackend('secure', secure.port),
    policy('secure-backend', 'GatewayBackend/secure', {
      backend: {
        tls: { sni: 'auth.example.com', caCertificateRefs: [{ name: 'authority' }] },
      },
    }),
    staticBackend('distrusted', secure.port),
    policy('distrusted-backend', 'GatewayBackend/distrusted', {
      backend: { tls: { sni: 'auth.example.com' } },
    }),
    ...service('auth', [http.port]),
    ...guarded('plain', { http: {} }),
    ...guarded('service', { backendRef: { name: 'auth', port: 80 }, http: {} }),
    ...guarded('secure', { backendRef: toBackend('secure'), http: {} }),
    ...guarded('distrusted', { backendRef: toBackend('distrusted'), http: {} }),
    ...guarded('down', { backendRef: toBackend('down'), http: {} }),
    ...guarded('impatient', { backendRef: toBackend('impatient'), http: {} }),
    ...guarded('nowhere', { backendRef: toBackend('nowhere'), http: {} }),
    ...guarded('path', { http: { path: '"/check" + request.path' } }),
    ...guarded('bad-path', { http: { path: 'request.headers["x-none"]' } }),
    ...guarded('redirect', { http: { redirect: '"/sign-in?to=" + request.path' } }),
    ...guarded('bad-redirect', { http: { redirect: 'jwt.sub' } }),
    ...guarded('headers', {
      http: {
        allowedRequestHeaders: ['X-Team', 'cookie'],
        addRequestHeaders: { 'x-from': 'source.address', 'x-none': 'jwt.sub' },
        allowedResponseHeaders: ['X-User', 'x-team', 'x-roles'],
      },
    }),
    ...guarded(
      'metadata',
      {
        http: {
          responseMetadata: {
            user: 'json(response.body).user',
            tier: 'response.headers["x-tier"]',
            asked: 'request.path',
            missing: 'response.headers["x-none"]',
          },
        },
      },
      {
        authorization: {
          policy: { matchExpressions: ['extauthz.user == "ann" && extauthz.tier == "gold"'] },
        },
      },
    ),
    ...guarded('body', { http: {}, forwardBody: { maxSize: 10 } }),
    ...guarded('both', { http: {}, grpc: {} }),
    ...guarded('bad-name', { http: { allowedRequestHeaders: ['a b'] } }),
    ...overGrpc(
      'grpc',
      { grpc: { contextExtensions: { shop: 'one' } } },
      { authorization: { policy: { matchExpressions: ['extauthz == null || extauthz.ok'] } } },
    ),
    ...overGrpc('grpc-metadata', {
      grpc: {
        requestMetadata: {
          'my.filter': '{"path": request.path, "n": 1}',
          simple: '"text"',
          missing: 'jwt.sub',
        },
      },
    }),
    ...overGrpc(
      'grpc-jwt',
      {},
      {
        jwtAuthentication: {
          providers: [{ issuer, jwks: { inline: JSON.stringify(keySetOf(key)) } }],
        },
      },
    ),
    ...overGrpc('grpc-body', { forwardBody: { maxSize: '0.01k' } }),
    ...overGrpc('grpc-down', { backendRef: toBackend('down') }),
    ...overGrpc('grpc-impatient', { backendRef: toBackend('impatient-grpc') }),
  ],
}))

beforeEach(() => {
  answer = allow
  grpc.answer({})
})

const ask = (name: string, more: TestRequest = {}): Promise<TestResponse> =>
  running.send(port, { host: at(name), path: '/cart?x=1', ...more })
const text = 'external authorization failed'

describe('extAuth over HTTP [Traffic.extAuth]', () => {
  it('[ExtAuth.http] [ExtAuth.backendRef] asks with method, path and Authorization alone, and 200 allows', async () => {
    const headers = { authorization: 'Bearer a', cookie: 'a=b', 'x-other': '1' }
    const { status } = await ask('plain', { method: 'PUT', headers, body: 'hello' })
    expect(status).toBe(200)
    const asked = http.received.at(-1)
    expect(asked).toMatchObject({ method: 'PUT', path: '/cart?x=1', body: '' })
    expect(asked?.headers).toMatchObject({ authorization: 'Bearer a' })
    expect(Object.keys(asked?.headers ?? {})).not.toContain('cookie')
    expect(Object.keys(asked?.headers ?? {})).not.toContain('x-other')
    expect(upstream.received.at(-1)?.body).toBe('hello')
    expect((await ask('service')).status).toBe(200)
  })

  it('[error.6] refuses with what the service answers', async () => {
    answer = (_, response) => {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="a"', 'x-why': 'nobody' })
      response.end('who are you?')
    }
    const before = upstream.received.length
    const { status, headers, body } = await ask('plain')
    expect([status, body]).toEqual([401, 'who are you?'])
    expect(headers).toMatchObject({ 'www-authenticate': 'Basic realm="a"', 'x-why': 'nobody' })
    expect(upstream.received).toHaveLength(before)
  })

  it.each([201, 204, 206, 500, 503])('takes %i for no permission', async (status) => {
    answer = (_, response) => response.writeHead(status).end()
    const before = upstream.received.length
    expect(await ask('plain')).toMatchObject({ status: 403, body: text })
    expect(upstream.received).toHaveLength(before)
  })

  it('[error.6] [AgentExtAuthHTTP.redirect] sends whom it refuses elsewhere', async () => {
    answer = (_, response) => response.writeHead(403, { 'x-why': 'nobody' }).end('no')
    const { status, headers, body } = await ask('redirect')
    expect([status, headers.location, body]).toEqual([302, '/sign-in?to=/cart', ''])
    expect(await ask('bad-redirect')).toMatchObject({ status: 403, body: text })
    answer = allow
    expect((await ask('redirect')).status).toBe(200)
  })

  it('[AgentExtAuthHTTP.path] asks for the path of an expression', async () => {
    expect((await ask('path')).status).toBe(200)
    expect(http.received.at(-1)?.path).toBe('/check/cart')
    expect(await ask('bad-path')).toMatchObject({ status: 403, body: text })
  })

  it('[AgentExtAuthHTTP.allowedRequestHeaders] [AgentExtAuthHTTP.addRequestHeaders] sends what the policy names', async () => {
    const headers = {
      authorization: 'Bearer a',
      'x-team': ['red', 'blue'],
      cookie: 'a=b',
      'x-from': 'forged',
    }
    expect((await ask('headers', { headers })).status).toBe(200)
    const sent = http.received.at(-1)?.headers
    expect(sent).toMatchObject({
      authorization: 'Bearer a',
      'x-team': 'red, blue',
      cookie: 'a=b',
      'x-from': '127.0.0.1',
    })
    expect(sent).not.toHaveProperty('x-none')
  })

  it('[AgentExtAuthHTTP.allowedResponseHeaders] copies headers of the answer, which no client can forge', async () => {
    answer = (_, response) => {
      response.setHeader('x-user', 'ann')
      response.setHeader('x-secret', 'kept')
      response.end()
    }
    const headers = { 'x-user': 'root', 'x-roles': 'admin', 'x-team': 'red' }
    expect((await ask('headers', { headers })).status).toBe(200)
    const received = upstream.received.at(-1)?.headers
    expect(received).toMatchObject({ 'x-user': 'ann', 'x-team': 'red' })
    expect(received).not.toHaveProperty('x-secret')
    expect(received).not.toHaveProperty('x-roles')
  })

  it('[AgentExtAuthHTTP.responseMetadata] shows what it learned to later expressions', async () => {
    const says = (user: string): Answer => {
      return (_, response) => response.setHeader('x-tier', 'gold').end(JSON.stringify({ user }))
    }
    answer = says('ann')
    expect((await ask('metadata')).status).toBe(200)
    answer = says('bob')
    expect((await ask('metadata')).status).toBe(403)
    answer = allow
    expect((await ask('metadata')).status).toBe(403)
  })

  it('[ExtAuth.forwardBody] [ExtAuthBody.maxSize] [error.7] sends bodies up to a size, and refuses larger ones', async () => {
    expect((await ask('body', { method: 'POST', body: '0123456789' })).status).toBe(200)
    const asked = http.received.at(-1)
    expect([asked?.body, asked?.headers['x-envoy-auth-partial-body']]).toEqual([
      '0123456789',
      'false',
    ])
    expect(upstream.received.at(-1)?.body).toBe('0123456789')
    const before = [http.received.length, upstream.received.length]
    const large = { method: 'POST', body: '0123456789a' }
    expect(await ask('body', large)).toMatchObject({ status: 413, body: text })
    const chunked = { ...large, headers: { 'transfer-encoding': 'chunked' } }
    expect((await ask('body', chunked)).status).toBe(413)
    expect([http.received.length, upstream.received.length]).toEqual(before)
  })

  it('fails closed where the service is not there, is silent, or is not whom it should be', async () => {
    expect(await ask('down')).toMatchObject({ status: 403, body: text })
    expect(await ask('distrusted')).toMatchObject({ status: 403, body: text })
    answer = () => undefined
    expect(await ask('impatient')).toMatchObject({ status: 403, body: text })
    const refused = await ask('down', { headers: { 'content-type': 'application/grpc' } })
    expect([refused.status, refused.headers['grpc-status']]).toEqual([200, '7'])
  })

  it('asks over TLS as the policies of the backend say', async () => {
    expect((await ask('secure')).status).toBe(200)
    expect(secure.received.at(-1)?.tls?.serverName).toBe('auth.example.com')
  })

  it('[ExtAuth.exactlyOneOf] closes what it covers where it cannot be enforced, and says why', async () => {
    const messageOf = async (name: string) =>
      (await running.condition('GatewayPolicy', name, 'Accepted', 'False')).message
    expect(await messageOf('nowhere')).toContain(
      'backendRef: GatewayBackend default/nowhere does not exist',
    )
    expect(await messageOf('both')).toContain('exactly one of grpc, http')
    expect(await messageOf('bad-name')).toContain('http.allowedRequestHeaders[0]')
    for (const name of ['nowhere', 'both', 'bad-name']) {
      expect((await ask(name)).status).toBe(500)
    }
  })
})

describe('extAuth over gRPC [Traffic.extAuth]', () => {
  it('[ExtAuth.grpc] [AgentExtAuthGRPC.contextExtensions] describes the request', async () => {
    const headers = { 'x-team': ['red', 'blue'], authorization: 'Bearer a' }
    expect((await ask('grpc', { method: 'PUT', headers, body: 'hi' })).status).toBe(200)
    const asked = grpc.asked.at(-1)
    expect(asked).toMatchObject({
      contextExtensions: { shop: 'one' },
      source: { address: { socketAddress: { address: '127.0.0.1' } } },
      destination: { address: { socketAddress: { address: '127.0.0.1', portValue: port } } },
      metadataContext: { filterMetadata: {} },
    })
    expect(asked?.request?.http).toMatchObject({
      method: 'PUT',
      path: '/cart?x=1',
      host: at('grpc'),
      scheme: 'http',
      protocol: 'HTTP/1.1',
      body: '',
      headers: {
        ':path': '/cart?x=1',
        ':method': 'PUT',
        authorization: 'Bearer a',
        'x-team': 'red, blue',
      },
    })
  })

  it('tells the name of a host without the dot of its absolute form, which would lead around a rule', async () => {
    expect((await ask('grpc', { host: `${at('grpc')}.:81` })).status).toBe(200)
    const asked = grpc.asked.at(-1)?.request?.http
    expect([asked?.host, asked?.headers?.[':authority']]).toEqual([
      `${at('grpc')}:81`,
      `${at('grpc')}:81`,
    ])
    // The backend reads what the client wrote.
    expect(upstream.received.at(-1)?.headers.host).toBe(`${at('grpc')}.:81`)
  })

  it('[AgentExtAuthGRPC.requestMetadata] sends values of expressions', async () => {
    expect((await ask('grpc-metadata')).status).toBe(200)
    expect(grpc.asked.at(-1)?.metadataContext?.filterMetadata).toEqual({
      'my.filter': { path: '/cart', n: 1 },
      simple: { value: 'text' },
    })
  })

  it('[AgentExtAuthGRPC.jwtMetadata] sends the claims of a verified token', async () => {
    const token = await sign(key, { iss: issuer, sub: 'ann', n: 7 })
    const headers = { authorization: `Bearer ${token}` }
    expect((await ask('grpc-jwt', { headers })).status).toBe(200)
    expect(grpc.asked.at(-1)?.metadataContext?.filterMetadata).toMatchObject({
      'envoy.filters.http.jwt_authn': { jwt_payload: { iss: issuer, sub: 'ann', n: 7 } },
    })
  })

  it('lets the service change the request and the response', async () => {
    grpc.answer({
      status: { code: 0 },
      httpResponse: {
        case: 'okResponse',
        value: {
          headers: [
            { header: { key: 'x-user', value: 'ann' } },
            { header: { key: 'x-team', value: 'blue' }, append: true },
            { header: { key: 'x-kept', value: 'no' }, appendAction: 1 },
            { header: { key: 'host', value: 'evil' } },
          ],
          headersToRemove: ['authorization', 'host', ':path'],
          responseHeadersToAdd: [{ header: { key: 'x-served', value: 'yes' } }],
          queryParametersToSet: [{ key: 'y', value: 'a b' }],
          queryParametersToRemove: ['x'],
        },
      },
      dynamicMetadata: { ok: true },
    })
    const headers = { 'x-user': 'root', 'x-team': 'red', 'x-kept': 'yes', authorization: 'a' }
    const response = await ask('grpc', { headers })
    expect([response.status, response.headers['x-served']]).toEqual([200, 'yes'])
    const received = upstream.received.at(-1)
    expect(received?.path).toBe('/cart?y=a%20b')
    expect(received?.headers).toMatchObject({
      host: at('grpc'),
      'x-user': 'ann',
      'x-team': 'red, blue',
      'x-kept': 'yes',
    })
    expect(received?.headers).not.toHaveProperty('authorization')
  })

  it('shows dynamic metadata to later expressions', async () => {
    grpc.answer({ dynamicMetadata: { ok: false } })
    expect((await ask('grpc')).status).toBe(403)
  })

  it('refuses as the service says', async () => {
    grpc.answer({
      status: { code: 16 },
      httpResponse: {
        case: 'deniedResponse',
        value: {
          status: { code: 401 },
          headers: [{ header: { key: 'x-why', value: 'nobody' } }],
          body: 'who are you?',
        },
      },
    })
    const { status, headers, body } = await ask('grpc')
    expect([status, headers['x-why'], body]).toEqual([401, 'nobody', 'who are you?'])
    grpc.answer({ status: { code: 7 } })
    expect(await ask('grpc')).toMatchObject({ status: 403, body: text })
  })

  it('sends bodies up to a size, and refuses larger ones', async () => {
    expect((await ask('grpc-body', { method: 'POST', body: '0123456789' })).status).toBe(200)
    expect(grpc.asked.at(-1)?.request?.http).toMatchObject({ body: '0123456789', size: 10n })
    const before = grpc.asked.length
    const { status } = await ask('grpc-body', { method: 'POST', body: '0123456789a' })
    expect([status, grpc.asked.length]).toEqual([413, before])
  })

  it('fails closed where the service fails, is silent or is not there', async () => {
    grpc.answer(14)
    expect(await ask('grpc')).toMatchObject({ status: 403, body: text })
    expect((await ask('grpc-down')).status).toBe(403)
    grpc.answer('nothing')
    expect((await ask('grpc-impatient')).status).toBe(403)
  })
})
