/** Every ExactlyOneOf, AtLeastOneOf and AtMostOneOf group of our kinds. */
import {
  backendPlace,
  backendRef,
  type CaseGroup,
  endpoints,
  guardServices,
  healthMembers,
  type Members,
  modelPlace,
  modelTarget,
  type Place,
  policyPlace,
  probes,
  type SchemaCase,
} from './case.ts'

const expressions = { matchExpressions: ['true'] }
const authorization = { policy: expressions }
const static_ = { host: 'a.example', port: 80 }
const provider = { vendorA: {} }
const secretRef = { name: 'a' }
const jwks = { jwksPath: '/keys', backendRef }
const regex = { builtins: ['Email'] }

const vendors: Members = {
  vendorA: {},
  vendorB: { endpoint: 'a.example', deploymentName: 'd' },
  vendorC: {},
  vendorD: {},
  vendorE: { projectId: 'p', region: 'global' },
  vendorF: {},
  custom: { formats: [{ type: 'Completions' }] },
  azure: { resourceName: 'a', resourceType: 'OpenAI' },
  ...Object.fromEntries(
    [
      ...['ollama', 'vllm', 'llamacpp', 'lmstudio', 'groq', 'mistral', 'deepseek', 'xai'],
      ...['openrouter', 'togetherai', 'fireworks', 'baseten', 'deepinfra', 'cerebras'],
      ...['cohere', 'huggingface'],
    ].map((name) => [name, {}]),
  ),
}
/** Servers without a host of their own need one. */
const host = 'a.example'

const simple: Members = {
  tcp: { connectTimeout: '5s' },
  tunnel: { url: 'http://proxy.example:3128' },
  tls: {},
  http: { version: 'HTTP2' },
  auth: { passthrough: {} },
}
const health: Members = { health: { eviction: {} } }
const ai: Members = { ai: { modelAliases: { fast: 'small' } } }
const mcp: Members = { mcp: { authorization } }

const refused = (at: Place, written: string, value: unknown, message: string): SchemaCase => ({
  written: `${at.path} ${written}`,
  kind: at.kind,
  spec: at.spec(value),
  refusedAt: at.path,
  message,
})

/** Each member alone. */
const alone = (at: Place, members: Members): readonly SchemaCase[] =>
  Object.entries(members).map(([name, value]) => ({
    written: `${at.path} with ${name} alone`,
    kind: at.kind,
    spec: at.spec({ [name]: value }),
  }))

function exactlyOne(type: string, members: Members, ...places: readonly Place[]): CaseGroup {
  const names = Object.keys(members)
  const message = `exactly one of ${names.join(', ')} must be set`
  const pairs = names.slice(1).map((name) => [names[0] ?? '', name] as const)
  return {
    id: `${type}.exactlyOneOf`,
    shows: ['rule.ExactlyOneOf'],
    cases: places.flatMap((at) => [
      refused(at, 'with none of them', {}, message),
      ...pairs.map(([one, two]) => {
        const both = { [one]: members[one], [two]: members[two] }
        return refused(at, `with ${one} and ${two}`, both, message)
      }),
      ...alone(at, members),
    ]),
  }
}

function atLeastOne(type: string, members: Members, ...places: readonly Place[]): CaseGroup {
  const message = `at least one of ${Object.keys(members).join(', ')} must be set`
  return {
    id: `${type}.atLeastOneOf`,
    shows: ['rule.AtLeastOneOf'],
    cases: places.flatMap((at) => [
      refused(at, 'with none of them', {}, message),
      ...alone(at, members),
      { written: `${at.path} with all of them`, kind: at.kind, spec: at.spec(members) },
    ]),
  }
}

const aiPath = 'spec.ai'
const provider0 = 'spec.ai.groups[0].providers[0]'
const target0 = 'spec.mcp.targets[0]'
const guards = 'spec.backend.ai.promptGuard'

const exactlyOneOf: readonly CaseGroup[] = [
  exactlyOne('ActiveHealthCheck', probes, policyPlace('spec.backend.health.active')),
  exactlyOne(
    'BackendSpec',
    {
      ai: { provider },
      static: static_,
      dynamicForwardProxy: {},
      mcp: { targets: [{ name: 'a', static: static_ }] },
      a2a: static_,
    },
    backendPlace('spec'),
  ),
  exactlyOne(
    'AIBackend',
    { provider, groups: [{ providers: [{ name: 'a', ...provider }] }] },
    backendPlace(aiPath),
  ),
  exactlyOne(
    'LLMProvider',
    vendors,
    backendPlace('spec.ai.provider', { 'spec.ai.provider': { host } }),
  ),
  exactlyOne(
    'NamedLLMProvider',
    vendors,
    backendPlace(provider0, { [provider0]: { name: 'a', host } }),
  ),
  exactlyOne(
    'ModelSpec',
    { provider: 'OpenAI', virtualModel: { weighted: { targets: [modelTarget] } } },
    modelPlace('spec'),
  ),
  exactlyOne(
    'VirtualModel',
    {
      weighted: { targets: [modelTarget] },
      failover: { targets: [modelTarget] },
      conditional: { targets: [modelTarget] },
    },
    modelPlace('spec.virtualModel'),
  ),
  exactlyOne(
    'PromptguardRequest',
    { regex, webhook: { backendRef }, vendorAModeration: {}, ...guardServices },
    policyPlace(`${guards}.request[0]`),
  ),
  exactlyOne(
    'PromptguardResponse',
    { regex, webhook: { backendRef }, ...guardServices },
    policyPlace(`${guards}.response[0]`),
  ),
  exactlyOne(
    'McpTargetSelector',
    { selector: { services: {} }, static: static_, stdio: { command: ['a'] } },
    backendPlace(target0, { [target0]: { name: 'a' } }),
  ),
  exactlyOne(
    'StdioVariable',
    { value: 'a', secretRef: { name: 'a', key: 'a' } },
    backendPlace(`${target0}.stdio.env[0]`, {
      [target0]: { name: 'a' },
      [`${target0}.stdio`]: { command: ['a'] },
      [`${target0}.stdio.env[0]`]: { name: 'A' },
    }),
  ),
  exactlyOne(
    'PolicySpec',
    {
      targetRefs: [{ group: '', kind: 'Service', name: 'a' }],
      targetSelectors: [{ group: '', kind: 'Service', matchLabels: { a: 'b' } }],
    },
    { kind: 'GatewayPolicy', path: 'spec', spec: (value) => value },
  ),
  exactlyOne(
    'ExtAuth',
    { grpc: {}, http: {} },
    policyPlace('spec.traffic.extAuth', { 'spec.traffic.extAuth': { backendRef } }),
  ),
  exactlyOne(
    'LocalRateLimit',
    { requests: 1, tokens: 1 },
    policyPlace('spec.traffic.rateLimit.local[0]', {
      'spec.traffic.rateLimit.local[0]': { unit: 'Seconds' },
    }),
  ),
  exactlyOne(
    'AuthorizationLocation',
    {
      header: { name: 'x-key' },
      queryParameter: { name: 'api_key' },
      cookie: { name: 'token' },
    },
    policyPlace('spec.backend.auth.location', { 'spec.backend.auth': { secretRef } }),
  ),
  exactlyOne(
    'JWKS',
    { remote: jwks, inline: '{"keys":[]}' },
    policyPlace('spec.traffic.jwtAuthentication.providers[0].jwks', {
      'spec.traffic.jwtAuthentication.providers[0]': { issuer: 'https://issuer.example' },
    }),
  ),
  exactlyOne(
    'JWTProvider',
    {
      jwks: { inline: '{"keys":[]}' },
      introspection: { path: '/introspect', backendRef, clientAuth: { clientId: 'a', secretRef } },
    },
    policyPlace('spec.traffic.jwtAuthentication.providers[0]', {
      'spec.traffic.jwtAuthentication.providers[0]': { issuer: 'https://issuer.example' },
    }),
  ),
  exactlyOne(
    'AuthorizationExtractionLocation',
    {
      header: { name: 'x-token' },
      queryParameter: { name: 'access_token' },
      cookie: { name: 'token' },
      expression: 'request.headers["x-token"]',
    },
    policyPlace('spec.traffic.jwtAuthentication.location', {
      'spec.traffic.jwtAuthentication': {
        providers: [{ issuer: 'i', jwks: { inline: '{"keys":[]}' } }],
      },
    }),
  ),
  exactlyOne(
    'BasicAuthentication',
    { users: ['a:$apr1$x$y'], secretRef },
    policyPlace('spec.traffic.basicAuthentication'),
  ),
  exactlyOne(
    'APIKeyAuthentication',
    {
      secretRef,
      secretSelector: { matchLabels: { a: 'b' } },
      configMapSelector: { matchLabels: { a: 'b' } },
    },
    policyPlace('spec.traffic.apiKeyAuthentication'),
  ),
]

const header = { name: 'x-a', value: "'b'" }

const atLeastOneOf: readonly CaseGroup[] = [
  atLeastOne('BackendHealth', healthMembers, policyPlace('spec.backend.health')),
  atLeastOne(
    'BackendFull',
    { ...simple, ...endpoints, ...mcp, a2a: { authorization }, ...ai },
    policyPlace('spec.backend'),
    backendPlace('spec.policies', { spec: { static: static_ } }),
  ),
  atLeastOne(
    'BackendWithAI',
    { ...simple, ...health, ...ai },
    backendPlace(`${provider0}.policies`, { [provider0]: { name: 'a', vendorA: {} } }),
  ),
  atLeastOne(
    'BackendWithMCP',
    { ...simple, ...mcp },
    backendPlace(`${target0}.static.policies`, {
      [target0]: { name: 'a' },
      [`${target0}.static`]: static_,
    }),
  ),
  atLeastOne(
    'BackendAI',
    {
      prompt: { prepend: [{ role: 'SYSTEM', content: 'a' }] },
      promptGuard: { request: [{ regex }] },
      defaults: [{ field: 'a', value: 1 }],
      overrides: [{ field: 'a', value: { b: [null] } }],
      modelAliases: { fast: 'small' },
      ...{ promptCaching: {}, cache: {} },
      routes: { '*': 'Passthrough' },
    },
    policyPlace('spec.backend.ai'),
  ),
  atLeastOne('AIPromptGuard', { request: [{ regex }], response: [{ regex }] }, policyPlace(guards)),
  atLeastOne(
    'CustomResponse',
    { message: 'no', statusCode: 400, showGuard: true },
    policyPlace(`${guards}.request[0].response`, { [`${guards}.request[0]`]: { regex } }),
  ),
  atLeastOne(
    'McpSelector',
    { namespaces: { matchLabels: { a: 'b' } }, services: {} },
    backendPlace(`${target0}.selector`, { [target0]: { name: 'a' } }),
  ),
  atLeastOne(
    'BackendMCP',
    {
      authorization,
      authentication: { jwks },
      promptGuard: { request: [{ regex }] },
      guardrails: { processors: [{ remote: { backendRef }, methods: { '*/list': 'Full' } }] },
      toolGuard: {},
      rateLimit: { local: [{ requests: 1, unit: 'Minutes' }] },
      calls: { timeout: '1s' },
      approval: { annotated: 'Destructive' },
    },
    policyPlace('spec.backend.mcp'),
  ),
  atLeastOne(
    'BackendA2A',
    { authorization, cardSignature: { jwks } },
    policyPlace('spec.backend.a2a'),
  ),
  atLeastOne('FrontendTCP', { keepalive: {} }, policyPlace('spec.frontend.tcp')),
  atLeastOne(
    'FrontendTLS',
    {
      handshakeTimeout: '10s',
      alpnProtocols: ['h2'],
      minProtocolVersion: '1.2',
      maxProtocolVersion: '1.3',
      cipherSuites: ['TLS13_AES_128_GCM_SHA256'],
    },
    policyPlace('spec.frontend.tls'),
  ),
  atLeastOne(
    'FrontendHTTP',
    {
      maxBufferSize: 1,
      http1MaxHeaders: 1,
      http1IdleTimeout: '1m',
      maxConnectionDuration: '1h',
      http2WindowSize: 65_535,
      http2ConnectionWindowSize: 65_535,
      http2FrameSize: 16_384,
      http2MaxHeaderSize: 16_384,
      http2KeepaliveInterval: '1m',
      http2KeepaliveTimeout: '10s',
    },
    policyPlace('spec.frontend.http'),
  ),
  atLeastOne(
    'LogTracingAttributes',
    { remove: ['http.method'], add: [{ name: 'a', expression: 'request.path' }] },
    policyPlace('spec.frontend.accessLog.attributes'),
    policyPlace('spec.frontend.tracing.attributes', { 'spec.frontend.tracing': { backendRef } }),
  ),
  atLeastOne(
    'Transformation',
    { request: { body: "'a'" }, response: { body: "'a'" } },
    policyPlace('spec.traffic.transformation'),
  ),
  atLeastOne(
    'Transform',
    { set: [header], add: [header], remove: ['x-a'], body: "'a'" },
    policyPlace('spec.traffic.transformation.request'),
    policyPlace('spec.traffic.transformation.response'),
  ),
  atLeastOne(
    'RateLimits',
    {
      local: [{ requests: 1, unit: 'Hours' }],
      global: {
        backendRef,
        domain: 'd',
        descriptors: [{ entries: [{ name: 'a', expression: 'source.address' }] }],
      },
    },
    policyPlace('spec.traffic.rateLimit'),
  ),
  atLeastOne(
    'HeaderModifiers',
    { request: { set: [{ name: 'x-a', value: 'b' }] }, response: { remove: ['x-a'] } },
    policyPlace('spec.traffic.headerModifiers'),
  ),
]

const tls = policyPlace('spec.backend.tls')
const atMost = { verifySubjectAltNames: ['a.example'], insecureSkipVerify: 'Hostname' }

const atMostOneOf: CaseGroup = {
  id: 'rule.AtMostOneOf',
  cases: [
    refused(
      tls,
      'with both of them',
      atMost,
      'at most one of verifySubjectAltNames, insecureSkipVerify may be set',
    ),
    { written: 'spec.backend.tls with none of them', kind: tls.kind, spec: tls.spec({}) },
    ...alone(tls, atMost),
  ],
}

export const groupCases: readonly CaseGroup[] = [...exactlyOneOf, ...atLeastOneOf, atMostOneOf]
