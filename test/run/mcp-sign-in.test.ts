/** Signing in with a provider, whose place the gateway takes: what clients get, and official clients. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { startMcpItemsServer } from '../support/mcp-items-server.ts'
import { signInWithSdk } from '../support/mcp-sdks.ts'
import { browse, redirect, SignIn } from '../support/mcp-sign-in.ts'
import {
  audience,
  SignInRequests,
  signInManifests,
  visit,
} from '../support/mcp-sign-in-requests.ts'
import { startOAuthServer } from '../support/oauth-server.ts'
import { describeWithParts, partPath } from '../support/parts.ts'

const server = useFixture(() => startMcpItemsServer({ tools: ['who'] }))
const idpA = useFixture(() => startOAuthServer({ kind: 'IdpA' }))
const idpB = useFixture(() => startOAuthServer({ kind: 'IdpB', audience }))
const port = await freePort()
useGateway(() => ({
  manifests: signInManifests(port, { mcp: server.port, idpA, idpB }),
  // Requests of one sign-in reach different workers.
  args: ['--workers', '2'],
}))
const at = new SignInRequests(port)

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
      const metadata = await at.metadata(path)
      idp.metadata = {}
      const base = at.metadataUrl(path)
      expect(metadata).toEqual({
        issuer: at.url(path),
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
      const client_id = await at.newClient(path, redirect)
      const { issuer } = await at.metadata(path)
      const response = (await browse(at.authorization(path, { client_id }))).searchParams
      expect(Object.fromEntries(response)).toEqual({
        code: expect.any(String),
        state: 'of the client',
        iss: issuer,
      })
      const fields = { client_id, redirect_uri: redirect, code: response.get('code') ?? '' }
      const { status, body } = await at.token(path, fields)
      expect([status, body.token_type]).toEqual([200, 'Bearer'])
      const authorized = { authorization: `Bearer ${body.access_token}` }
      expect((await fetch(at.url(path), { headers: authorized })).status).not.toBe(401)
      // A code is valid once.
      expect(await at.token(path, fields)).toEqual({
        status: 400,
        body: { error: 'invalid_grant' },
      })
    },
  )

  it('gets errors of the provider with the issuer of the metadata', async () => {
    const client_id = await at.newClient('/b', redirect)
    idpB.refusal = 'access_denied'
    const response = await browse(at.authorization('/b', { client_id }))
    idpB.refusal = undefined
    expect(Object.fromEntries(response.searchParams)).toEqual({
      error: 'access_denied',
      state: 'of the client',
      iss: at.url('/b'),
    })
  })

  it('may omit the state, and have a query in its redirect URI or a scheme of its own', async () => {
    const uris = [`${redirect}?tab=1`, 'com.example.app:/callback', 'cursor://oauth/callback']
    const client_id = await at.newClient('/b', ...uris)
    for (const redirect_uri of uris) {
      const url = new URL(at.authorization('/b', { client_id, redirect_uri }))
      url.searchParams.delete('state')
      const back = await browse(url, redirect_uri)
      expect([...back.searchParams.keys()]).toEqual(
        redirect_uri.includes('?') ? ['tab', 'code', 'iss'] : ['code', 'iss'],
      )
    }
  })

  it('may listen at another port of the loopback address each time', async () => {
    const client_id = await at.newClient('/b', 'http://localhost:1234/callback')
    const redirect_uri = 'http://localhost:4321/callback'
    const back = await browse(at.authorization('/b', { client_id, redirect_uri }), redirect_uri)
    const code = back.searchParams.get('code') ?? ''
    expect((await at.token('/b', { client_id, redirect_uri, code })).status).toBe(200)
    for (const other of [
      'http://localhost:4321/other',
      'http://localhost.example.com:1/callback',
    ]) {
      const found = await visit(at.authorization('/b', { client_id, redirect_uri: other }))
      expect(found).toMatchObject({ status: 400, location: undefined })
    }
  })

  it('may be registered at the provider with the callback of the gateway', async () => {
    const unknown = idpB.register(redirect)
    const { status, text } = await visit(at.authorization('/b', { client_id: unknown }))
    const callback = /http:\S+client-callback\/[\w-]{43}/.exec(text)?.[0]
    expect([status, callback]).toEqual([400, expect.stringContaining(at.metadataUrl('/b'))])
    const client_id = idpB.register(redirect, callback ?? '')
    const response = await browse(at.authorization('/b', { client_id }))
    expect(response.searchParams.get('iss')).toBe(at.url('/b'))
  })

  it('registers its redirect URIs and the callbacks for them, and sees its own only', async () => {
    const response = await at.register('/b', { redirect_uris: [redirect], client_name: 'test' })
    expect(response.status).toBe(201)
    expect(await response.json()).toMatchObject({ redirect_uris: [redirect], client_name: 'test' })
    const sent = JSON.parse(idpB.received.at(-1)?.body ?? '') as { redirect_uris: string[] }
    expect(sent.redirect_uris).toEqual([
      redirect,
      expect.stringMatching(`^${at.metadataUrl('/b')}/client-callback/[\\w-]{43}$`),
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
      `${at.metadataUrl('/b')}/client-callback/${'x'.repeat(43)}`,
      7,
    ]
    for (const uri of uris) {
      const response = await at.register('/b', { redirect_uris: [redirect, uri] })
      expect([uri, response.status]).toEqual([uri, 400])
      expect(await response.json()).toMatchObject({ error: 'invalid_redirect_uri' })
    }
    const many = Array.from({ length: 33 }, (_, at) => `https://example.com/${at}`)
    expect((await at.register('/b', { redirect_uris: many })).status).toBe(400)
  })

  it('learns that an assertion for the gateway cannot be verified', async () => {
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    for (const aud of [at.url('/b'), [at.url('/b')], `${at.metadataUrl('/b')}/client-token`]) {
      const client_assertion = [part({ alg: 'ES256' }), part({ aud }), 'signature'].join('.')
      const answer = await at.token('/b', {
        grant_type: 'client_credentials',
        client_assertion,
      })
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_client' } })
      expect(answer.body.error_description).toContain(idpB.issuer)
    }
  })
})

describeWithParts(['mcp-sdks'], 'the SDK for TypeScript of generation 2', () => {
  it.each(['/a', '/b'])('signs in at %s', async (path) => {
    const client = await signInWithSdk(at.url(path), new SignIn())
    const { content } = await client.callTool({ name: 'who', arguments: {} })
    expect(content).toEqual([{ type: 'text', text: 'who' }])
    await client.close()
  })
})

describeWithParts(['python3', 'python-mcp'], 'the SDK for Python', () => {
  it.each(['/a', '/b'])('signs in at %s', async (path) => {
    const script = join(import.meta.dirname, '..', 'support', 'mcp_python_sign_in.py')
    const env = { ...process.env, PYTHONPATH: partPath('python-mcp') }
    const run = promisify(execFile)(partPath('python3'), [script, at.url(path)], { env })
    expect(JSON.parse((await run).stdout)).toBe('who')
  })
})
