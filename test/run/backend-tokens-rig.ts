/** A gateway that gets tokens for backends from strict token endpoints. */
import { generateKeyPairSync } from 'node:crypto'
import { beforeEach, expect } from 'vitest'
import { startTokenProvider } from '../support/certified-provider.ts'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import { keySetOf, sign, signingKey } from '../support/identity-provider.ts'
import {
  gateway,
  hostOf,
  manifest,
  mcpBackend,
  policy,
  routeByHost,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { StrictTokenEndpoint } from '../support/token-endpoint.ts'
import type { ReceivedRequest } from '../support/upstream.ts'

export const issuer = 'https://idp.example.com'
export const port = await freePort()
const closedPort = await freePort()
export const users = await signingKey('users')
export const nextUsers = await signingKey('next-users', 'ES256')
export const rsa = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
})
export const ec = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'sec1', format: 'pem' },
})

export const upstream = useUpstream()
/** A backend for which every token is revoked. */
export const refusing = useUpstream('refusing', (_, response) => response.writeHead(401).end())
/** An MCP server without sessions, whose tool says which credentials came with the call. */
export const mcpServer = useUpstream('mcp', ({ body, headers }, response) => {
  const { id, method } = JSON.parse(body || '{}') as { id?: number; method?: string }
  if (id === undefined) {
    response.writeHead(202).end()
    return
  }
  if (body.includes('revoked')) {
    response.writeHead(401).end()
    return
  }
  const result =
    method === 'initialize'
      ? {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'who', version: '1' },
        }
      : { content: [{ type: 'text', text: String(headers.authorization) }] }
  response.writeHead(method === 'server/discover' ? 404 : 200, {
    'content-type': 'application/json',
  })
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
})
export const endpoint = useFixture(() => new StrictTokenEndpoint().start())
/** A certified provider that gives tokens to the client `app`. */
export const certified = useFixture(() => startTokenProvider('provider-secret'))
export const resourceServer = useFixture(() => new StrictTokenEndpoint().start())
beforeEach(() => {
  for (const one of [endpoint, resourceServer]) {
    one.reset()
    one.userKeys = [users, nextUsers]
  }
  upstream.forget()
  refusing.forget()
  mcpServer.forget()
})

const bySecret = { clientId: 'gate way', secretRef: { name: 'client' } }
const byKey = (more: object = {}) => ({
  clientId: 'gateway',
  method: 'PrivateKeyJwt',
  privateKeyJwt: {
    signingKeyRef: { name: 'keys', key: 'rsa' },
    assertionAudience: 'urn:the-server',
    kid: 'k1',
    ...more,
  },
})
const at = (path: string) => ({ url: `${endpoint.url}${path}` })

const reached = (name: string, auth: object, to = upstream) => [
  staticBackend(name, to.port, { auth }),
  routeByHost(name, toBackend(name)),
]
const ofClient = (name: string, more: object) =>
  reached(name, { oauthClientCredentials: { clientAuth: bySecret, ...more } })
const exchange = (more: object) => ({
  oauthTokenExchange: { ...at('/exchange'), clientAuth: bySecret, ...more },
})
const ofUser = (name: string, more: object, mode = 'Strict') => [
  ...reached(name, exchange(more)),
  ...signedIn(name, mode),
]
const signedIn = (name: string, mode = 'Strict') => [
  policy(name, `HTTPRoute/${name}`, {
    traffic: {
      jwtAuthentication: {
        mode,
        providers: [{ issuer, jwks: { inline: JSON.stringify(keySetOf(users, nextUsers)) } }],
      },
      transformation: { request: { set: [{ name: 'x-user', value: 'jwt.sub' }] } },
    },
  }),
]

export const running = useGateway(() => ({
  args: ['--workers', '2'],
  manifests: {
    'all.yaml': manifest(
      gateway(port),
      secret('client', { clientSecret: `${endpoint.clientSecret}\n` }),
      secret('odd-client', { secret: endpoint.clientSecret, clientSecret: 'wrong' }),
      secret('wrong-client', { clientSecret: 'wrong' }),
      secret('keys', { rsa: rsa.privateKey, ec: ec.privateKey, bad: 'no key' }),
      secret('own', { Authorization: 'own-value', other: 'Basic abc' }),
      staticBackend('endpoint', endpoint.port),
      ...ofClient('basic', {
        ...at('/basic'),
        scopes: ['read', 'write'],
        audiences: ['api', 'other'],
        resources: ['https://api.example.com'],
        additionalParams: { tenant: 'a' },
      }),
      ...ofClient('post', {
        ...at('/post'),
        clientAuth: { ...bySecret, method: 'ClientSecretPost' },
      }),
      ...ofClient('signed', { ...at('/signed'), clientAuth: byKey() }),
      ...ofClient('signed-ec', {
        ...at('/signed'),
        clientAuth: byKey({ signingKeyRef: { name: 'keys', key: 'ec' }, alg: 'ES256' }),
      }),
      ...ofClient('found', { issuer: endpoint.url }),
      secret('app', { 'client-secret': 'provider-secret' }),
      ...ofClient('certified', {
        issuer: certified.issuer,
        clientAuth: { clientId: 'app', secretRef: { name: 'app' } },
      }),
      ...ofClient('by-backend', { backendRef: toBackend('endpoint'), path: '/by-backend' }),
      ...ofClient('header', { ...at('/h'), location: { header: { name: 'X-Api-Token' } } }),
      ...ofClient('query', { ...at('/q'), location: { queryParameter: { name: 'access_token' } } }),
      ...ofClient('cookie', { ...at('/c'), location: { cookie: { name: 'token' } } }),
      ...reached(
        'revoked',
        { oauthClientCredentials: { ...at('/revoked'), clientAuth: bySecret } },
        refusing,
      ),
      ...ofClient('down', at('/down')),
      ...ofClient('closed', { url: `http://127.0.0.1:${closedPort}/` }),
      ...ofClient('odd-entry', {
        ...at('/odd-entry'),
        clientAuth: { clientId: 'gateway', secretRef: { name: 'odd-client', key: 'secret' } },
      }),
      ...ofClient('refused', {
        ...at('/refused'),
        clientAuth: { clientId: 'gateway', secretRef: { name: 'wrong-client' } },
      }),
      ...ofClient('bad-secret', {
        ...at('/'),
        clientAuth: { clientId: 'gateway', secretRef: { name: 'nothing' } },
      }),
      ...ofClient('own-parameter', { ...at('/'), additionalParams: { grant_type: 'password' } }),
      ...ofClient('own-header', { ...at('/'), location: { header: { name: 'Host' } } }),
      ...ofClient('bad-key', {
        ...at('/'),
        clientAuth: byKey({ signingKeyRef: { name: 'keys', key: 'bad' } }),
      }),
      ...ofUser('exchange', { audiences: ['api'], scopes: ['read'] }),
      ...ofUser('uncached', { cache: { inMemory: { maxEntries: 0 } } }),
      ...ofUser('optional', {}, 'Optional'),
      ...ofUser(
        'sent',
        {
          subjectToken: {
            source: { header: { name: 'x-subject' } },
            tokenType: 'urn:company:domain:human',
          },
          actorToken: {
            source: { header: { name: 'x-actor' } },
            tokenType: 'Jwt',
            mayAct: 'Required',
          },
          requestedTokenType: 'AccessToken',
          additionalParams: { tenant: 'request.headers["x-tenant"]' },
        },
        'Optional',
      ),
      ...ofUser('bearer', { ...at('/bearer'), grantType: 'JwtBearer', scopes: ['read'] }),
      mcpBackend('tools', [
        {
          name: 'who',
          static: { host: '127.0.0.1', port: mcpServer.port, policies: { auth: exchange({}) } },
        },
      ]),
      routeByHost('tools', toBackend('tools')),
      ...signedIn('tools', 'Optional'),
      ...reached('across', {
        crossAppAccess: {
          identityProvider: { ...at('/idp'), clientAuth: bySecret },
          resourceAuthorizationServer: { url: `${resourceServer.url}/token`, clientAuth: bySecret },
          audience: 'https://resource.example.com',
          scopes: ['read'],
          subjectToken: { source: { header: { name: 'authorization', prefix: 'Bearer ' } } },
        },
      }),
      ...reached('self', {
        jwtSign: {
          signingKeyRef: { name: 'keys', key: 'ec' },
          alg: 'ES256',
          kid: 'own-1',
          ttl: '60s',
          claims: {
            sub: 'request.headers["x-user"]',
            aud: '"api"',
            roles: '["a", request.method]',
          },
          location: { header: { name: 'X-Signed' } },
        },
      }),
      ...reached('own-claim', {
        jwtSign: { signingKeyRef: { name: 'keys', key: 'rsa' }, claims: { exp: '1' } },
      }),
      ...reached('several', {
        secretRef: { name: 'own' },
        location: { header: { name: 'x-key' } },
        credentials: [
          { location: { header: { name: 'x-other' } }, secretRef: { name: 'own', key: 'other' } },
          { location: { queryParameter: { name: 'api_key' } }, secretRef: { name: 'own' } },
          { location: { cookie: { name: 'key' } }, secretRef: { name: 'own' } },
        ],
      }),
      ...reached('only-others', {
        credentials: [{ location: { header: { name: 'x-key' } }, secretRef: { name: 'own' } }],
      }),
    ),
  },
}))

export const send = (name: string, request: TestRequest = {}) =>
  running.send(port, { host: hostOf(name), ...request })

export async function received(name: string, request: TestRequest = {}): Promise<ReceivedRequest> {
  const response = await send(name, request)
  expect([name, response.status, response.body]).toEqual([name, 200, expect.anything()])
  return JSON.parse(response.body) as ReceivedRequest
}

export const tokenOf = (sub: string, more: object = {}, key = users) =>
  sign(key, { iss: issuer, sub, ...more })
export const bearer = (token: string, more: Record<string, string> = {}) => ({
  headers: { authorization: `Bearer ${token}`, ...more },
})
export const callsOf = (path: string) => endpoint.calls.filter((call) => call.path === path)
