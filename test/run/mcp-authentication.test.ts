import { describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { inSeconds, sign, signingKey } from '../support/identity-provider.ts'
import {
  gateway,
  httpRoute,
  mcpBackend,
  policy,
  routeByPath,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startMcpItemsServer } from '../support/mcp-items-server.ts'
import { signInWithFirstSdk } from '../support/mcp-sign-in.ts'
import { type OAuthServer, startOAuthServer } from '../support/oauth-server.ts'

const audience = 'https://mcp.example.com'

type Fields = Readonly<Record<string, unknown>>

/** A backend at a path of its own that asks for tokens. */
const guarded = (name: string, authentication: Fields, more: Fields = {}) => [
  mcpBackend(name, [{ name: 'items', static: { host: '127.0.0.1', port: server.port } }]),
  routeByPath(name),
  policy(name, `GatewayBackend/${name}`, { backend: { mcp: { authentication }, ...more } }),
]

const server = useFixture(() => startMcpItemsServer({ tools: ['who'] }))
const idpA = useFixture(() => startOAuthServer({ kind: 'IdpA' }))
const idpB = useFixture(() => startOAuthServer({ kind: 'IdpB', audience }))
const port = await freePort()
const running = useGateway(() => {
  const jwks = (idp: OAuthServer, backend: string) => ({
    jwksPath: idp.keysPath,
    backendRef: toBackend(backend),
  })
  const ofB = { issuer: idpB.issuer, jwks: jwks(idpB, 'idp-b') }
  return {
    manifests: [
      gateway(port),
      staticBackend('idp-a', idpA.port),
      staticBackend('idp-b', idpB.port),
      staticBackend('web', idpA.port),
      // A route for the whole site must not hide the metadata of the MCP servers.
      httpRoute('site', { rules: [{ backendRefs: [toBackend('web')] }] }),
      ...guarded('strict', {
        ...ofB,
        audiences: [audience],
        resourceMetadata: { scopesSupported: ['read', 'write'], resource_name: 'Items' },
      }),
      ...guarded('optional', { ...ofB, mode: 'Optional' }),
      ...guarded('permissive', { ...ofB, mode: 'Permissive' }),
      ...guarded('anybody', { jwks: ofB.jwks }),
      ...guarded('a', {
        issuer: idpA.issuer,
        provider: 'IdpA',
        audiences: [audience],
        jwks: jwks(idpA, 'idp-a'),
      }),
      ...guarded('b', { ...ofB, provider: 'IdpB', audiences: [audience] }),
      ...guarded('passes-on', { ...ofB, mode: 'Strict' }, { auth: { passthrough: {} } }),
      ...guarded('named', {
        ...ofB,
        provider: 'IdpB',
        resourceMetadata: { resource: 'https://public.example.com/tools' },
      }),
      ...guarded('keyless', { ...ofB, jwks: { ...ofB.jwks, jwksPath: '/nothing' } }),
    ],
  }
})

const at = (path: string) => new URL(`http://127.0.0.1:${port}${path}`)
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Status of an initialize request; the session is left to end by itself. */
async function initialize(path: string, headers: Record<string, string> = {}) {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'test', version: '1.0.0' },
  }
  const response = await fetch(at(path), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  })
  await response.text()
  return response
}

const statusOf = async (path: string, headers?: Record<string, string>) =>
  (await initialize(path, headers)).status

const json = async (path: string) => {
  const response = await fetch(at(path))
  return { response, body: (await response.json()) as Record<string, unknown> }
}

describe('tokens for MCP backends [BackendMCP.authentication]', () => {
  it('[MCPAuthentication=Strict] [MCPAuthentication.mode] are required, with a pointer to the metadata', async () => {
    const response = await initialize('/strict')
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toBe(
      `Bearer resource_metadata="${at('/.well-known/oauth-protected-resource/strict').href}", scope="read write"`,
    )
    for (const method of ['GET', 'DELETE']) {
      expect((await fetch(at('/strict'), { method })).status).toBe(401)
    }
    expect(await statusOf('/strict', bearer(await idpB.token()))).toBe(200)
  })

  it('[MCPAuthentication.issuer] [MCPAuthentication.audiences] [MCPAuthentication.jwks] are checked for issuer, audience (CVE-2025-69196: a token for another server), expiry and signature', async () => {
    const stranger = await signingKey('IdpB')
    const wrong = {
      issuer: await idpB.token({ iss: 'https://elsewhere.example.com' }),
      audience: await idpB.token({ aud: 'https://elsewhere.example.com' }),
      late: await idpB.token({ exp: inSeconds(-120) }),
      forged: await sign(stranger, { iss: idpB.issuer, aud: audience }),
      nonsense: 'nonsense',
    }
    for (const [what, token] of Object.entries(wrong)) {
      const response = await initialize('/strict', bearer(token))
      expect([what, response.status]).toEqual([what, 401])
      const challenge = response.headers.get('www-authenticate')
      expect(challenge).toMatch(/resource_metadata="[^"]+", error="invalid_token", error_descr/)
      expect(challenge).toMatch(/, scope="read write"$/)
    }
    // Without issuer and audiences, the keys alone decide.
    expect(await statusOf('/anybody', bearer(wrong.issuer))).toBe(200)
    expect(await statusOf('/anybody', bearer(wrong.audience))).toBe(200)
    expect(await statusOf('/anybody', bearer(wrong.forged))).toBe(401)
    const { message } = await running.condition('GatewayPolicy', 'anybody', 'Accepted', 'True')
    expect(message).toContain('without issuer, the iss claim is not checked')
  })

  it('are refused if they are bound to a key or a certificate of another client', async () => {
    for (const cnf of [{ jkt: 'a' }, { 'x5t#S256': 'a' }]) {
      const token = await idpB.token({ cnf })
      const response = await initialize('/strict', bearer(token))
      expect(response.status).toBe(401)
      const challenge = response.headers.get('www-authenticate')
      expect(challenge).toMatch(
        /error_description="the token (?:is bound to a key|needs the client)/,
      )
    }
  })

  it('[MCPAuthentication=Optional] are optional with mode Optional, but validated if present', async () => {
    expect(await statusOf('/optional')).toBe(200)
    expect(await statusOf('/optional', bearer(await idpB.token()))).toBe(200)
    expect(await statusOf('/optional', bearer('nonsense'))).toBe(401)
  })

  it('[MCPAuthentication=Permissive] never cause a refusal with mode Permissive', async () => {
    expect(await statusOf('/permissive')).toBe(200)
    expect(await statusOf('/permissive', bearer(await idpB.token()))).toBe(200)
    expect(await statusOf('/permissive', bearer('nonsense'))).toBe(200)
  })

  it('are not forwarded, unless a policy says so', async () => {
    const token = await idpB.token()
    const before = server.headers.length
    for (const path of ['/strict', '/optional', '/permissive']) {
      await initialize(path, bearer(token))
    }
    await initialize('/permissive', bearer('nonsense'))
    const seen = server.headers.slice(before)
    expect(seen.length).toBeGreaterThan(3)
    expect(seen.filter(({ authorization }) => authorization !== undefined)).toEqual([])
    await initialize('/passes-on', bearer(token))
    expect(server.headers.at(-1)?.authorization).toBe(`Bearer ${token}`)
  })

  it('are all refused while there are no keys, which the status reports', async () => {
    expect(await statusOf('/keyless', bearer(await idpB.token()))).toBe(401)
    const { message } = await running.condition('GatewayPolicy', 'keyless', 'Accepted', 'False')
    expect(message).toMatch(/authentication\.jwks: no keys have been fetched .* no token is accept/)
    // `sluice status` fetches no keys for manifests, so it only reports that they are pending.
    const offline = await sluice('status', '-f', running.manifests)
    expect(offline.stdout).toContain('authentication.jwks: keys are pending')
  })
})

describe('protected resource metadata', () => {
  it('[MCPAuthentication.resourceMetadata] is served outside the path of the route, with CORS', async () => {
    const path = '/.well-known/oauth-protected-resource/strict'
    const { response, body } = await json(path)
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
    expect(body).toEqual({
      resource: at('/strict').href,
      authorization_servers: [idpB.issuer],
      mcp_protocol_version: '2025-06-18',
      resource_type: 'mcp-server',
      scopes_supported: ['read', 'write'],
      resource_name: 'Items',
    })
    const preflight = await fetch(at(path), { method: 'OPTIONS' })
    expect([preflight.status, preflight.headers.get('access-control-allow-methods')]).toEqual([
      204,
      'GET, OPTIONS',
    ])
    expect((await fetch(at(path), { method: 'POST' })).status).toBe(405)
    // The site answers if no MCP server has the path.
    expect((await fetch(at('/.well-known/oauth-protected-resource/elsewhere'))).status).toBe(404)
    expect(idpA.received.at(-1)?.url).toBe('/.well-known/oauth-protected-resource/elsewhere')
  })

  it('contains the resource fields that the policy sets', async () => {
    const { body } = await json('/.well-known/oauth-protected-resource/named')
    expect(body).toMatchObject({
      resource: 'https://public.example.com/tools',
      authorization_servers: ['https://public.example.com/tools'],
    })
    const challenge = (await initialize('/named')).headers.get('www-authenticate')
    expect(challenge).toContain('"https://public.example.com/.well-known/oauth-protected-resource/')
    const server = await json('/.well-known/oauth-authorization-server/named')
    expect(server.body).toMatchObject({
      issuer: 'https://public.example.com/tools',
      registration_endpoint:
        'https://public.example.com/.well-known/oauth-authorization-server/named/client-registration',
    })
  })

  it('of the authorization server is that of the issuer if no provider is named', async () => {
    const { body } = await json('/.well-known/oauth-authorization-server/strict')
    expect(body).toMatchObject({
      issuer: idpB.issuer,
      authorization_response_iss_parameter_supported: true,
    })
    expect((await fetch(at('/.well-known/oauth-authorization-server/anybody'))).status).toBe(404)
  })
})

describe('the official MCP client', () => {
  /** From nothing to a call, as a user would see it. */
  async function signInAndCall(path: string): Promise<unknown> {
    const client = await signInWithFirstSdk(at(path))
    const { content } = await client.callTool({ name: 'who', arguments: {} })
    await client.close()
    return content
  }

  it('[MCPAuthentication.provider=IdpA] [MCPAuthentication.provider] signs in with a provider that requires an audience', async () => {
    expect(await signInAndCall('/a')).toEqual([{ type: 'text', text: 'who' }])
    const asked = idpA.received.find(({ url }) => url.startsWith('/authorize'))
    const query = new URL(asked?.url ?? '', idpA.origin).searchParams
    expect([query.get('audience'), query.get('resource')]).toEqual([audience, at('/a').href])
  })

  it('[MCPAuthentication.provider=IdpB] signs in with a provider at which scripts cannot register', async () => {
    expect(await signInAndCall('/b')).toEqual([{ type: 'text', text: 'who' }])
    const path = '/realms/mcp/clients-registrations/openid-connect'
    const registration = idpB.received.find(({ url }) => url === path)
    expect(registration?.status).toBe(201)
    expect(registration?.headers['content-type']).toBe('application/json')
  })

  it('registers from a script through the gateway', async () => {
    const path = '/.well-known/oauth-authorization-server/b/client-registration'
    const preflight = await fetch(at(path), { method: 'OPTIONS' })
    expect(preflight.headers.get('access-control-allow-methods')).toBe('POST, OPTIONS')
    const headers = { 'content-type': 'application/json', origin: 'https://app.example.com' }
    const body = JSON.stringify({ redirect_uris: ['https://app.example.com/back'] })
    const response = await fetch(at(path), { method: 'POST', headers, body })
    expect(response.status).toBe(201)
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
    expect(((await response.json()) as { client_id: string }).client_id).toMatch(/^[0-9a-f-]{36}$/)
    const large = { method: 'POST', headers, body: 'x'.repeat(70_000) }
    expect((await fetch(at(path), large)).status).toBe(413)
  })
})
