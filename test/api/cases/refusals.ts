/** Cases other than bounds and groups, and specs that are accepted although they have no effect. */
import { routeTypes } from '../../../src/engines/messages/formats/index.ts'
import {
  accepted,
  backendPlace,
  type CaseGroup,
  type Place,
  place,
  policyPlace,
  refused,
} from './case.ts'

const groups = backendPlace('spec.ai.groups')
const provider = (name: string) => ({ name, vendorA: {} })
const group = (...names: readonly string[]) => ({ providers: names.map(provider) })

const providerNames: CaseGroup = {
  id: 'AIBackend.groups.uniqueNames',
  cases: [
    accepted(groups, 'with different names', [group('a', 'b'), group('c')]),
    refused(groups, 'with a name twice in one group', [group('a', 'b', 'a')], '[0].providers[2]'),
    refused(
      groups,
      'with a name in two groups',
      [group('a', 'b'), group('c', 'a')],
      '',
      'provider names must be unique across groups',
    ),
  ],
}

const targets = backendPlace('spec.mcp.targets')
const target = (name: string) => ({ name, static: { host: 'a.example', port: 80 } })

const targetNames: CaseGroup = {
  id: 'unique names of MCP targets',
  cases: [
    accepted(targets, 'with different names', [target('a'), target('b')]),
    refused(targets, 'with a name twice', [target('a'), target('b'), target('a')], '[2]'),
  ],
}

const guard = 'spec.backend.ai.promptGuard.request[0]'
const jwks = { jwksPath: '/keys' }
const descriptors = [{ entries: [{ name: 'a', expression: 'true' }] }]
const jwtProvider = 'spec.traffic.jwtAuthentication.providers[0]'

/** Every reference to a Service or backend, with the required fields next to it. */
const references: readonly Place[] = [
  policyPlace('spec.traffic.extAuth.backendRef', { 'spec.traffic.extAuth': { http: {} } }),
  policyPlace('spec.traffic.extProc.backendRef'),
  policyPlace('spec.traffic.rateLimit.global.backendRef', {
    'spec.traffic.rateLimit.global': { domain: 'd', descriptors },
  }),
  policyPlace('spec.frontend.tracing.backendRef'),
  policyPlace(`${guard}.webhook.backendRef`),
  policyPlace(`${jwtProvider}.jwks.remote.backendRef`, {
    [jwtProvider]: { issuer: 'i' },
    [`${jwtProvider}.jwks.remote`]: jwks,
  }),
  policyPlace(`${jwtProvider}.introspection.backendRef`, {
    [jwtProvider]: { issuer: 'i' },
    [`${jwtProvider}.introspection`]: {
      path: '/introspect',
      clientAuth: { clientId: 'a', secretRef: { name: 'a' } },
    },
  }),
  policyPlace('spec.backend.mcp.authentication.jwks.backendRef', {
    'spec.backend.mcp.authentication.jwks': jwks,
  }),
]

const servicePorts: CaseGroup = {
  id: 'port of a reference to a Service',
  cases: references.flatMap((at) => [
    accepted(at, 'to a port of a Service', { name: 'a', port: 80 }),
    accepted(at, 'to a GatewayBackend', { group: 'sluice.dev', kind: 'GatewayBackend', name: 'a' }),
    ...[{ name: 'a' }, { group: '', kind: 'Service', name: 'a' }].map((ref) =>
      refused(
        at,
        `${JSON.stringify(ref)} without port`,
        ref,
        'port',
        'must have port for Service reference',
      ),
    ),
  ]),
}

const shutdown = place('GatewayParameters', 'spec.shutdown')
const cpu = place('GatewayParameters', 'spec.resources.limits.cpu')

const amounts: CaseGroup = {
  id: 'resource quantities',
  cases: [
    ...[2, 0, '500m', '1.5', '.5', '1e3', '+1Gi'].map((value) =>
      accepted(cpu, `of ${value}`, value),
    ),
    ...['1e1.5', '1e999', '1GB', '', '9'.repeat(40)].map((value) =>
      refused(cpu, `of ${JSON.stringify(value)}`, value, ''),
    ),
    refused(cpu, 'of -500m', '-500m', ''),
  ],
}

const tls = policyPlace('spec.frontend.tls')
const modelProvider = backendPlace('spec.ai.provider')
const toServer = {
  custom: { backendRef: { name: 'a', port: 80 }, formats: [{ type: 'Completions' }] },
}
const both = 'custom.backendRef excludes host and port'
const modelServers = [
  accepted(modelProvider, 'without a host for custom with a backendRef', toServer),
  refused(
    modelProvider,
    'with a backendRef and a host',
    { ...toServer, host: 'a.a' },
    'host',
    both,
  ),
]
const azure = backendPlace('spec.ai.provider.azure')
const vendorB = backendPlace('spec.ai.provider.vendorB')
const region = backendPlace('spec.ai.provider.vendorF.region')

const pairs: CaseGroup = {
  id: 'fields that depend on each other',
  cases: [
    accepted(shutdown, 'with equal bounds', { min: 5, max: 5 }),
    refused(
      shutdown,
      'with min above max',
      { min: 6, max: 5 },
      'min',
      'min must not be greater than max',
    ),
    accepted(tls, 'with one version as minimum and maximum', {
      minProtocolVersion: '1.3',
      maxProtocolVersion: '1.3',
    }),
    refused(
      tls,
      'with the minimum above the maximum',
      { minProtocolVersion: '1.3', maxProtocolVersion: '1.2' },
      'minProtocolVersion',
      'minProtocolVersion must not be higher than maxProtocolVersion',
    ),
    accepted(modelProvider, 'of another path of a host', {
      vendorA: {},
      host: 'a.example',
      pathPrefix: '/openai/v1',
    }),
    ...[
      { vendorA: {}, pathPrefix: '/v2' },
      { vendorA: {}, pathPrefix: '/v2', host: 'a.example', path: '/v2/chat' },
      { vendorD: {}, pathPrefix: '/v2', host: 'a.example' },
    ].map((value) =>
      refused(
        modelProvider,
        `with a prefix beside ${Object.keys(value)}`,
        value,
        'pathPrefix',
        'pathPrefix requires host and vendorA or vendorC, and excludes path',
      ),
    ),
    ...['/a b', '/a?b=c', '/a#b', 'a', '/%zz', '/é'].map((pathPrefix) =>
      refused(
        modelProvider,
        `with the prefix ${pathPrefix}`,
        { vendorA: {}, host: 'a.example', pathPrefix },
        'pathPrefix',
      ),
    ),
    ...['/a b', '/a?b=c', 'a'].map((path) =>
      refused(
        modelProvider,
        `with the path ${path} of a format`,
        { custom: { formats: [{ type: 'Completions', path }] }, host: 'a.example' },
        'custom.formats[0].path',
      ),
    ),
    refused(
      modelProvider,
      'with a space in the path',
      { vendorA: {}, host: 'a.example', path: '/a b' },
      'path',
      'must have only characters of a path; escape others, such as %20 for a space',
    ),
    accepted(modelProvider, 'with a query in the path', {
      vendorA: {},
      host: 'a.example',
      path: '/a%20b?api-version=1',
    }),
    ...[{ ollama: {} }, { custom: { formats: [{ type: 'Completions' }] } }].map((value) =>
      refused(
        modelProvider,
        `without a host for ${Object.keys(value)}`,
        value,
        'host',
        'host is required for custom, ollama, vllm, llamacpp, lmstudio, unless custom has a backendRef',
      ),
    ),
    ...modelServers,
    refused(
      azure,
      'of Foundry without a project',
      { resourceName: 'a', resourceType: 'Foundry' },
      'projectName',
      'projectName is required for Foundry',
    ),
    accepted(vendorB, 'without apiVersion', { endpoint: 'a.example' }),
    accepted(vendorB, 'with v1', { endpoint: 'a.example', apiVersion: 'v1' }),
    accepted(vendorB, 'with another version and a deployment', {
      endpoint: 'a.example',
      apiVersion: '2025-01-01',
      deploymentName: 'd',
    }),
    refused(
      vendorB,
      'with another version and no deployment',
      { endpoint: 'a.example', apiVersion: '2025-01-01' },
      'deploymentName',
      "deploymentName is required unless apiVersion is 'v1'",
    ),
  ],
}

const header = policyPlace('spec.traffic.transformation.request.remove')
const origins = policyPlace('spec.traffic.csrf.additionalOrigins')
const cors = policyPlace('spec.traffic.cors')
const star = (what: string) => `${what} cannot contain '*' alongside other values`

const forms: CaseGroup = {
  id: 'formats of strings',
  cases: [
    accepted(header, 'of every pseudo-header', [
      ':authority',
      ':method',
      ':path',
      ':scheme',
      ':status',
    ]),
    refused(header, 'of another pseudo-header', [':protocol'], '[0]'),
    accepted(region, 'with letters, digits and dashes', 'eu-central-1'),
    ...['EU-1', 'eu_1', 'eu.1'].map((value) => refused(region, `of ${value}`, value, '')),
    accepted(origins, 'with and without port', ['https://a.example', 'http://[::1]:8080']),
    ...['a.example', 'https://a.example/', 'https://', 'https://a:123456', 'https://u@a'].map(
      (value) => refused(origins, `of ${value}`, [value], '[0]'),
    ),
    accepted(cors, 'with single stars', {
      allowOrigins: ['*'],
      allowMethods: ['*'],
      allowHeaders: ['*'],
    }),
    accepted(cors, 'with wildcard hosts', { allowOrigins: ['https://*.a.example', 'http://a:80'] }),
    refused(
      cors,
      'with a star and an origin',
      { allowOrigins: ['*', 'https://a.example'] },
      'allowOrigins',
      star('allowOrigins'),
    ),
    refused(
      cors,
      'with a star and a method',
      { allowMethods: ['GET', '*'] },
      'allowMethods',
      star('allowMethods'),
    ),
    refused(
      cors,
      'with a star and a header',
      { allowHeaders: ['x-a', '*'] },
      'allowHeaders',
      star('allowHeaders'),
    ),
    refused(
      cors,
      'with an origin twice',
      { allowOrigins: ['http://a', 'http://a'] },
      'allowOrigins[1]',
    ),
    refused(cors, 'with a path in an origin', { allowOrigins: ['http://a/b'] }, 'allowOrigins[0]'),
  ],
}

const never = 'must be longer than 0s'
const frontendTls = policyPlace('spec.frontend.tls.handshakeTimeout')
const connect = policyPlace('spec.backend.tcp.connectTimeout')
const keepalive = policyPlace('spec.frontend.tcp.keepalive')
const request = policyPlace('spec.traffic.timeouts.request')

const zeroDurations: CaseGroup = {
  id: 'durations of zero',
  cases: [
    accepted(request, 'of zero, which means unlimited', '0s'),
    refused(frontendTls, 'of zero', '0s', '', never),
    refused(connect, 'of zero', '0h0m', '', never),
    refused(keepalive, 'with a time of zero', { time: '0s' }, 'time', never),
    accepted(frontendTls, 'of 1ms', '1ms'),
    accepted(connect, 'of 1ms', '1ms'),
    accepted(keepalive, 'with times of 1ms', { time: '1ms', interval: '1ms' }),
  ],
}

const aiRoutes = policyPlace('spec.backend.ai.routes')
const basic = policyPlace('spec.traffic.basicAuthentication', {
  'spec.traffic.basicAuthentication': { secretRef: { name: 'a' } },
})
const apiKey = policyPlace('spec.traffic.apiKeyAuthentication', {
  'spec.traffic.apiKeyAuthentication': { secretRef: { name: 'a' } },
})
const action = policyPlace('spec.traffic.authorization', {
  'spec.traffic.authorization': { policy: { matchExpressions: [] } },
})

const choices: CaseGroup = {
  id: 'enumerations',
  cases: [
    accepted(
      aiRoutes,
      'with every route type',
      Object.fromEntries(routeTypes.map((type) => [`/${type}`, type])),
    ),
    refused(aiRoutes, 'with an unknown route type', { models: 'Chat' }, 'models'),
    ...[basic, apiKey].flatMap((at) => [
      accepted(at, 'with mode Optional', { mode: 'Optional' }),
      refused(at, 'with mode Permissive', { mode: 'Permissive' }, 'mode'),
    ]),
    ...['Allow', 'Deny', 'Require'].map((value) =>
      accepted(action, `with action ${value}`, { action: value }),
    ),
    refused(action, 'with action Audit', { action: 'Audit' }, 'action'),
  ],
}

const attributes = policyPlace('spec.frontend.accessLog.attributes')
const backendTls = policyPlace('spec.backend.tls')
const policy = place('GatewayPolicy', 'spec')
const service = { group: '', kind: 'Service', name: 'a' }
const backendSpec = place('GatewayBackend', 'spec')
const overlay = place('GatewayParameters', 'spec.deployment')
const remoteJwks = policyPlace(`${jwtProvider}.jwks.remote`, { [jwtProvider]: { issuer: 'i' } })

const leniency: CaseGroup = {
  id: 'settings without effect',
  cases: [
    accepted(policy, 'without any setting', { targetRefs: [service] }),
    accepted(policy, 'with targets of several kinds', {
      targetRefs: [service, { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'a' }],
    }),
    accepted(attributes, 'with a name twice', {
      add: [
        { name: 'a', expression: '1' },
        { name: 'a', expression: '2' },
      ],
    }),
    accepted(backendTls, 'with authorities that insecureSkipVerify ignores', {
      insecureSkipVerify: 'All',
      caCertificateRefs: [{ name: 'a' }],
    }),
    accepted(policy, 'with JWT and MCP authentication', {
      targetRefs: [service],
      traffic: {
        jwtAuthentication: { providers: [{ issuer: 'i', jwks: { inline: '{}' } }] },
      },
      backend: {
        mcp: { authentication: { jwks: { ...jwks, backendRef: { name: 'a', port: 80 } } } },
      },
    }),
    accepted(remoteJwks, 'that is cached for a second', {
      ...jwks,
      cacheDuration: '1s',
      backendRef: { name: 'a', port: 80 },
    }),
    accepted(backendSpec, 'with AI settings on a static backend', {
      static: { host: 'a.example', port: 80 },
      policies: { ai: { promptCaching: {} } },
    }),
    accepted(overlay, 'with a null in spec', {
      spec: { replicas: null, template: { $patch: 'delete' } },
    }),
  ],
}

export const refusalCases: readonly CaseGroup[] = [
  providerNames,
  targetNames,
  servicePorts,
  pairs,
  amounts,
  forms,
  zeroDurations,
  choices,
  leniency,
]
