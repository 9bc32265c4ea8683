/** Official MCP clients sign in through the gateway at each kind of identity provider. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { keySetOf } from '../support/identity-provider.ts'
import {
  gateway,
  mcpBackend,
  policy,
  routeByPath,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startMcpItemsServer } from '../support/mcp-items-server.ts'
import { signInWithSdk } from '../support/mcp-sdks.ts'
import { redirect, SignIn, signInWithFirstSdk } from '../support/mcp-sign-in.ts'
import { SignInRequests, visit } from '../support/mcp-sign-in-requests.ts'
import type { OAuthKind } from '../support/oauth-quirks.ts'
import { startOAuthServer } from '../support/oauth-server.ts'
import { describeWithParts, partPath } from '../support/parts.ts'

interface Case {
  readonly kind: OAuthKind
  readonly path: string
  /** Registered at the provider by an administrator, because clients cannot register there. */
  readonly clientId?: string
  readonly clientSecret?: string
  readonly audience: string
  /** Whether the settings are those of the route (`jwtAuthentication.mcp`). */
  readonly isOnRoute?: true
}

const port = await freePort()
const at = new SignInRequests(port)
const api = 'api://items'
const fixed = { clientId: 'fixed-client', clientSecret: 'a secret: of+the%client' }

const cases: readonly Case[] = [
  { kind: 'generic', path: '/generic', audience: at.url('/generic') },
  { kind: 'IdpA', path: '/a', audience: api },
  { kind: 'IdpB', path: '/b', audience: api },
  { kind: 'Okta', path: '/okta', audience: api, clientId: 'public-client' },
  { kind: 'Descope', path: '/descope', audience: at.url('/descope') },
  { kind: 'Authentik', path: '/authentik', audience: api, ...fixed },
  { kind: 'Entra', path: '/entra', audience: api, ...fixed },
  { kind: 'Cognito', path: '/cognito', audience: fixed.clientId, ...fixed },
  { kind: 'Google', path: '/google', audience: fixed.clientId, ...fixed },
  { kind: 'generic', path: '/route-generic', audience: at.url('/route-generic'), isOnRoute: true },
  { kind: 'IdpB', path: '/route-b', audience: api, isOnRoute: true },
  { kind: 'Entra', path: '/route-entra', audience: api, isOnRoute: true, ...fixed },
]

const generic = useFixture(() => startOAuthServer({ kind: 'generic' }))
const server = useFixture(() => startMcpItemsServer({ tools: ['who'] }))
const started = cases.map((one) => ({
  ...one,
  idp: useFixture(() => startOAuthServer({ kind: one.kind, audience: one.audience })),
}))

/** The callback of the gateway that stands for the redirect URI of the test's clients. */
function callbackOf(path: string): string {
  const key = createHash('sha256').update(redirect.replace(':1/', '/')).digest('base64url')
  return `${at.metadataUrl(path)}/client-callback/${key}`
}

function manifestsOf({ path, kind, clientId, clientSecret, audience, isOnRoute, idp }: Started) {
  const name = path.slice(1)
  if (clientId !== undefined) idp.registerAs(clientId, clientSecret, callbackOf(path))
  const jwks = { jwksPath: idp.keysPath, backendRef: toBackend(`idp-${name}`) }
  const signIn = {
    ...(kind !== 'generic' && { provider: kind }),
    ...(clientId !== undefined && { clientId }),
    ...(clientSecret !== undefined && { clientSecretRef: { name: 'client' } }),
    resourceMetadata: { scopesSupported: kind === 'Google' ? ['offline_access'] : ['tools'] },
  }
  const { issuer } = idp
  const audiences = [audience]
  const idpBackend = staticBackend(`idp-${name}`, idp.port)
  if (isOnRoute) {
    const providers = [{ issuer, audiences, jwks: { remote: jwks } }]
    const traffic = { jwtAuthentication: { providers, mcp: signIn } }
    return [
      idpBackend,
      // The gateway does not know that this backend is an MCP server.
      staticBackend(name, server.port),
      routeByPath(name),
      policy(name, `HTTPRoute/${name}`, { traffic }),
    ]
  }
  const authentication = { issuer, audiences, jwks, ...signIn }
  return [
    idpBackend,
    mcpBackend(name, [{ name: 'items', static: { host: '127.0.0.1', port: server.port } }]),
    routeByPath(name),
    policy(name, `GatewayBackend/${name}`, { backend: { mcp: { authentication } } }),
  ]
}
type Started = (typeof started)[number]

/** A policy whose clients could not know which issuer to use. */
function ofTwoIssuers() {
  const jwks = { inline: JSON.stringify(keySetOf(generic.key)) }
  const providers = ['https://one.example.com', 'https://two.example.com'].map((issuer) => ({
    issuer,
    jwks,
  }))
  const traffic = { jwtAuthentication: { providers, mcp: {} } }
  return [
    staticBackend('two', server.port),
    routeByPath('two'),
    policy('two', 'HTTPRoute/two', { traffic }),
  ]
}

/** An MCP server that asks for tokens, and has been told at which URL clients reach it. */
async function startOwnServer(inner: number, resource: string, issuer: string) {
  const metadata = { resource, authorization_servers: [issuer] }
  const challenge = `Bearer resource_metadata="${new URL('/.well-known/oauth-protected-resource/own', resource)}"`
  const http = createServer((incoming, outgoing) => {
    const { method, url = '', headers } = incoming
    if (url.startsWith('/.well-known/')) {
      const isFound = url === '/.well-known/oauth-protected-resource/own'
      outgoing.writeHead(isFound ? 200 : 404, { 'content-type': 'application/json' })
      outgoing.end(isFound ? JSON.stringify(metadata) : '{}')
    } else if (headers.authorization === undefined) {
      outgoing.writeHead(401, { 'www-authenticate': challenge }).end()
    } else {
      const onward = request({ port: inner, host: '127.0.0.1', method, path: url, headers })
      onward.on('response', (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(outgoing)
      })
      incoming.pipe(onward)
    }
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const close = async () => {
    http.close()
    http.closeAllConnections()
  }
  return { port: (http.address() as AddressInfo).port, close }
}

const own = useFixture(() => startOwnServer(server.port, at.url('/own'), generic.issuer))
const running = useGateway(() => ({
  manifests: [
    gateway(port),
    secret('client', { clientSecret: fixed.clientSecret }),
    ...started.flatMap(manifestsOf),
    ...ofTwoIssuers(),
    mcpBackend('own', [{ name: 'items', static: { host: '127.0.0.1', port: own.port } }]),
    routeByPath('own'),
  ],
}))

describe('the SDK for TypeScript of generation 1 [McpIDP=Okta] [McpIDP=Descope] [McpIDP=Authentik] [McpIDP=Entra] [McpIDP=Cognito] [McpIDP=Google]', () => {
  it.each(started)('signs in with $kind at $path', async ({ path }) => {
    const client = await signInWithFirstSdk(at.url(path))
    const { content } = await client.callTool({ name: 'who', arguments: {} })
    expect(content).toEqual([{ type: 'text', text: 'who' }])
    expect(server.headers.at(-1)?.authorization).toBeUndefined()
    await client.close()
  })
})

describeWithParts(['mcp-sdks'], 'the SDK for TypeScript of generation 2', () => {
  it.each(started)('signs in with $kind at $path', async ({ path }) => {
    const client = await signInWithSdk(at.url(path), new SignIn())
    const { content } = await client.callTool({ name: 'who', arguments: {} })
    expect(content).toEqual([{ type: 'text', text: 'who' }])
    await client.close()
  })
})

describeWithParts(['python3', 'python-mcp'], 'the SDK for Python', () => {
  it('signs in with providers that clients find, cannot register at, and that give opaque tokens', async () => {
    const script = join(import.meta.dirname, '..', 'support', 'mcp_python_sign_in.py')
    const env = { ...process.env, PYTHONPATH: partPath('python-mcp') }
    const urls = ['/generic', '/route-entra', '/google'].map((path) => at.url(path))
    const run = promisify(execFile)(partPath('python3'), [script, ...urls], { env })
    expect((await run).stdout.trim().split('\n')).toEqual(urls.map(() => '"who"'))
  })
})

const forms = { 'content-type': 'application/x-www-form-urlencoded' }
const find = (path: string) => started.find((one) => one.path === path)?.idp

it('asks Google for refresh tokens in its own way', () => {
  const asked = find('/google')?.received.map(({ url }) => new URL(url, 'http://google.test'))
  const search = asked?.findLast(({ pathname }) => pathname.endsWith('/authorize'))?.searchParams
  expect(Object.fromEntries(search ?? [])).toMatchObject({
    scope: 'openid',
    access_type: 'offline',
    prompt: 'consent',
  })
})

describe('a client id that all clients get [MCPAuthentication.clientId] [JWTMCPConfig.clientId]', () => {
  it.each(['/entra', '/route-entra'])(
    'is the answer to registrations, without the secret (%s)',
    async (path) => {
      const asked = { redirect_uris: [redirect], client_name: 'test', client_secret: 'x' }
      const response = await at.register(path, asked)
      expect(response.status).toBe(201)
      expect(await response.json()).toEqual({
        redirect_uris: [redirect],
        client_name: 'test',
        client_id: fixed.clientId,
        token_endpoint_auth_method: 'none',
      })
      expect(await at.metadata(path)).toMatchObject({
        token_endpoint_auth_methods_supported: ['none'],
        code_challenge_methods_supported: ['S256'],
        grant_types_supported: ['authorization_code', 'refresh_token'],
      })
      expect((await at.register(path, { redirect_uris: ['javascript:1'] })).status).toBe(400)
    },
  )

  it.each(['/entra', '/cognito', '/google'])(
    'can only be used with redirect URIs that the provider knows (%s)',
    async (path) => {
      const redirect_uri = 'https://other.example.com/callback'
      const asked = at.authorization(path, { client_id: fixed.clientId, redirect_uri })
      const { status, location, text } = await visit(asked)
      expect([status, location]).toEqual([400, undefined])
      expect(text).toContain(`${at.metadataUrl(path)}/client-callback/`)
    },
  )

  it('[MCPAuthentication.clientSecretRef] [JWTMCPConfig.clientSecretRef] has a secret that only grants of users get, with PKCE', async () => {
    for (const path of ['/authentik', '/route-entra']) {
      const client_id = fixed.clientId
      const plain = new URL(at.authorization(path, { client_id }))
      plain.searchParams.delete('code_challenge')
      expect(await visit(plain.href)).toMatchObject({ status: 400, location: undefined })
      const idp = find(path)
      const sent = async (fields: Record<string, string>, headers = {}) => {
        const before = idp?.received.length ?? 0
        const body = new URLSearchParams({ client_id, ...fields })
        const url = `${at.metadataUrl(path)}/client-token`
        await fetch(url, { method: 'POST', headers: { ...forms, ...headers }, body })
        return idp?.received.slice(before).map((one) => one.body) ?? []
      }
      const withSecret = [expect.stringContaining('client_secret=a+secret')]
      const withoutSecret = [expect.not.stringContaining('client_secret=a+secret')]
      const refresh = { grant_type: 'refresh_token', refresh_token: 'x' }
      expect(await sent(refresh)).toEqual(withSecret)
      expect(await sent({ grant_type: 'client_credentials' })).toEqual(withoutSecret)
      expect(await sent({ ...refresh, client_id: 'other' })).toEqual(withoutSecret)
      expect(await sent({ ...refresh, client_secret: 'own' })).toEqual(withoutSecret)
      expect(await sent(refresh, { authorization: 'Basic eDp5' })).toEqual(withoutSecret)
      expect(await sent({ grant_type: 'authorization_code', code: 'x' })).toEqual([])
    }
  })
})

describe('jwtAuthentication.mcp of a route [JWTAuthentication.mcp] [JWTMCPConfig.provider]', () => {
  it('[JWTMCPConfig.resourceMetadata] points clients without a valid token to the metadata', async () => {
    const path = '/route-b'
    const metadata = at.url(`/.well-known/oauth-protected-resource${path}`)
    for (const headers of [{}, { authorization: 'Bearer nonsense' }]) {
      const response = await fetch(at.url(path), { method: 'POST', headers })
      expect(response.status).toBe(401)
      expect(response.headers.get('www-authenticate')).toMatch(/^Bearer realm="Restricted"/)
      expect(response.headers.get('www-authenticate')).toContain(
        `, resource_metadata="${metadata}", scope="tools"`,
      )
    }
    expect(await (await fetch(metadata)).json()).toMatchObject({
      resource: at.url(path),
      authorization_servers: [at.url(path)],
      scopes_supported: ['tools'],
    })
    expect((await fetch(`${metadata}/elsewhere`)).status).toBe(200)
    expect((await fetch(metadata.replace(path, '/unknown'))).status).toBe(404)
  })

  it('accepts tokens of both issuers of Entra, of this tenant only', async () => {
    const idp = find('/route-entra')
    const status = async (claims: Record<string, unknown>) => {
      const token = await idp?.token({ aud: api, ...claims })
      const headers = { authorization: `Bearer ${token}` }
      return (await fetch(at.url('/route-entra'), { method: 'DELETE', headers })).status
    }
    expect(await status({ iss: 'https://sts.windows.net/another-tenant/' })).toBe(401)
    expect(await status({ aud: 'another' })).toBe(401)
    expect(await status({ iss: idp?.issuer })).not.toBe(401)
    expect(await status({})).not.toBe(401)
  })

  it('is reported if it has several providers', async () => {
    const { message } = await running.condition('GatewayPolicy', 'two', 'Accepted', 'True')
    expect(message).toContain('mcp: needs exactly one provider and mode Strict')
  })
})

describeWithParts(['mcp-sdks'], 'a server with its own authorization server', () => {
  it('can be behind the gateway if it knows the URL of the gateway', async () => {
    const first = await signInWithFirstSdk(at.url('/own'))
    const second = await signInWithSdk(at.url('/own'), new SignIn())
    for (const client of [first, second]) {
      expect((await client.listTools()).tools).toHaveLength(1)
      await client.close()
    }
  })
})
