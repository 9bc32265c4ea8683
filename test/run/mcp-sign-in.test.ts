/** Signing in with a provider, whose place the gateway takes: official clients, and attacks. */
import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  gateway,
  mcpBackend,
  policy,
  routeByPath,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startMcpItemsServer } from '../support/mcp-items-server.ts'
import { signInWithSdk } from '../support/mcp-sdks.ts'
import { browse, redirect, SignIn } from '../support/mcp-sign-in.ts'
import { type OAuthServer, startOAuthServer } from '../support/oauth-server.ts'
import { describeWithParts, partPath } from '../support/parts.ts'

const audience = 'https://mcp.example.com'
const server = useFixture(() => startMcpItemsServer({ tools: ['who'] }))
const idpA = useFixture(() => startOAuthServer({ kind: 'IdpA' }))
const idpB = useFixture(() => startOAuthServer({ kind: 'IdpB', audience }))
const key = join(useFolder('sluice-sign-in-'), 'key')
writeFileSync(key, randomBytes(32))

const guarded = (name: string, provider: string, idp: OAuthServer, backend: string) => [
  mcpBackend(name, [{ name: 'items', static: { host: '127.0.0.1', port: server.port } }]),
  routeByPath(name),
  policy(name, `GatewayBackend/${name}`, {
    backend: {
      mcp: {
        authentication: {
          issuer: idp.issuer,
          provider,
          audiences: [audience],
          jwks: { jwksPath: idp.keysPath, backendRef: toBackend(backend) },
        },
      },
    },
  }),
]

const ports = [await freePort(), await freePort()] as const
for (const port of ports) {
  useGateway(() => ({
    manifests: [
      gateway(port),
      staticBackend('idp-a', idpA.port),
      staticBackend('idp-b', idpB.port),
      ...guarded('a', 'IdpA', idpA, 'idp-a'),
      ...guarded('b', 'IdpB', idpB, 'idp-b'),
      ...guarded('other', 'IdpB', idpB, 'idp-b'),
    ],
    // Both gateways have the same key, as replicas have.
    args: ['--session-key-file', key, '--workers', '2'],
  }))
}

const [port, otherPort] = ports
const originOf = (at: number) => `http://127.0.0.1:${at}`
const urlOf = (path: string) => `${originOf(port)}${path}`
const metadataUrl = (path: string, at: number = port) =>
  `${originOf(at)}/.well-known/oauth-authorization-server${path}`

type Json = Record<string, unknown>

async function metadataOf(path: string, at?: number): Promise<Record<string, string>> {
  return (await (await fetch(metadataUrl(path, at))).json()) as Record<string, string>
}

/** Registers a client through the gateway. */
async function register(path: string, fields: Json): Promise<Response> {
  const { registration_endpoint = '' } = await metadataOf(path)
  return fetch(registration_endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(fields),
  })
}

async function newClient(path: string, ...redirect_uris: string[]): Promise<string> {
  const registered = (await (await register(path, { redirect_uris })).json()) as Json
  return String(registered.client_id)
}

const verifier = randomBytes(32).toString('base64url')

/** A request for authorization, as the gateway's metadata asks for it. */
function authorization(path: string, fields: Record<string, string>, at: number = port): string {
  const query = new URLSearchParams({
    response_type: 'code',
    redirect_uri: redirect,
    state: 'of the client',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...fields,
  })
  return `${metadataUrl(path, at)}/client-authorization?${query}`
}

/** Sends one request as a browser, without following redirects. */
async function visit(url: string) {
  const response = await fetch(url, { redirect: 'manual' })
  const { status, headers } = response
  const text = await response.text()
  return { status, location: headers.get('location') ?? undefined, text }
}

/** The URL of the callback that the provider redirects to, before the browser has followed it. */
async function callbackOf(path: string, fields: Record<string, string>): Promise<URL> {
  const toProvider = await visit(authorization(path, fields))
  const toGateway = await visit(toProvider.location ?? '')
  return new URL(toGateway.location ?? '')
}

async function requestToken(path: string, fields: Record<string, string>) {
  const response = await fetch(`${metadataUrl(path)}/client-token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code_verifier: verifier,
      ...fields,
    }),
  })
  return { status: response.status, body: (await response.json()) as Json }
}

const refused = (text: string) => ({
  status: 400,
  location: undefined,
  text: expect.stringContaining(text),
})

describe('metadata of the gateway as authorization server', () => {
  it.each(['/a', '/b'])(
    'names endpoints of the gateway, and none that it cannot relay (%s)',
    async (path) => {
      const idp = path === '/a' ? idpA : idpB
      idp.metadata = {
        client_id_metadata_document_supported: true,
        dpop_signing_alg_values_supported: ['ES256'],
        pushed_authorization_request_endpoint: `${idp.origin}/par`,
        request_object_signing_alg_values_supported: ['RS256'],
        response_types_supported: ['code', 'code id_token'],
        signed_metadata: 'x.y.z',
        token_endpoint_auth_methods_supported: ['none', 'private_key_jwt', 'client_secret_post'],
        scopes_supported: ['openid'],
      }
      // No worker has cached the document before this first request.
      const metadata = await metadataOf(path)
      idp.metadata = {}
      const base = metadataUrl(path)
      expect(metadata).toEqual({
        issuer: urlOf(path),
        authorization_endpoint: `${base}/client-authorization`,
        token_endpoint: `${base}/client-token`,
        registration_endpoint: `${base}/client-registration`,
        jwks_uri: `${idp.origin}${idp.keysPath}`,
        response_types_supported: ['code'],
        response_modes_supported: ['query'],
        grant_types_supported: ['authorization_code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['none', 'client_secret_post'],
        authorization_response_iss_parameter_supported: true,
        request_parameter_supported: false,
        request_uri_parameter_supported: false,
        scopes_supported: ['openid'],
      })
    },
  )
})

describe('a client that signs in', () => {
  it.each(['/a', '/b'])(
    'gets the code with the issuer of the metadata, and a token for it (%s)',
    async (path) => {
      const client_id = await newClient(path, redirect)
      const { issuer } = await metadataOf(path)
      const response = (await browse(authorization(path, { client_id }))).searchParams
      expect(Object.fromEntries(response)).toEqual({
        code: expect.any(String),
        state: 'of the client',
        iss: issuer,
      })
      const fields = { client_id, redirect_uri: redirect, code: response.get('code') ?? '' }
      const { status, body } = await requestToken(path, fields)
      expect([status, body.token_type]).toEqual([200, 'Bearer'])
      const authorized = { authorization: `Bearer ${body.access_token}` }
      expect((await fetch(urlOf(path), { headers: authorized })).status).not.toBe(401)
      // A code is valid once.
      expect(await requestToken(path, fields)).toEqual({
        status: 400,
        body: { error: 'invalid_grant' },
      })
    },
  )

  it('gets errors of the provider with the issuer of the metadata', async () => {
    const client_id = await newClient('/b', redirect)
    idpB.refusal = 'access_denied'
    const response = await browse(authorization('/b', { client_id }))
    idpB.refusal = undefined
    expect(Object.fromEntries(response.searchParams)).toEqual({
      error: 'access_denied',
      state: 'of the client',
      iss: urlOf('/b'),
    })
  })

  it('may omit the state, and have a query in its redirect URI or a scheme of its own', async () => {
    const uris = [`${redirect}?tab=1`, 'com.example.app:/callback', 'cursor://oauth/callback']
    const client_id = await newClient('/b', ...uris)
    for (const redirect_uri of uris) {
      const url = new URL(authorization('/b', { client_id, redirect_uri }))
      url.searchParams.delete('state')
      const back = await browse(url, redirect_uri)
      expect([...back.searchParams.keys()]).toEqual(
        redirect_uri.includes('?') ? ['tab', 'code', 'iss'] : ['code', 'iss'],
      )
    }
  })

  it('may listen at another port of the loopback address each time', async () => {
    const client_id = await newClient('/b', 'http://localhost:1234/callback')
    const redirect_uri = 'http://localhost:4321/callback'
    const back = await browse(authorization('/b', { client_id, redirect_uri }), redirect_uri)
    const code = back.searchParams.get('code') ?? ''
    expect((await requestToken('/b', { client_id, redirect_uri, code })).status).toBe(200)
    for (const other of [
      'http://localhost:4321/other',
      'http://localhost.example.com:1/callback',
    ]) {
      const found = await visit(authorization('/b', { client_id, redirect_uri: other }))
      expect(found).toMatchObject({ status: 400, location: undefined })
    }
  })

  it('may be registered at the provider with the callback of the gateway', async () => {
    const unknown = idpB.register(redirect)
    const { status, text } = await visit(authorization('/b', { client_id: unknown }))
    const callback = /http:\S+client-callback\/[\w-]{43}/.exec(text)?.[0]
    expect([status, callback]).toEqual([400, expect.stringContaining(metadataUrl('/b'))])
    const client_id = idpB.register(redirect, callback ?? '')
    const response = await browse(authorization('/b', { client_id }))
    expect(response.searchParams.get('iss')).toBe(urlOf('/b'))
  })

  it('registers its redirect URIs and the callbacks for them, and sees its own only', async () => {
    const response = await register('/b', { redirect_uris: [redirect], client_name: 'test' })
    expect(response.status).toBe(201)
    expect(await response.json()).toMatchObject({ redirect_uris: [redirect], client_name: 'test' })
    const sent = JSON.parse(idpB.received.at(-1)?.body ?? '') as { redirect_uris: string[] }
    expect(sent.redirect_uris).toEqual([
      redirect,
      expect.stringMatching(`^${metadataUrl('/b')}/client-callback/[\\w-]{43}$`),
    ])
  })

  it('cannot register redirect URIs that browsers run, or that the gateway serves', async () => {
    const uris = [
      'javascript:alert(1)//',
      'data:text/html,x',
      'https://user@example.com/',
      'https://example.com/#part',
      'https://example.com/a\nb',
      'relative',
      `${metadataUrl('/b')}/client-callback/${'x'.repeat(43)}`,
      7,
    ]
    for (const uri of uris) {
      const response = await register('/b', { redirect_uris: [redirect, uri] })
      expect([uri, response.status]).toEqual([uri, 400])
      expect(await response.json()).toMatchObject({ error: 'invalid_redirect_uri' })
    }
    const many = Array.from({ length: 33 }, (_, at) => `https://example.com/${at}`)
    expect((await register('/b', { redirect_uris: many })).status).toBe(400)
  })

  it('learns that an assertion for the gateway cannot be verified', async () => {
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    for (const aud of [urlOf('/b'), [urlOf('/b')], `${metadataUrl('/b')}/client-token`]) {
      const client_assertion = [part({ alg: 'ES256' }), part({ aud }), 'signature'].join('.')
      const answer = await requestToken('/b', {
        grant_type: 'client_credentials',
        client_assertion,
      })
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_client' } })
      expect(answer.body.error_description).toContain(idpB.issuer)
    }
  })
})

describe('an attacker', () => {
  const evil = 'https://evil.example.com/steal'

  it('cannot have a user sent to a redirect URI that the client has not registered', async () => {
    const client_id = await newClient('/b', redirect)
    const uris = [
      evil,
      `${redirect}/..`,
      `${redirect}?x`,
      'http://127.0.0.1:1@evil.example.com/callback',
    ]
    for (const redirect_uri of uris) {
      const found = await visit(authorization('/b', { client_id, redirect_uri }))
      expect(found).toMatchObject({ status: 400, location: undefined })
    }
    expect(await visit(authorization('/b', { client_id: 'unknown' }))).toMatchObject({
      status: 400,
    })
  })

  it('cannot use a response mode, response type or request object that evades the callback', async () => {
    const client_id = await newClient('/b', redirect)
    for (const fields of [
      { response_mode: 'fragment' },
      { response_mode: 'form_post' },
      { response_type: 'token' },
      { response_type: 'code id_token' },
      { request: 'x.y.z' },
      { request_uri: 'urn:x' },
    ] as Record<string, string>[]) {
      const found = await visit(authorization('/b', { client_id, ...fields }))
      expect(found).toMatchObject({ status: 400, location: undefined })
    }
    const twice = `${authorization('/b', { client_id })}&redirect_uri=${encodeURIComponent(evil)}`
    expect(await visit(twice)).toEqual(refused('redirect_uri is repeated'))
  })

  it('cannot change, invent or move a state', async () => {
    const client_id = await newClient('/b', redirect)
    const callback = await callbackOf('/b', { client_id })
    const state = callback.searchParams.get('state') ?? ''
    const at = Math.floor(state.length / 2)
    const changed = `${state.slice(0, at)}${state[at] === 'A' ? 'B' : 'A'}${state.slice(at + 1)}`
    for (const other of [changed, '', 'of the client', `${state}=`, state.slice(0, -2)]) {
      const forged = new URL(callback)
      forged.searchParams.set('state', other)
      expect(await visit(forged.href)).toEqual(refused('the state is not of a sign-in'))
    }
    const elsewhere = [
      callback.href.replace('/oauth-authorization-server/b/', '/oauth-authorization-server/other/'),
      callback.href.replace(`:${port}/`, `:${otherPort}/`),
    ]
    for (const url of elsewhere) expect(await visit(url)).toEqual(refused('the state is not of a'))
    expect(await visit(`${callback.href}&state=${state}`)).toEqual(refused('state is repeated'))
    expect((await visit(callback.href)).status).toBe(302)
  })

  it('cannot have the code for one client returned to another one', async () => {
    const own = await newClient('/b', evil)
    const state = (await callbackOf('/b', { client_id: own, redirect_uri: evil })).searchParams.get(
      'state',
    )
    const victim = await newClient('/b', redirect)
    const callback = await callbackOf('/b', { client_id: victim })
    callback.searchParams.set('state', state ?? '')
    expect(await visit(callback.href)).toEqual(refused('the state is not of a sign-in'))
  })

  it('cannot mix up issuers', async () => {
    const client_id = await newClient('/b', redirect)
    const callback = await callbackOf('/b', { client_id })
    for (const iss of [idpA.issuer, `${idpB.issuer}/`, urlOf('/b'), '']) {
      const mixed = new URL(callback)
      mixed.searchParams.set('iss', iss)
      expect(await visit(mixed.href)).toEqual(refused('the response is of another issuer'))
    }
    callback.searchParams.delete('iss')
    const { location = '' } = await visit(callback.href)
    expect(new URL(location).searchParams.get('iss')).toBe(urlOf('/b'))
  })

  it('cannot redeem a code without the verifier, or with another redirect URI', async () => {
    const client_id = await newClient('/b', redirect, evil)
    for (const change of [{ code_verifier: 'x'.repeat(43) }, { redirect_uri: evil }] as Record<
      string,
      string
    >[]) {
      const { searchParams } = await browse(authorization('/b', { client_id }))
      const fields = { client_id, redirect_uri: redirect, code: searchParams.get('code') ?? '' }
      expect((await requestToken('/b', { ...fields, ...change })).status).toBe(400)
    }
  })

  it('cannot send large or repeated fields', async () => {
    const large = await requestToken('/b', { code: 'x'.repeat(70_000) })
    expect(large.status).toBe(413)
    const client_id = await newClient('/b', redirect)
    const long = await visit(authorization('/b', { client_id, state: 'x'.repeat(6_000) }))
    expect(long).toEqual(refused('too long'))
    const body = `redirect_uri=${encodeURIComponent(redirect)}&redirect_uri=${encodeURIComponent(evil)}`
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const repeated = await fetch(`${metadataUrl('/b')}/client-token`, {
      method: 'POST',
      headers,
      body,
    })
    expect(repeated.status).toBe(400)
    const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }
    expect((await fetch(`${metadataUrl('/b')}/client-token`, json)).status).toBe(400)
  })
})

describeWithParts(['mcp-sdks'], 'the SDK for TypeScript of generation 2', () => {
  it.each(['/a', '/b'])('signs in at %s', async (path) => {
    const client = await signInWithSdk(urlOf(path), new SignIn())
    const { content } = await client.callTool({ name: 'who', arguments: {} })
    expect(content).toEqual([{ type: 'text', text: 'who' }])
    await client.close()
  })
})

describeWithParts(['python3', 'python-mcp'], 'the SDK for Python', () => {
  it.each(['/a', '/b'])('signs in at %s', async (path) => {
    const script = join(import.meta.dirname, '..', 'support', 'mcp_python_sign_in.py')
    const env = { ...process.env, PYTHONPATH: partPath('python-mcp') }
    const run = promisify(execFile)(partPath('python3'), [script, urlOf(path)], { env })
    expect(JSON.parse((await run).stdout)).toBe('who')
  })
})
