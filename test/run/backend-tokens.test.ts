/** Tokens that the gateway gets for backends: its own, and those that it gets in exchange for tokens of users. */
import { decodeJwt, importSPKI, jwtVerify } from 'jose'
import { describe, expect, it } from 'vitest'
import { sluice } from '../support/gateway.ts'
import { inSeconds, sign } from '../support/identity-provider.ts'
import { hostOf } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'
import {
  bearer,
  callsOf,
  certified,
  ec,
  endpoint,
  issuer,
  mcpServer,
  nextUsers,
  port,
  received,
  refusing,
  resourceServer,
  rsa,
  running,
  send,
  tokenOf,
  upstream,
  users,
} from './backend-tokens-rig.ts'

const message = (method: string, params: object) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
const post = (body: string, token?: string, session?: string) =>
  send('tools', {
    method: 'POST',
    body,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(token && { authorization: `Bearer ${token}` }),
      ...(session && { 'mcp-session-id': session }),
    },
  })
const initialize = message('initialize', {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
})

describe('client credentials [BackendAuth.oauthClientCredentials]', () => {
  it('[OAuthClientAuth.method] authenticates in each way, and sends all parameters', async () => {
    endpoint.clientKey = { pem: rsa.publicKey, alg: 'RS256' }
    const { headers } = await received('basic', bearer('of-the-client'))
    expect(headers.authorization).toMatch(/^Bearer for-gate_way-api\+other-read_write-\d+$/)
    expect([...(callsOf('/basic')[0]?.form ?? [])]).toEqual([
      ['audience', 'api'],
      ['audience', 'other'],
      ['resource', 'https://api.example.com'],
      ['scope', 'read write'],
      ['tenant', 'a'],
      ['grant_type', 'client_credentials'],
    ])
    expect((await received('post')).headers.authorization).toMatch(/^Bearer for-gate_way-/)
    expect((await received('signed')).headers.authorization).toMatch(/^Bearer for-gateway-/)
    expect(callsOf('/signed')[0]?.assertion).toEqual({ alg: 'RS256', kid: 'k1' })
    endpoint.clientKey = { pem: ec.publicKey, alg: 'ES256' }
    expect((await received('signed-ec')).headers.authorization).toMatch(/^Bearer for-gateway-/)
  })

  it('gets tokens of a certified provider', async () => {
    const { headers } = await received('certified')
    const token = String(headers.authorization).replace('Bearer ', '')
    const answer = await fetch(`${certified.issuer}/token/introspection`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa('gateway:provider-secret')}` },
      body: new URLSearchParams({ token }),
    })
    expect(await answer.json()).toMatchObject({ active: true, client_id: 'app' })
  })

  it('[OAuthClientCredentials.issuer] finds the endpoint by its issuer, or at a backend', async () => {
    await received('found')
    await received('by-backend')
    expect(endpoint.calls.map(({ path }) => path).sort()).toEqual(['/by-backend', '/found'])
  })

  it('[AuthorizationLocation.header] [AuthorizationLocation.queryParameter] [AuthorizationLocation.cookie] puts the token where it is configured, in place of what a client sent', async () => {
    const { headers } = await received('header', { headers: { 'x-api-token': 'of-the-client' } })
    expect(headers['x-api-token']).toMatch(/^for-/)
    const { path } = await received('query', { path: '/a?b=1&access_token=x&c=2&access%5Ftoken=y' })
    expect(path).toMatch(/^\/a\?b=1&c=2&access_token=for-gate_way---\d+$/)
    const { headers: more } = await received('cookie', { headers: { cookie: 'a=1; token=x; b=2' } })
    expect(more.cookie).toMatch(/^a=1; b=2; token=for-gate_way---\d+$/)
  })

  it('sends nothing to the backend while the token endpoint is down, and says so', async () => {
    endpoint.fixed = { status: 503, body: 'a text that no log may contain' }
    const answers = await Promise.all(Array.from({ length: 20 }, () => send('down')))
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(503))
    expect(answers[0]?.body).toBe('the credential for the backend is not available now')
    expect(upstream.received).toEqual([])
    // One call of each worker, because requests wait for the same one, and failures are kept for a second.
    expect(callsOf('/down').length).toBeLessThanOrEqual(4)
    for (const body of [
      'no JSON',
      '{"access_token":"a\\nb","token_type":"Bearer"}',
      '{"access_token":"a","token_type":"DPoP"}',
      '[]',
    ]) {
      endpoint.fixed = { status: 200, body }
      expect([body, (await send('down')).status]).toEqual([body, 503])
    }
    endpoint.fixed = { status: 404, body: 'not here' }
    expect((await send('down')).status).toBe(503)
    expect((await send('closed')).status).toBe(503)
    expect(upstream.received).toEqual([])
    endpoint.fixed = undefined
    await running.sendUntil(port, { host: hostOf('down') }, ({ status }) => status === 200)
  })

  it('fails with 500 if the server does not accept the gateway, and asks rarely', async () => {
    for (let count = 0; count < 10; count++) expect((await send('refused')).status).toBe(500)
    expect(callsOf('/refused').length).toBeLessThanOrEqual(4)
    expect(upstream.received).toEqual([])
    expect((await send('odd-entry')).status).toBe(200)
  })

  it('refuses settings that cannot work, and requests with them', async () => {
    const messages: Record<string, string> = {
      'bad-secret': 'oauthClientCredentials.clientAuth.secretRef: Secret nothing does not exist',
      'own-parameter': 'the gateway sets this parameter itself',
      'own-header': 'header host cannot carry a credential',
      'own-claim': 'the gateway sets this claim itself',
    }
    for (const [name, text] of Object.entries(messages)) {
      const { message } = await running.condition('GatewayBackend', name, 'Accepted', 'False')
      expect(message).toContain(text)
      expect([name, (await send(name)).status]).toEqual([name, 500])
    }
    expect((await send('bad-key')).status).toBe(500)
  })
})

describe('tokens in exchange for those of users [BackendAuth.oauthTokenExchange]', () => {
  it('sends the whole request of RFC 8693, and the token to the backend', async () => {
    const token = await tokenOf('ann')
    const { headers } = await received('exchange', bearer(token))
    expect(headers.authorization).toMatch(/^Bearer for-ann-api-read-\d+$/)
    expect(JSON.stringify(headers)).not.toContain(token)
    expect(Object.fromEntries(callsOf('/exchange')[0]?.form ?? [])).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      audience: 'api',
      scope: 'read',
    })
  })

  it('gives no principal the token of another one, while 100 users and the keys of the issuer rotate', async () => {
    const tokens = await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const user = `user-${index}`
        const all = [
          await tokenOf(user, { jti: 'one' }),
          await tokenOf(user, { jti: 'two' }),
          await tokenOf(user, { jti: 'three' }, nextUsers),
        ]
        return { user, all }
      }),
    )
    // All users of a round at once; more rounds at once could exceed the calls that a worker makes.
    for (const round of [0, 1, 2, 0, 1, 2]) {
      await Promise.all(
        tokens.map(async ({ user, all }) => {
          const { headers } = await received('exchange', bearer(all[round] ?? ''))
          expect(headers['x-user']).toBe(user)
          expect(headers.authorization).toMatch(new RegExp(`^Bearer for-${user}-api-`))
        }),
      )
    }
    // Each worker asks once for each token of a user.
    const asked = callsOf('/exchange').length
    expect(asked).toBeGreaterThanOrEqual(300)
    expect(asked).toBeLessThanOrEqual(600)
  })

  it('sends no token that is not meant for a backend', async () => {
    for (const name of ['refresh_token', 'id_token', 'saml2']) {
      const issued_token_type = `urn:ietf:params:oauth:token-type:${name}`
      const body = { access_token: 'secret', token_type: 'N_A', issued_token_type }
      endpoint.fixed = { status: 200, body }
      expect((await send('uncached', bearer(await tokenOf('ann')))).status).toBe(503)
    }
    expect(upstream.received).toEqual([])
  })

  it('acts as the user at MCP servers, and gives clients the challenges', async () => {
    for (const user of ['ann', 'bob']) {
      const token = await tokenOf(user)
      const begun = await post(initialize, token)
      const session = String(begun.headers['mcp-session-id'])
      const called = await post(message('tools/call', { name: 'who' }), token, session)
      expect(called.body).toContain(`Bearer for-${user}-`)
      expect(called.body).not.toContain(token)
    }
    const refused = await post(initialize, await tokenOf('eve', { blocked: true }))
    expect([refused.status, refused.body]).toEqual([403, expect.stringContaining('this user')])
    const without = await post(initialize)
    expect([without.status, without.headers['www-authenticate']]).toEqual([
      401,
      'Bearer realm="Restricted"',
    ])
    endpoint.fixed = { status: 503, body: '' }
    expect((await post(initialize, await tokenOf('carl'))).status).toBe(503)
  })

  it('gets another token after a backend or an MCP server has refused it', async () => {
    endpoint.expiresIn = 20
    const tokensAt = ({ received: all }: typeof refusing) =>
      new Set(all.map(({ headers }) => headers.authorization)).size
    await waitFor('another token of the gateway', async () => {
      expect((await send('revoked')).status).toBe(401)
      return tokensAt(refusing) > 2
    })
    const token = await tokenOf('ann')
    const { headers } = await post(initialize, token)
    mcpServer.forget()
    const call = message('tools/call', { name: 'revoked' })
    await waitFor('another token of the user', async () => {
      await post(call, token, String(headers['mcp-session-id']))
      return tokensAt(mcpServer) > 2
    })
  })

  it('asks for each request if the cache is off', async () => {
    const token = await tokenOf('ann')
    const first = (await received('uncached', bearer(token))).headers.authorization
    const second = (await received('uncached', bearer(token))).headers.authorization
    expect(second).not.toBe(first)
  })

  it('refuses a user whom the server refuses, and asks for the claims that it demands', async () => {
    const blocked = await tokenOf('eve', { blocked: true })
    const refused = await send('exchange', bearer(blocked))
    expect([refused.status, refused.body]).toEqual([
      403,
      'no credential for the backend is issued to this user',
    ])
    const weak = await send('exchange', bearer(await tokenOf('bob', { weak: true })))
    expect(weak.status).toBe(401)
    const challenge = String(weak.headers['www-authenticate'])
    const claims = /error="insufficient_claims", claims="([\w-]+)"/.exec(challenge)?.[1] ?? ''
    expect(Buffer.from(claims, 'base64url').toString()).toBe(
      '{"access_token":{"acr":{"value":"2"}}}',
    )
    const without = await send('optional')
    expect([without.status, without.headers['www-authenticate']]).toEqual([
      401,
      'Bearer realm="Restricted"',
    ])
    expect(upstream.received).toEqual([])
    expect((await received('exchange', bearer(await tokenOf('ann')))).headers['x-user']).toBe('ann')
  })

  it('[OAuthTokenExchange.subjectToken] [OAuthTokenExchange.actorToken] takes tokens from places, and lets only the named actor act', async () => {
    const subject = await tokenOf('ann', { may_act: { sub: 'agent', iss: issuer } })
    const request = (actor: string, more: Record<string, string> = { 'x-tenant': 'acme' }) => ({
      headers: { 'x-subject': subject, 'x-actor': actor, ...more },
    })
    const actor = await tokenOf('agent')
    const { headers } = await received('sent', request(actor))
    expect(headers.authorization).toMatch(/^Bearer for-ann-/)
    expect(JSON.stringify(headers)).not.toContain(subject)
    expect(JSON.stringify(headers)).not.toContain(actor)
    expect(Object.fromEntries(endpoint.calls.at(-1)?.form ?? [])).toMatchObject({
      subject_token_type: 'urn:company:domain:human',
      actor_token: actor,
      actor_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      tenant: 'acme',
    })
    const other = await sign(users, { iss: 'https://other.example.com', sub: 'agent' })
    for (const wrong of [await tokenOf('robot'), other, 'opaque']) {
      expect((await send('sent', request(wrong))).status).toBe(403)
    }
    expect((await send('sent', { headers: { 'x-subject': subject } })).status).toBe(401)
    expect((await send('sent', request(actor, {}))).status).toBe(500)
    // No policy has verified the token, but the gateway knows that it was revoked.
    const revoke = ['revoke', '--issuer', issuer, '--sub', 'eve', '--reason', 'stolen']
    const own = await tokenOf('eve', { may_act: { sub: 'agent', iss: issuer } })
    const stolen = { headers: { 'x-subject': own, 'x-actor': actor, 'x-tenant': 'acme' } }
    await received('sent', stolen)
    await sluice(...revoke, '--log-file', running.logFile)
    const refused = await waitFor('the revocation', async () => {
      const response = await send('sent', stolen)
      return response.status !== 200 && response
    })
    expect([refused.status, refused.headers['www-authenticate']]).toEqual([
      401,
      expect.stringContaining('error="invalid_token"'),
    ])
    await received('sent', request(actor))
  })

  it('[OAuthTokenExchange.grantType] sends the token as an assertion (RFC 7523)', async () => {
    const token = await tokenOf('ann')
    const { headers } = await received('bearer', bearer(token))
    expect(headers.authorization).toMatch(/^Bearer for-ann-/)
    expect(Object.fromEntries(callsOf('/bearer')[0]?.form ?? [])).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: token,
      scope: 'read',
    })
  })

  it('[BackendAuth.crossAppAccess] gets an assertion of the identity provider, and a token for it at the server of the resource', async () => {
    const { headers } = await received('across', bearer(await tokenOf('ann')))
    expect(headers.authorization).toMatch(/^Bearer for-ann--read-\d+$/)
    expect(Object.fromEntries(callsOf('/idp')[0]?.form ?? [])).toMatchObject({
      subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
      requested_token_type: 'urn:ietf:params:oauth:token-type:id-jag',
      audience: 'https://resource.example.com',
      scope: 'read',
    })
    expect(resourceServer.calls.map(({ form }) => form.get('assertion'))).toEqual(['jag-ann'])
    endpoint.fixed = {
      status: 200,
      body: {
        access_token: 'x',
        token_type: 'N_A',
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      },
    }
    expect((await send('across', bearer(await tokenOf('bob')))).status).toBe(503)
  })
})

describe('other credentials', () => {
  it('[BackendAuth.jwtSign] signs a token for each request, with claims of the request', async () => {
    const { headers } = await received('self', { headers: { 'x-user': 'ann', 'x-signed': 'x' } })
    const key = await importSPKI(ec.publicKey, 'ES256')
    const { payload, protectedHeader } = await jwtVerify(String(headers['x-signed']), key)
    expect(protectedHeader).toEqual({ alg: 'ES256', typ: 'JWT', kid: 'own-1' })
    expect(payload).toMatchObject({ sub: 'ann', aud: 'api', roles: ['a', 'GET'] })
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(60)
    expect(Math.abs((payload.iat ?? 0) - inSeconds(0))).toBeLessThan(60)
    expect(
      decodeJwt(
        String((await received('self', { headers: { 'x-user': 'bob' } })).headers['x-signed']),
      ).sub,
    ).toBe('bob')
    expect((await send('self')).status).toBe(500)
  })

  it('[BackendAuth.credentials] [BackendAuth.location] sends several values in their places', async () => {
    const { path, headers } = await received('several', { path: '/x' })
    expect(path).toBe('/x?api_key=own-value')
    expect(headers).toMatchObject({
      'x-key': 'own-value',
      'x-other': 'Basic abc',
      cookie: 'key=own-value',
    })
    expect(headers.authorization).toBeUndefined()
    const others = await received('only-others', bearer('of-the-client'))
    expect(others.headers).toMatchObject({
      'x-key': 'own-value',
      authorization: 'Bearer of-the-client',
    })
  })

  it('writes no token, secret or text of a server to the log', () => {
    const logs = `${running.stdout}${running.stderr}`
    expect(logs).toContain('the token endpoint of')
    for (const text of [
      'for-ann',
      'for-gate_way',
      endpoint.clientSecret,
      'no log may contain',
      'own-value',
      'eyJ',
    ]) {
      expect(logs).not.toContain(text)
    }
  })
})
