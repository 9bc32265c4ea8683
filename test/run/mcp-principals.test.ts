/** An MCP session belongs to the principal that began it, for every kind of credentials. */
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Certificate } from '../support/certificates.ts'
import { startExtAuthServer } from '../support/ext-auth-server.ts'
import {
  useAuthority,
  useFixture,
  useFolder,
  useGateway,
  useListening,
} from '../support/fixture.ts'
import { freePorts } from '../support/gateway.ts'
import { send, type TestRequest, type TestResponse } from '../support/http-client.ts'
import { keySetOf, sign, signingKey } from '../support/identity-provider.ts'
import {
  configMap,
  gateway,
  manifest,
  mcpBackend,
  policy,
  routeByPath,
  secret,
  staticBackend,
  tlsSecret,
  toBackend,
} from '../support/manifests.ts'
import { startLenientServer } from '../support/mcp-lenient-server.ts'
import { startOAuthServer } from '../support/oauth-server.ts'
import { sendTls } from '../support/tls-client.ts'

type Fields = Readonly<Record<string, unknown>>

/** A client as one request shows it. */
interface Shown {
  readonly headers?: Record<string, string>
  readonly certificate?: Certificate
  readonly query?: string
  /** What the authorization service over gRPC says of it. */
  readonly metadata?: Record<string, string | number>
}

/** Ports of one process. */
interface Ports {
  readonly http: number
  readonly https: number
}

const issuers = ['https://one.example.com', 'https://two.example.com']

const authority = useAuthority()
const clientsOf = useAuthority()
const keys = await Promise.all(issuers.map((_, at) => signingKey(`key-${at}`)))
const server = useFixture(startLenientServer)
const idp = useFixture(() => startOAuthServer({ kind: 'IdpB' }))
const grpc = useFixture(startExtAuthServer)
const ports: Ports[] = [await freePorts('http', 'https'), await freePorts('http', 'https')]
let asked = 0

const served = (name: string, traffic: Fields | undefined, mcp?: Fields) => [
  mcpBackend(name, [{ name: 'only', static: { host: '127.0.0.1', port: server.port } }]),
  routeByPath(name),
  ...(traffic === undefined ? [] : [policy(name, `HTTPRoute/${name}`, { traffic })]),
  ...(mcp === undefined
    ? []
    : [policy(`${name}-mcp`, `GatewayBackend/${name}`, { backend: { mcp } })]),
]

function manifests({ http: plain, https }: Ports): string {
  const listeners = [
    { name: 'http', port: plain, protocol: 'HTTP' },
    { name: 'https', port: https, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'tls' }] } },
  ]
  const frontend = {
    default: {
      validation: {
        caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'clients' }],
        mode: 'AllowInsecureFallback',
      },
    },
  }
  const jwtAuthentication = {
    mode: 'Optional',
    providers: issuers.map((issuer, at) => ({
      issuer,
      jwks: { inline: JSON.stringify(keySetOf(...keys.slice(at, at + 1))) },
    })),
  }
  const apiKeyAuthentication = { mode: 'Optional', secretRef: { name: 'keys' } }
  const sha = (text: string) => `{SHA}${text}`
  const basicAuthentication = {
    mode: 'Optional',
    // Both passwords are "secret".
    users: ['ann', 'ben'].map((user) => `${user}:${sha('5en6G6MezRroT3XKqkdPOmY/BfQ=')}`),
  }
  const mcp = (mode: string) => ({
    authentication: {
      mode,
      issuer: idp.issuer,
      jwks: { jwksPath: idp.keysPath, backendRef: toBackend('idp') },
    },
  })
  const asked = (more: Fields) => ({ backendRef: toBackend('authorizer'), http: more })
  const extAuth = asked({})
  const overGrpc = { backendRef: toBackend('grpc'), grpc: {} }
  return manifest(
    gateway(0, { listeners, tls: { frontend } }),
    tlsSecret('tls', authority.issue(['a.example.com'])),
    configMap('clients', { 'ca.crt': clientsOf.certificate }),
    secret('keys', {
      ann: JSON.stringify({ key: 'key-of-ann', metadata: { group: 'sales' } }),
      ben: JSON.stringify({ key: 'key-of-ben', metadata: { group: 'sales' } }),
      cid: 'key-of-cid',
      dan: 'key-of-dan',
    }),
    staticBackend('idp', idp.port),
    staticBackend('authorizer', http.port),
    staticBackend('grpc', grpc.port),
    ...served('open', undefined),
    ...served('jwt', { jwtAuthentication }),
    ...served('jwt-permissive', {
      jwtAuthentication: { ...jwtAuthentication, mode: 'Permissive' },
    }),
    ...served('keys', { apiKeyAuthentication }),
    ...served('basic', { basicAuthentication }),
    ...served('mcp', undefined, mcp('Optional')),
    ...served('mcp-permissive', undefined, mcp('Permissive')),
    ...served('ext', { extAuth }),
    ...served('ext-listed', { extAuth: asked({ allowedRequestHeaders: ['x-team'] }) }),
    ...served('ext-user', { extAuth: asked({ allowedResponseHeaders: ['x-user', 'x-at'] }) }),
    ...served('ext-metadata', {
      extAuth: asked({
        responseMetadata: {
          user: 'response.headers["x-user"]',
          at: 'response.headers["x-at"]',
        },
      }),
    }),
    ...served('ext-grpc', { extAuth: overGrpc }),
    ...served('jwt-ext', { jwtAuthentication, extAuth }),
    ...served('keys-ext', {
      apiKeyAuthentication,
      extAuth: asked({ allowedRequestHeaders: ['x-team'] }),
    }),
    ...served('sse', { apiKeyAuthentication }),
  )
}

/** Says who it was by the part of the token before the first dash, and what time it is. */
const http = useListening(
  createServer(({ headers }, response) => {
    const [, user] = /^Bearer ([^-]+)/.exec(headers.authorization ?? '') ?? []
    response.setHeader('x-at', `${++asked}`)
    if (user !== undefined) response.setHeader('x-user', user)
    response.end()
  }),
)
const key = join(useFolder('sluice-principals-'), 'session.key')
writeFileSync(key, 'a secret that both processes share')
for (const [at, own] of ports.entries()) {
  useGateway(() => ({
    manifests: { 'all.yaml': manifests(own) },
    args: ['--session-key-file', key, '--workers', `${2 - at}`],
  }))
}

const bearer = (token: string): Shown => ({ headers: { authorization: `Bearer ${token}` } })
const nobody: Shown = {}

/** One request to a process, as the client shows itself. */
function ask(shown: Shown, at: number, path: string, request: TestRequest): Promise<TestResponse> {
  const { headers = {}, certificate, query, metadata } = shown
  const own = ports[at] ?? { http: 0, https: 0 }
  grpc.answer(metadata === undefined ? {} : { dynamicMetadata: metadata })
  const whole: TestRequest = {
    path: query === undefined ? path : `${path}?${query}`,
    ...request,
    headers: {
      accept: 'application/json, text/event-stream',
      ...(request.body !== undefined && { 'content-type': 'application/json' }),
      ...request.headers,
      ...headers,
    },
  }
  if (certificate === undefined) return send(own.http, whole)
  const { certificate: cert, key } = certificate
  const tls = { ca: authority.certificate, servername: 'a.example.com', cert, key }
  return sendTls(own.https, tls, whole)
}

async function begin(shown: Shown, path: string): Promise<string> {
  const clientInfo = { name: 'test', version: '1' }
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params })
  const { status, headers } = await ask(shown, 0, path, { method: 'POST', body })
  if (status !== 200) throw new Error(`initialize was answered ${status}`)
  return String(headers['mcp-session-id'])
}

const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })

/**
 * Begins a session as every client and carries it on as every other one. Clients of one group are the
 * same principal: they succeed, and clients of other groups get what an unknown session gets.
 */
async function expectBound(path: string, groups: readonly (readonly Shown[])[]): Promise<void> {
  const all = groups.flatMap((shown, group) => shown.map((one) => ({ one, group })))
  for (const [first, { one: owner, group }] of all.entries()) {
    const id = await begin(owner, path)
    const headers = { 'mcp-session-id': id }
    for (const [second, { one: other, group: otherGroup }] of all.entries()) {
      const at = (first + second) % 2
      const isOwn = group === otherGroup
      const { status } = await ask(other, at, path, { method: 'POST', headers, body: ping })
      expect([path, first, second, status]).toEqual([path, first, second, isOwn ? 200 : 404])
      if (isOwn) continue
      for (const method of ['GET', 'DELETE']) {
        const refused = await ask(other, at, path, { method, headers })
        expect([path, method, first, second, refused.status]).toEqual([
          path,
          method,
          first,
          second,
          404,
        ])
      }
    }
    expect((await ask(owner, 1, path, { method: 'DELETE', headers })).status).toBe(200)
  }
}

const token = (at: number, claims: Record<string, unknown>) => {
  const key = keys[at]
  if (key === undefined) throw new Error('no such key')
  return sign(key, { iss: issuers[at] ?? '', jti: `${Math.random()}`, ...claims })
}

describe('a session is bound to the principal that began it', () => {
  it('with tokens that a route verifies', async () => {
    const shown = async (at: number, claims: Record<string, unknown>) =>
      bearer(await token(at, claims))
    await expectBound('/jwt', [
      [nobody],
      [await shown(0, { sub: 'ann', client_id: 'x' }), await shown(0, { sub: 'ann', azp: 'y' })],
      [await shown(0, { sub: 'ben' })],
      [await shown(1, { sub: 'ann' })],
      // Client credentials often have no subject.
      [await shown(0, { client_id: 'ann' }), await shown(0, { client_id: 'ann' })],
      [await shown(0, { client_id: 'ben' })],
      [await shown(1, { client_id: 'ann' })],
      [await shown(0, { azp: 'app', preferred_username: 'ann' })],
      [await shown(0, { azp: 'app', preferred_username: 'ben' })],
      // Nothing but the token itself says who it is.
      [await shown(0, { scope: 'read' })],
      [await shown(0, { scope: 'read' })],
      [await shown(0, { sub: '', scope: 'read' })],
    ])
  })

  it('without credentials, treating invalid ones as none', async () => {
    await expectBound('/jwt-permissive', [
      [nobody, bearer('nonsense')],
      [bearer(await token(0, { sub: 'ann' }))],
    ])
    const annOfIdp = bearer(await idp.token({ sub: 'ann' }))
    await expectBound('/mcp-permissive', [[nobody, bearer('nonsense')], [annOfIdp]])
  })

  it('with tokens that the MCP backend verifies', async () => {
    const shown = async (claims: Record<string, unknown>) => bearer(await idp.token(claims))
    await expectBound('/mcp', [
      [nobody],
      [await shown({ sub: 'ann' }), await shown({ sub: 'ann', group: 'x' })],
      [await shown({ sub: 'ben' })],
    ])
  })

  it('with API keys, whatever their metadata', async () => {
    await expectBound('/keys', [
      [nobody],
      [bearer('key-of-ann')],
      [bearer('key-of-ben')],
      [bearer('key-of-cid')],
      [bearer('key-of-dan')],
    ])
  })

  it('with user names and passwords', async () => {
    const login = (user: string): Shown => {
      const pair = Buffer.from(`${user}:secret`).toString('base64')
      return { headers: { authorization: `Basic ${pair}` } }
    }
    await expectBound('/basic', [[nobody], [login('ann')], [login('ben')]])
  })

  it('with client certificates, alone and together with API keys', async () => {
    const certified = (...names: string[]): Shown => ({ certificate: clientsOf.issue(names) })
    const ann = certified('ann')
    const ben = certified('ben')
    const stranger: Shown = { certificate: authority.issue(['ann']) }
    await expectBound('/open', [
      [nobody, stranger],
      [ann, certified('ann')],
      [ben],
      [certified('x', 'spiffe://example.org/a'), certified('y', 'spiffe://example.org/a')],
    ])
    await expectBound('/keys', [
      [nobody],
      [ann],
      [bearer('key-of-ann')],
      [{ ...ann, ...bearer('key-of-ann') }],
      [{ ...ann, ...bearer('key-of-ben') }],
      [{ ...ben, ...bearer('key-of-ann') }],
    ])
  })

  it('with external authorization that names the user, in metadata or in a header', async () => {
    for (const path of ['/ext-user', '/ext-metadata']) {
      await expectBound(path, [
        [bearer('ann-1'), bearer('ann-2')],
        [bearer('ben-1'), bearer('ben-2')],
      ])
    }
    const user = (name: string, at: number): Shown => ({ metadata: { sub: name, at } })
    await expectBound('/ext-grpc', [[nobody], [user('ann', 1), user('ann', 2)], [user('ben', 1)]])
  })

  it('with external authorization that names no user, by the headers that it read', async () => {
    await expectBound('/ext', [[nobody], [bearer('a')], [bearer('b')], [{ query: 'key=a' }]])
    await expectBound('/ext-listed', [
      [nobody],
      [{ headers: { 'x-team': 'one' } }],
      [{ headers: { 'x-team': 'two' } }],
      [{ headers: { 'x-team': 'one', authorization: 'Bearer a' } }],
    ])
    await expectBound('/ext-grpc', [
      [nobody, { headers: { 'x-request-id': '1', 'idempotency-key': '2' } }],
      [bearer('a')],
      [{ headers: { cookie: 'session=a' } }],
      [{ headers: { 'x-api-key': 'a' } }],
      [{ headers: { 'x-auth-token': 'a' } }],
      [{ metadata: { tenant: 'a' } }],
      [{ metadata: { tenant: 'b' } }],
    ])
  })

  it('with several kinds of credentials, all of which must match', async () => {
    const renewed = async (sub: string) => bearer(await token(0, { sub }))
    await expectBound('/jwt-ext', [
      [nobody],
      [await renewed('ann'), await renewed('ann')],
      [await renewed('ben')],
    ])
    const both = (key: string, team: string): Shown => ({
      headers: { authorization: `Bearer ${key}`, 'x-team': team },
    })
    await expectBound('/keys-ext', [
      [nobody],
      [both('key-of-ann', 'one')],
      [both('key-of-ann', 'two')],
      [both('key-of-ben', 'one')],
    ])
  })

  it('also if its stream is one of the older transport', async () => {
    const { http: at } = ports[0] ?? { http: 0 }
    const url = `http://127.0.0.1:${at}`
    const owned = async (shown: Shown) => {
      const answer = await fetch(`${url}/sse`, {
        headers: { accept: 'text/event-stream', ...shown.headers },
      })
      const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
      const { value = '' } = (await reader?.read()) ?? {}
      const [, place = ''] = /data: (\S+)\n/.exec(value) ?? []
      return { place, close: () => reader?.cancel() }
    }
    const all = [nobody, bearer('key-of-ann'), bearer('key-of-ben')]
    for (const owner of all) {
      const { place, close } = await owned(owner)
      for (const other of all) {
        const request = { method: 'POST', body: ping, headers: { connection: 'close' } }
        const { status } = await ask(other, 0, place, request)
        expect(status).toBe(owner === other ? 202 : 404)
      }
      await close()
    }
  })
})
