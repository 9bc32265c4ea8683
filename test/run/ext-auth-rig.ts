import { beforeEach } from 'vitest'
import { startExtAuthServer } from '../support/ext-auth-server.ts'
import { useAuthority, useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest, TestResponse } from '../support/http-client.ts'
import { keySetOf, signingKey } from '../support/identity-provider.ts'
import {
  configMap,
  gateway,
  hostOf,
  httpRoute,
  policy,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { type Answer, startTlsUpstream } from '../support/upstream.ts'

type Fields = Record<string, unknown>

export const issuer = 'https://idp.example.com'
export const allow: Answer = (_, response) => response.end()
/** What the authorization service answers; each test may change it. */
export const given = { answer: allow }
const guarded = (name: string, extAuth: Fields, more: Fields = {}) => [
  httpRoute(name, { hostnames: [hostOf(name)], rules: [{ backendRefs: [toBackend('main')] }] }),
  policy(name, `HTTPRoute/${name}`, {
    traffic: { extAuth: { backendRef: toBackend('http'), ...extAuth }, ...more },
  }),
]
const overGrpc = (name: string, fields: Fields, more: Fields = {}) =>
  guarded(name, { backendRef: toBackend('grpc'), grpc: {}, ...fields }, more)

export const key = await signingKey('one')
export const upstream = useUpstream()
export const http = useUpstream('http', (received, response) => given.answer(received, response))
const authority = useAuthority()
export const secure = useFixture(() =>
  startTlsUpstream({
    tls: authority.issue(['auth.example.com']),
    answer: (received, response) => given.answer(received, response),
  }),
)
export const grpc = useFixture(startExtAuthServer)
export const port = await freePort()
const down = await freePort()
export const running = useGateway(() => ({
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
  given.answer = allow
  grpc.answer({})
})

export const ask = (name: string, more: TestRequest = {}): Promise<TestResponse> =>
  running.send(port, { host: hostOf(name), path: '/cart?x=1', ...more })
export const text = 'external authorization failed'
