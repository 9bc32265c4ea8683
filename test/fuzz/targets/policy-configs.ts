import assert from 'node:assert/strict'
import { targetKey } from '../../../src/gateway/policies/merge.ts'
import { policyRegistry } from '../../../src/gateway/policies/registry.ts'
import { loadPolicyAppliers, PolicyIndex } from '../../../src/gateway/proxy/config/policies.ts'
import { hostile } from '../support/hostile.ts'
import { defineTarget } from '../support/target.ts'

/** Compiled forms as a controller sends them, by policy. */
const target = { type: 'service', namespace: 'default', name: 'a', port: 80 }
const expression = { name: 'x', expression: 'request.path' }
const changes = { set: [{ name: 'a', value: 'b' }], add: [], remove: ['c'] }
const configs: Readonly<Record<string, readonly object[]>> = {
  accessLog: [{ filter: 'true', attributes: { remove: ['a'], add: [expression] } }],
  ai: [
    {
      requestGuards: [
        {
          type: 'regex',
          refusal: { status: 403, message: 'no' },
          matches: ['a+'],
          builtins: ['Ssn'],
          action: 'Mask',
        },
      ],
      responseGuards: [],
      overrides: [{ field: 'a', value: 1 }],
      modelAliases: { a: 'b' },
      routes: { '*': 'Completions' },
    },
  ],
  apiKeyAuthentication: [{ mode: 'Strict', entries: [] }],
  forwarded: [{ headers: 'Replace', trustedProxies: ['10.0.0.0/8'] }],
  networkAuthorization: [{ action: 'Deny', expressions: ['source.port == 1'] }],
  proxyProtocol: [{ versions: [1, 2], isOptional: false, from: ['10.0.0.1'] }],
  auth: [{ type: 'passthrough' }],
  authorization: [{ action: 'Deny', expressions: ['request.path == "/"'] }],
  basicAuthentication: [{ mode: 'Strict', realm: 'a', files: [] }],
  cors: [
    {
      origins: ['*'],
      credentials: false,
      methods: ['*'],
      requestHeaders: [],
      responseHeaders: [],
      maxAge: 5,
    },
  ],
  csrf: [{ additionalOrigins: ['https://a:443'] }],
  buffer: [{ request: { maxBytes: 64 }, response: {} }, { response: { failureMode: 'FailOpen' } }],
  delay: [{ duration: '1ms' }, { duration: 'request.path' }],
  directResponse: [{ status: 200, body: 'a' }],
  extAuth: [{ target, grpc: { contextExtensions: { a: 'b' } } }],
  extProc: [{ target }],
  headerModifiers: [{ request: changes, response: changes }],
  hostRewrite: [{ mode: 'Auto' }],
  http: [{ version: 'HTTP2' }, { maxHeaders: 5, http2: { maxFrameBytes: 16_384 } }],
  identity: [{ dimensions: [expression] }],
  jsonGuard: [
    {
      request: [
        {
          paths: ['$..a', 'b[*].c'],
          guard: {
            type: 'regex',
            refusal: { status: 403, message: 'no' },
            matches: ['a+'],
            builtins: ['Ssn'],
            action: 'Reject',
          },
        },
      ],
      response: [],
      passesOther: false,
    },
  ],
  jwtAuthentication: [
    {
      mode: 'Strict',
      providers: [
        { issuer: 'a', audiences: ['b'], requiredClaims: ['sub'], keys: [] },
        {
          issuer: 'b',
          keys: [],
          introspection: {
            target,
            path: '/introspect',
            clientId: 'a',
            clientSecret: 'digest',
            method: 'ClientSecretBasic',
            cacheMs: 1_000,
          },
        },
      ],
      location: { header: { name: 'x-token', prefix: 'Bearer ' } },
      dpop: { required: true, nonces: true },
    },
  ],
  mcp: [{ authorization: { action: 'Allow', expressions: ['true'] } }],
  oidc: [
    {
      issuer: 'https://idp.example',
      clientId: 'a',
      clientSecret: 'digest',
      tokenEndpointAuth: 'ClientSecretBasic',
      scopes: ['openid'],
      resources: [],
      authorizationParameters: { audience: 'a' },
      acrValues: [],
      redirectURI: '/oauth2/callback',
      logoutPath: '/logout',
      signInMs: 600_000,
      sessionMs: 3_600_000,
      defaultTokenMs: 3_600_000,
      keys: [],
      refreshToken: true,
      passThroughAuthHeader: false,
      forwardAccessToken: true,
    },
  ],
  rateLimit: [{ local: [{ rate: 1, unit: 'Seconds', burst: 0, counts: 'requests' }] }],
  retry: [{ codes: [503], attempts: 1, backoffMs: 0 }],
  tcp: [{ keepalive: { retries: 9, timeMs: 1, intervalMs: 1 } }],
  connect: [{ mode: 'Route', ports: [443], idleTimeoutMs: 0, maxDurationMs: 1, maxTunnels: 2 }],
  tunnel: [{ scheme: 'socks5', host: 'proxy', port: 1080, username: 'digest', password: 'digest' }],
  timeouts: [{ requestMs: 5 }],
  tls: [{ verify: 'none' }, { minVersion: '1.2', maxVersion: '1.3' }],
  metrics: [{ labels: [expression] }],
  tracing: [{ target, protocol: 'GRPC', resources: [expression] }],
  transformation: [{ request: { add: [expression], set: [], remove: [], body: '"a"' } }],
}

const services = {
  callouts: {} as never,
  bucket: () => ({}) as never,
}
const secrets = { value: () => new Uint8Array(4) }
const place = { kind: 'Gateway', namespace: 'default', name: 'edge' }
const levels = [[targetKey(place)]]

export default defineTarget({
  about: 'a compiled policy of any content is bound, or closes its target',
  generate(random) {
    const { section, field, configVersion } = random.pick(policyRegistry)
    const [config] = hostile([random.pick(configs[field] ?? [{}])], random)
    return JSON.stringify({ section, field, configVersion, config })
  },
  async start() {
    const appliers = await loadPolicyAppliers()
    return {
      check(input) {
        let given: { section: 'traffic'; field: string; configVersion: number; config: unknown }
        try {
          given = JSON.parse(input.toString())
        } catch {
          return
        }
        const { section, field, configVersion, config } = given
        if (!policyRegistry.some((one) => one.section === section && one.field === field)) return
        const index = new PolicyIndex(appliers, services, secrets)
        const refusal = index.set({
          type: 'policy',
          key: 'a',
          created: 0,
          order: 0,
          policy: { namespace: 'default', name: 'a' },
          section,
          field,
          phase: 'PostRouting',
          target: place,
          configVersion,
          config: JSON.stringify(config) ?? '',
        })
        const { closed } = index.merge(section, 'PostRouting', levels)
        if (refusal === undefined) assert.equal(closed, undefined)
        else assert.equal(refusal.code, 'policy_unenforceable')
        assert.doesNotMatch(refusal?.message ?? '', /TypeError/)
        index.remove('a')
      },
    }
  },
})
