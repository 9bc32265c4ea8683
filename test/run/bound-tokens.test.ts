/** Tokens that are bound to a key of the client: by proofs (RFC 9449), or by its certificate (RFC 8705). */
import { createHash, X509Certificate } from 'node:crypto'
import {
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from 'jose'
import * as oauth from 'oauth4webapi'
import { describe, expect, it } from 'vitest'
import { startTokenProvider } from '../support/certified-provider.ts'
import { useAuthority, useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePorts } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import { inSeconds, keySetOf, sign, signingKey } from '../support/identity-provider.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  policy,
  secret,
  staticBackend,
  tlsSecret,
  toBackend,
} from '../support/manifests.ts'
import { sendTls } from '../support/tls-client.ts'

const issuer = 'https://idp.example.com'
const clientSecret = 'a-secret+with/odd:signs'
const { port, tls } = await freePorts('port', 'tls')
const key = await signingKey('one')
const upstream = useUpstream()
const authority = useAuthority()
const people = { ann: authority.issue(['ann']), bob: authority.issue(['bob']) }
const provider = useFixture(() => startTokenProvider(clientSecret))
const keys = { issuer, jwks: { inline: JSON.stringify(keySetOf(key)) } }

const guarded = (name: string, spec: Record<string, unknown>) => [
  httpRoute(name, { hostnames: [hostOf(name)], rules: [{ backendRefs: [toBackend('main')] }] }),
  policy(name, `HTTPRoute/${name}`, {
    traffic: { jwtAuthentication: { providers: [keys], ...spec } },
  }),
]

const running = useGateway(() => ({
  args: ['--workers', '2'],
  manifests: [
    gateway(0, {
      listeners: [
        { name: 'http', port, protocol: 'HTTP' },
        {
          name: 'https',
          port: tls,
          protocol: 'HTTPS',
          tls: { certificateRefs: [{ name: 'server' }] },
        },
      ],
      tls: {
        frontend: {
          default: {
            validation: {
              mode: 'AllowInsecureFallback',
              caCertificateRefs: [{ group: '', kind: 'Secret', name: 'clients' }],
            },
          },
        },
      },
    }),
    tlsSecret('server', authority.issue(['plain.example.com'])),
    secret('clients', { 'ca.crt': authority.certificate }),
    secret('client', { clientSecret }),
    staticBackend('main', upstream.port),
    staticBackend('provider', provider.port),
    ...guarded('plain', {}),
    ...guarded('bound', { dpop: { required: true } }),
    ...guarded('certified', {
      providers: [
        {
          issuer: provider.issuer,
          introspection: {
            backendRef: toBackend('provider'),
            path: '/token/introspection',
            clientAuth: { clientId: 'gateway', secretRef: { name: 'client' } },
          },
        },
      ],
      dpop: { required: true, nonces: true },
    }),
  ],
}))

const ask = (name: string, request: TestRequest = {}) =>
  running.send(port, { host: hostOf(name), ...request })
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

describe('tokens that are bound to a key [JWTAuthentication.dpop]', () => {
  async function boundToken() {
    const { privateKey, publicKey } = await generateKeyPair('ES256')
    const jwk = await exportJWK(publicKey)
    const jkt = await calculateJwkThumbprint(jwk, 'sha256')
    const token = await sign(key, { iss: issuer, sub: 'ann', cnf: { jkt } })
    const ath = createHash('sha256').update(token).digest('base64url')
    const proof = (
      claims: JWTPayload = {},
      header: Partial<JWTHeaderParameters> = {},
      signer = privateKey,
    ) =>
      new SignJWT({
        htm: 'GET',
        htu: `http://${hostOf('plain')}/a`,
        iat: inSeconds(0),
        jti: crypto.randomUUID(),
        ath,
        ...claims,
      })
        .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk, ...header })
        .sign(signer)
    return { token, proof }
  }
  const path = '/a?x=1'
  const send = (token: string, dpop: string | string[], name = 'plain') =>
    ask(name, { path, headers: { authorization: `DPoP ${token}`, dpop } })

  it('need one fresh proof for this request, which works once', async () => {
    const { token, proof } = await boundToken()
    const good = await proof()
    expect((await send(token, good)).status).toBe(200)
    expect(JSON.stringify(upstream.received.at(-1)?.headers)).not.toContain(good)
    const again = await send(token, good)
    expect([again.status, again.body]).toEqual([
      401,
      'authentication failure: the proof was used before',
    ])
    expect(again.headers['www-authenticate']).toMatch(
      /^DPoP realm="Restricted", algs="ES256 [^"]+", error="invalid_dpop_proof", error_description="the proof was used before"$/,
    )
    // TLS may end before the gateway, and an escape that is not needed changes nothing.
    const secure = await proof({ htu: `HTTPS://PLAIN.example.com:443/%61#x` })
    expect((await send(token, secure)).status).toBe(200)
  })

  it('are refused with any other proof', async () => {
    const { token, proof } = await boundToken()
    const other = await boundToken()
    const { privateKey: stranger } = await generateKeyPair('ES256')
    const wrong: Record<string, string | string[]> = {
      method: await proof({ htm: 'POST' }),
      url: await proof({ htu: `http://${hostOf('plain')}/b` }),
      host: await proof({ htu: `http://${hostOf('claims')}/a` }),
      token: await proof({ ath: 'x' }),
      late: await proof({ iat: inSeconds(-60) }),
      early: await proof({ iat: inSeconds(60) }),
      timeless: await proof({ iat: undefined }),
      nameless: await proof({ jti: undefined }),
      key: await other.proof({}),
      signature: await proof({}, {}, stranger),
      type: await proof({}, { typ: 'JWT' }),
      several: [await proof(), await proof()],
      nonsense: 'a.b.c',
      huge: 'a'.repeat(5_000),
    }
    for (const [what, dpop] of Object.entries(wrong)) {
      expect([what, (await send(token, dpop)).status]).toEqual([what, 401])
    }
  })

  it('are no bearer tokens, and a policy can refuse bearer tokens', async () => {
    const { token, proof } = await boundToken()
    const headers = { authorization: `Bearer ${token}`, dpop: await proof() }
    const { status, body } = await ask('plain', { path, headers })
    expect([status, body]).toEqual([
      401,
      'authentication failure: the token is bound to a key; use the scheme DPoP',
    ])
    const plain = await sign(key, { iss: issuer })
    expect((await send(plain, await proof())).status).toBe(401)
    expect((await ask('bound', bearer(plain))).status).toBe(401)
    expect((await ask('bound')).headers['www-authenticate']).toMatch(
      /^DPoP realm="Restricted", algs="ES256 /,
    )
    const bound = await proof({ htu: `http://${hostOf('bound')}/a` })
    expect((await send(token, bound, 'bound')).status).toBe(200)
  })

  it('are refused with another client certificate, or if it is not known how they are bound', async () => {
    const thumbprint = (pem: string) =>
      createHash('sha256').update(new X509Certificate(pem).raw).digest('base64url')
    const cnf = { 'x5t#S256': thumbprint(people.ann.certificate) }
    const authorization = `Bearer ${await sign(key, { iss: issuer, cnf })}`
    const as = (who?: keyof typeof people) => ({
      ca: authority.certificate,
      servername: hostOf('plain'),
      ...(who && { cert: people[who].certificate, key: people[who].key }),
    })
    const request = { host: hostOf('plain'), headers: { authorization } }
    expect((await sendTls(tls, as('ann'), request)).status).toBe(200)
    expect((await sendTls(tls, as('bob'), request)).body).toContain('another client certificate')
    expect((await sendTls(tls, as(), request)).status).toBe(401)
    expect((await ask('plain', { headers: { authorization } })).status).toBe(401)
    for (const odd of [{ kid: 'a' }, 'text', { jkt: 5 }, { 'x5t#S256': [] }]) {
      const token = await sign(key, { iss: issuer, cnf: odd } as JWTPayload)
      expect((await ask('plain', bearer(token))).status).toBe(401)
    }
  })

  it('[DPoP.required] [DPoP.nonces] lets a client library call with an opaque token that is bound to its key', async () => {
    const options = { [oauth.allowInsecureRequests]: true }
    const client = { client_id: 'app' }
    const discovered = await oauth.discoveryRequest(new URL(provider.issuer), options)
    const server = await oauth.processDiscoveryResponse(new URL(provider.issuer), discovered)
    const proofs = oauth.DPoP({}, await oauth.generateKeyPair('ES256'))
    const granted = await oauth.clientCredentialsGrantRequest(
      server,
      client,
      oauth.ClientSecretBasic(clientSecret),
      {},
      { ...options, DPoP: proofs },
    )
    const token = await oauth.processClientCredentialsResponse(server, client, granted)
    expect(token.token_type).toBe('dpop')
    const url = new URL(`http://127.0.0.1:${port}/orders?page=1`)
    const custom = {
      ...options,
      DPoP: proofs,
      // The library signs for the URL; only the connection goes elsewhere.
      [oauth.customFetch]: (_: string, init: { headers: Record<string, string> }) =>
        ask('certified', { path: '/orders?page=1', headers: init.headers }).then(
          ({ status, headers, body }) =>
            new Response(body, { status, headers: headers as Record<string, string> }),
        ),
    }
    const target = new URL(url.pathname + url.search, `http://${hostOf('certified')}`)
    const call = () =>
      oauth.protectedResourceRequest(
        token.access_token,
        'GET',
        target,
        undefined,
        undefined,
        custom as object,
      )
    await expect(call()).rejects.toMatchObject({ status: 401 })
    const second = await call()
    expect(second.status).toBe(200)
    expect(second.headers.get('dpop-nonce')).toMatch(/^[\w-]{20,}$/)
    expect((await call()).status).toBe(200)
    expect(upstream.received.at(-1)?.headers).not.toHaveProperty('dpop')
    expect((await ask('certified', bearer(token.access_token))).status).toBe(401)
  })
})
