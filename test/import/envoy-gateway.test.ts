import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { waitFor } from '../support/wait-for.ts'
import { answerAs } from './model-upstream.ts'
import { outline, runImport, useImport } from './rig.ts'

const port = await freePort()
const shop = useUpstream('shop')
const first = useUpstream('first', answerAs('first'))
const second = useUpstream('second', answerAs('second'))
const busy = useUpstream('busy', (_, response) => {
  response.statusCode = 503
  response.end('{"error":{"message":"busy"}}')
})
const authorizer = useUpstream('authorizer', ({ headers }, response) => {
  response.statusCode = headers['x-pass'] === 'yes' ? 200 : 403
  response.end()
})

const backend = (name: string, upstream: { port: number }) => `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: Backend
metadata: { name: ${name} }
spec: { endpoints: [{ ip: { address: 127.0.0.1, port: ${upstream.port} } }] }
---`

const route = (name: string) => `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: ${name} }
spec:
  parentRefs: [{ name: edge }]
  rules:
  - matches: [{ path: { type: PathPrefix, value: /${name} } }]
    backendRefs: [{ group: gateway.envoyproxy.io, kind: Backend, name: shop }]
---`

const policy = (kind: string, target: string, spec: string) => `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: ${kind}
metadata: { name: ${target} }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: ${target} }]
${spec.trimEnd()}
---`

const provider = (name: string, key: string) => `
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: AIServiceBackend
metadata: { name: ${name} }
spec:
  schema: { name: OpenAI }
  backendRef: { group: gateway.envoyproxy.io, kind: Backend, name: ${name} }
---
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: BackendSecurityPolicy
metadata: { name: ${name}-key }
spec:
  targetRefs: [{ group: aigateway.envoyproxy.io, kind: AIServiceBackend, name: ${name} }]
  type: APIKey
  apiKey: { secretRef: { name: ${name}-secret } }
---
apiVersion: v1
kind: Secret
metadata: { name: ${name}-secret }
stringData: { apiKey: ${key} }
---`

const objects = () =>
  [
    `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: { name: eg }
spec: { controllerName: gateway.envoyproxy.io/gatewayclass-controller }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: edge }
spec:
  gatewayClassName: eg
  listeners: [{ name: http, port: ${port}, protocol: HTTP }]
---`,
    backend('shop', shop),
    backend('first', first),
    backend('second', second),
    backend('busy', busy),
    backend('authorizer', authorizer),
    ...['open', 'keys', 'asked', 'ranges', 'methods', 'limited', 'scripts'].map(route),
    policy(
      'SecurityPolicy',
      'keys',
      '  apiKeyAuth:\n    credentialRefs: [{ name: clients }]\n    extractFrom: [{ headers: [Authorization] }]',
    ),
    `
apiVersion: v1
kind: Secret
metadata: { name: clients }
stringData: { ann: key-of-ann }
---`,
    policy(
      'SecurityPolicy',
      'asked',
      '  extAuth:\n    headersToExtAuth: [x-pass]\n    http: { path: /check, backendRefs: [{ group: gateway.envoyproxy.io, kind: Backend, name: authorizer }] }',
    ),
    policy(
      'SecurityPolicy',
      'ranges',
      '  authorization:\n    defaultAction: Allow\n    rules: [{ action: Deny, principal: { clientCIDRs: [127.0.0.0/8] } }]',
    ),
    policy(
      'SecurityPolicy',
      'methods',
      '  authorization:\n    defaultAction: Deny\n    rules: [{ action: Allow, operation: { methods: [GET] }, principal: { headers: [{ name: X-Team, values: [a, b] }] } }]',
    ),
    policy(
      'SecurityPolicy',
      'scripts',
      '  cors: { allowOrigins: ["https://app.example.com"], allowMethods: [GET], maxAge: 1m }',
    ),
    policy(
      'BackendTrafficPolicy',
      'limited',
      '  timeout: { http: { requestTimeout: 5s } }\n  rateLimit:\n    type: Local\n    local: { rules: [{ limit: { requests: 2, unit: Hour } }] }',
    ),
    `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: ClientTrafficPolicy
metadata: { name: edge }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: edge }]
  timeout: { http: { idleTimeout: 30s } }
  clientIPDetection: { xForwardedFor: { numTrustedHops: 1 } }
  headers: { lateResponseHeaders: { set: [{ name: x-edge, value: "1" }] } }
---`,
    provider('first', 'key-of-first'),
    provider('second', 'key-of-second'),
    provider('busy', 'key-of-busy'),
    `
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: AIGatewayRoute
metadata: { name: chat }
spec:
  parentRefs: [{ name: edge }]
  rules:
  - matches: [{ headers: [{ name: x-ai-eg-model, value: smart }] }]
    backendRefs: [{ name: first, modelNameOverride: gpt-4o, weight: 1 }]
  - matches: [{ headers: [{ name: x-ai-eg-model, value: safe }] }]
    backendRefs: [{ name: busy, priority: 0 }, { name: second, priority: 1 }]
`,
  ].join('')

describe('sluice import of Envoy Gateway resources', () => {
  const { gateway, imported } = useImport(() => ({ content: objects() }))
  const get = (path: string, headers: Record<string, string> = {}) =>
    gateway.send(port, { path, headers })

  it('is detected, loses no protection, and is valid', () => {
    expect(imported().findings.filter(({ kind }) => kind === 'protection')).toEqual([])
    expect(imported()).toMatchObject({ code: 0, validation: { code: 0 } })
    expect(JSON.stringify(imported().findings) + imported().stderr).not.toContain('key-of')
  })

  it('keeps routes to Backends, and response headers for all clients', async () => {
    const answer = await get('/open/a')
    expect(JSON.parse(answer.body)).toMatchObject({ upstream: 'shop', path: '/open/a' })
    expect(answer.headers['x-edge']).toBe('1')
  })

  it('sets the headers about the client as ClientTrafficPolicy says', async () => {
    const sent = { 'x-forwarded-for': '1.1.1.1, 203.0.113.9', 'x-real-ip': '1.1.1.1' }
    const { headers } = JSON.parse((await get('/open/a', sent)).body) as {
      headers: Record<string, string>
    }
    expect(headers['x-forwarded-for']).toBe('1.1.1.1, 203.0.113.9, 127.0.0.1')
    expect(headers['x-forwarded-proto']).toBe('http')
    await waitFor('the log', () => gateway.stdout.includes('src.addr=203.0.113.9:0'))
  })

  it('asks for API keys and the external service', async () => {
    expect((await get('/keys')).status).toBe(401)
    expect((await get('/keys', { authorization: 'Bearer key-of-ann' })).status).toBe(200)
    expect((await get('/asked/a')).status).toBe(403)
    expect((await get('/asked/a', { 'x-pass': 'yes' })).status).toBe(200)
    expect(authorizer.received.at(-1)?.path).toBe('/check/asked/a')
  })

  it('applies authorization rules in their order, then the default', async () => {
    expect((await get('/ranges')).status).toBe(403)
    expect((await get('/methods')).status).toBe(403)
    expect((await get('/methods', { 'x-team': 'c' })).status).toBe(403)
    expect((await get('/methods', { 'x-team': 'b' })).status).toBe(200)
    const headers = { 'x-team': 'b' }
    const post = await gateway.send(port, { method: 'POST', path: '/methods', headers })
    expect(post.status).toBe(403)
  })

  it('limits requests, and answers cross-origin requests', async () => {
    const statuses = [await get('/limited'), await get('/limited'), await get('/limited')]
    expect(statuses.map(({ status }) => status)).toEqual([200, 200, 429])
    const { headers } = await get('/scripts', { origin: 'https://app.example.com' })
    expect(headers['access-control-allow-origin']).toBe('https://app.example.com')
  })

  it('sends chats to the backend of their model, with its key, and by priority', async () => {
    const chat = (model: string) =>
      gateway.send(port, {
        method: 'POST',
        path: '/v1/chat/completions',
        body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
      })
    expect((await chat('smart')).body).toContain('from first: hello')
    expect(first.received.at(-1)?.headers.authorization).toBe('Bearer key-of-first')
    expect(first.received.at(-1)?.body).toContain('gpt-4o')
    // The provider is left out after its first failure.
    await chat('safe')
    expect((await chat('safe')).body).toContain('from second: hello')
    expect((await chat('unknown')).status).toBe(404)
  })
})

describe('sign-in of SecurityPolicy', () => {
  it('becomes traffic.oidc with the same Secret, beside tokens of programs', async () => {
    const spec = {
      oidc: {
        provider: { issuer: 'https://idp.example.com/realms/shop' },
        clientID: 'shop',
        clientSecret: { name: 'shop-client' },
        redirectURL: '%REQ(x-forwarded-proto)%://%REQ(:authority)%/oauth2/callback',
        logoutPath: '/leave',
        scopes: ['email'],
        defaultRefreshTokenTTL: '604800s',
        csrfTokenTTL: '290s',
        forwardAccessToken: true,
        passThroughAuthHeader: true,
        cookieDomain: 'example.com',
      },
      jwt: {
        providers: [
          { name: 'a', issuer: 'https://a.example', localJWKS: { inline: '{"keys":[]}' } },
        ],
      },
    }
    const result = await runImport(
      policy(
        'SecurityPolicy',
        'a',
        `  oidc: ${JSON.stringify(spec.oidc)}
  jwt: ${JSON.stringify(spec.jwt)}`,
      ),
    )
    const all = parseAllDocuments(Object.values(result.manifests).join('---\n'))
    const found = all
      .map((document) => document.toJS())
      .find(({ kind }) => kind === 'GatewayPolicy')
    expect(found.spec).toMatchObject({
      traffic: {
        jwtAuthentication: { mode: 'Optional' },
        oidc: {
          issuer: 'https://idp.example.com/realms/shop',
          clientId: 'shop',
          clientSecretRef: { name: 'shop-client' },
          redirectURI: '/oauth2/callback',
          logoutPath: '/leave',
          scopes: ['email'],
          sessionDuration: '168h',
          signInTimeout: '290s',
          forwardAccessToken: true,
          passThroughAuthHeader: true,
        },
      },
    })
    expect(outline(result)).toEqual(['changed: spec.jwt', 'changed: spec.oidc.cookieDomain'])
  })
})

describe('the place of tokens', () => {
  const imported = async (...sources: readonly object[]) => {
    const providers = sources.map((extractFrom, at) => ({
      name: `p${at}`,
      issuer: `https://${at}.example`,
      localJWKS: { inline: '{"keys":[]}' },
      extractFrom,
    }))
    const result = await runImport(
      policy('SecurityPolicy', 'a', `  jwt: ${JSON.stringify({ providers })}`),
    )
    const [found] = parseAllDocuments(Object.values(result.manifests).join('---\n'))
    return { result, location: found?.toJS().spec.traffic.jwtAuthentication.location }
  }

  it('is converted if it is the same one for all providers', async () => {
    const inHeader = { headers: [{ name: 'x-token', valuePrefix: 'Token ' }] }
    expect((await imported(inHeader, inHeader)).location).toEqual({
      header: { name: 'x-token', prefix: 'Token ' },
    })
    expect((await imported({ cookies: ['token'] })).location).toEqual({ cookie: { name: 'token' } })
    const several = await imported({ cookies: ['token'], params: ['access_token'] })
    expect(several.location).toBeUndefined()
    expect(outline(several.result)).toEqual(['lost: spec.jwt.providers[0].extractFrom'])
  })
})

describe('what Envoy Gateway has and Sluice lacks', () => {
  it('is reported with its line; security settings and patches are protections', async () => {
    const result = await runImport(
      `${policy('SecurityPolicy', 'a', '  csrf: { additionalOrigins: [a] }')}
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyPatchPolicy
metadata: { name: b }
---${policy('BackendTrafficPolicy', 'c', '  loadBalancer: { type: Random }\n  rateLimit: { local: { rules: [{ clientSelectors: [{ headers: [{ name: x, value: y }] }], limit: { requests: 1, unit: Hour } }] } }')}
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyProxy
metadata: { name: d }
`,
    )
    expect(result.code).toBe(3)
    expect(outline(result)).toEqual([
      'lost: ',
      'lost: spec.loadBalancer',
      'protection: ',
      'protection: spec.csrf',
      'protection: spec.rateLimit.local.rules[0]',
    ])
    expect(result.findings.find(({ field }) => field === 'spec.csrf')).toMatchObject({
      line: 7,
      object: 'SecurityPolicy a',
    })
  })
})
