/** Tokens for backends that are bound to a key of the gateway (`dpop`, RFC 9449), at servers that demand nonces. */
import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } from 'jose'
import { beforeEach, describe, expect, it } from 'vitest'
import { startTokenProvider } from '../support/certified-provider.ts'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import {
  configMap,
  gateway,
  hostOf,
  manifest,
  mcpBackend,
  routeByHost,
  routeByPath,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { connectClient } from '../support/mcp-client.ts'
import { StrictTokenEndpoint } from '../support/token-endpoint.ts'
import type { ReceivedRequest } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const port = await freePort()
/** A certified provider that issues opaque tokens and demands nonces. */
const certified = useFixture(() => startTokenProvider('provider-secret', { demandsNonce: true }))
const endpoint = useFixture(() => new StrictTokenEndpoint().start())

/** The nonce that the resource server demands. If undefined, each response demands a new one. */
let nonce: string | undefined = 'first'
let issued = 0
const proofs = new Set<string>()

/** Checks a proof as RFC 9449 section 4.3 says. Resolves to why it is refused. */
async function refusal({ headers, method, path }: ReceivedRequest): Promise<string | undefined> {
  const [scheme, token = ''] = String(headers.authorization).split(' ')
  if (scheme !== 'DPoP') return 'invalid_token'
  const { payload, protectedHeader } = await jwtVerify(String(headers.dpop), EmbeddedJWK, {
    typ: 'dpop+jwt',
    algorithms: ['ES256'],
    maxTokenAge: 60,
  })
  const { jti = '', htm, htu, ath } = payload
  if (proofs.has(jti)) return 'invalid_dpop_proof'
  proofs.add(jti)
  const digest = createHash('sha256').update(token).digest('base64url')
  const url = `http://${headers.host}${path.split('?')[0]}`
  if (htm !== method || htu !== url || ath !== digest) return 'invalid_dpop_proof'
  if (Object.keys(protectedHeader.jwk ?? {}).includes('d')) return 'invalid_dpop_proof'
  return payload.nonce === nonce ? undefined : 'use_dpop_nonce'
}

async function serve(request: ReceivedRequest, response: ServerResponse, body: () => string) {
  const error = await refusal(request).catch((thrown: Error) => thrown.message)
  if (error === undefined && failures > 0) {
    failures--
    response.writeHead(503).end()
    return
  }
  response.setHeader('content-type', 'application/json')
  response.setHeader('dpop-nonce', nonce ?? `other-${issued++}`)
  if (error === undefined) {
    response.end(body())
    return
  }
  response.writeHead(401, { 'www-authenticate': `DPoP error="${error}", algs="ES256"` }).end()
}

/** Number of requests with a valid proof that fail. */
let failures = 0
/** Requests to the API wait for it. */
let gate = Promise.resolve()
const api = useUpstream('api', (request, response) => {
  void gate.then(() => serve(request, response, () => JSON.stringify(request)))
})
const tools = useUpstream('tools', (request, response) => {
  const { id, method } = JSON.parse(request.body || '{}') as { id?: number; method?: string }
  const result =
    method === 'initialize'
      ? {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'tools', version: '1' },
        }
      : { content: [{ type: 'text', text: 'done' }] }
  void serve(request, response, () =>
    id === undefined ? '' : JSON.stringify({ jsonrpc: '2.0', id, result }),
  )
})

const ofCertified = () => ({
  issuer: certified.issuer,
  clientAuth: { clientId: 'app', secretRef: { name: 'app' } },
  dpop: true,
})
const bySecret = { clientId: 'gateway', secretRef: { name: 'client' } }
const reached = (name: string, auth: object) => [
  staticBackend(name, api.port, { auth }),
  routeByHost(name, toBackend(name), { retry: { codes: [503], attempts: 1 } }),
]

const running = useGateway(() => ({
  args: ['--workers', '1'],
  manifests: {
    'all.yaml': manifest(
      gateway(port),
      secret('app', { clientSecret: 'provider-secret' }),
      secret('client', { clientSecret: endpoint.clientSecret }),
      ...reached('own', { oauthClientCredentials: ofCertified() }),
      ...reached('exchanged', {
        oauthTokenExchange: {
          url: `${endpoint.url}/bound`,
          clientAuth: bySecret,
          subjectToken: { source: { header: { name: 'x-subject' } } },
          dpop: true,
        },
      }),
      ...reached('unbound', {
        oauthClientCredentials: {
          url: `${endpoint.url}/bearer`,
          clientAuth: bySecret,
          dpop: true,
        },
      }),
      ...reached('placed', {
        oauthClientCredentials: {
          ...ofCertified(),
          location: { header: { name: 'x-token' } },
        },
      }),
      mcpBackend('mcp', [
        {
          name: 'tools',
          static: {
            host: '127.0.0.1',
            port: tools.port,
            policies: { auth: { oauthClientCredentials: ofCertified() } },
          },
        },
      ]),
      routeByPath('mcp'),
      configMap('orders', {
        'openapi.yaml': JSON.stringify({
          openapi: '3.1.0',
          info: { title: 'Orders', version: '1' },
          paths: { '/orders': { post: { operationId: 'order', responses: {} } } },
        }),
      }),
      mcpBackend('operations', [
        {
          name: 'orders',
          static: {
            host: '127.0.0.1',
            port: api.port,
            openapi: { configMap: { name: 'orders' } },
            policies: { auth: { oauthClientCredentials: ofCertified() } },
          },
        },
      ]),
      routeByPath('operations'),
    ),
  },
}))

beforeEach(() => {
  api.forget()
  tools.forget()
  endpoint.reset()
})

const send = (name: string, request: TestRequest = {}) =>
  running.send(port, { host: hostOf(name), ...request })

describe('tokens that are bound to a key of the gateway [OAuthClientCredentials.dpop] [OAuthTokenExchange.dpop]', () => {
  it('are sent with a proof for each request, and again with the nonce that the server demands', async () => {
    nonce = 'first'
    const request = {
      method: 'POST',
      path: '/orders?id=1',
      body: 'whole',
      headers: { dpop: 'of.the.client', authorization: 'Bearer of-the-client' },
    }
    const first = await send('own', request)
    expect([first.status, first.headers['dpop-nonce']]).toEqual([200, undefined])
    const answered = JSON.parse(first.body) as ReceivedRequest
    expect([answered.body, api.received.length]).toEqual(['whole', 2])
    // The token is bound to the key of the proof.
    const [, token = ''] = String(answered.headers.authorization).split(' ')
    const { protectedHeader } = await jwtVerify(String(answered.headers.dpop), EmbeddedJWK)
    const found = await fetch(`${certified.issuer}/token/introspection`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa('gateway:provider-secret')}` },
      body: new URLSearchParams({ token }),
    })
    expect(await found.json()).toMatchObject({
      active: true,
      token_type: 'DPoP',
      cnf: { jkt: await calculateJwkThumbprint(protectedHeader.jwk ?? { kty: 'none' }) },
    })
    // The nonce is used from the first attempt on, until the server demands another one.
    expect((await send('own', request)).status).toBe(200)
    expect(api.received).toHaveLength(3)
    nonce = 'second'
    expect((await send('own', request)).status).toBe(200)
    expect(api.received).toHaveLength(5)
  })

  it('are sent again with a nonce without using up the retries of the route', async () => {
    nonce = 'before-a-failure'
    failures = 1
    const { status, body } = await send('own')
    const { headers } = JSON.parse(body) as ReceivedRequest
    expect([status, headers['x-retry-attempt'], api.received.length]).toEqual([200, '1', 3])
  })

  it('are sent twice at most to a server that never accepts a nonce', async () => {
    nonce = undefined
    const { status, headers } = await send('own')
    expect([status, headers['dpop-nonce'], api.received.length]).toEqual([401, undefined, 2])
    nonce = 'third'
    expect((await send('own')).status).toBe(200)
  })

  it('are sent to MCP servers that demand nonces, for calls of any client', async () => {
    nonce = 'for-tools'
    const client = await connectClient(port, '/mcp')
    const called = await client.callTool({ name: 'anything' })
    expect(called.content).toEqual([{ type: 'text', text: 'done' }])
    await client.close()
  })

  it('are sent again for each of several requests at once, and for tools of APIs', async () => {
    nonce = 'for-all'
    const arrived = Promise.withResolvers<void>()
    gate = arrived.promise
    const both = [send('own'), send('own')]
    await waitFor('both requests', () => api.received.length === 2)
    arrived.resolve()
    expect((await Promise.all(both)).map(({ status }) => status)).toEqual([200, 200])
    nonce = 'for-operations'
    const client = await connectClient(port, '/operations')
    const called = await client.callTool({ name: 'order', arguments: {} })
    expect(JSON.stringify(called.content)).toContain('DPoP')
    await client.close()
  })

  it('can come from a token exchange, and are not used if they are not bound to the key', async () => {
    nonce = 'fourth'
    const subject = { headers: { 'x-subject': 'jag-ann' } }
    const { status, body } = await send('exchanged', subject)
    const { authorization } = (JSON.parse(body) as ReceivedRequest).headers
    expect([status, authorization]).toEqual([200, expect.stringMatching(/^DPoP for-ann-/)])
    expect(endpoint.calls[0]?.dpop).toBeDefined()
    api.forget()
    // The endpoint ignores proofs, so its tokens are not bound to the key.
    expect((await send('unbound')).status).toBe(503)
    expect((await send('placed')).status).toBe(500)
    expect(api.received).toEqual([])
  })
})
