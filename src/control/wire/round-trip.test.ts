import { describe, expect, it } from 'vitest'
import {
  list,
  mcpDestination,
  mcpPins,
  port,
  record,
  secretRef,
  text,
} from '../../../test/support/arbitrary-mcp.ts'
import fc from '../../../test/support/fast-check.ts'
import type {
  BackendTarget,
  DesiredDelta,
  Resource,
  RouteFilter,
} from '../../ground/model/resources.ts'
import { decodeDelta } from './decode.ts'
import { encodeDelta } from './encode.ts'

const count = fc.integer({ min: 0, max: 1_000_000 })

const name = record({ namespace: text, name: text })
const ref = record({ kind: text, namespace: text, name: text })
const age = {
  created: fc.integer({ min: -(2 ** 52), max: 2 ** 52 }),
  order: fc.nat(Number.MAX_SAFE_INTEGER),
}
const named = record({
  name: text,
  type: fc.constantFrom('Exact', 'RegularExpression'),
  value: text,
})
const header = record({ name: text, value: text })
const changes = record({ set: list(header), add: list(header), remove: list(text) })
const modifier = record({
  type: fc.constantFrom('ReplaceFullPath', 'ReplacePrefixMatch'),
  value: text,
})
const target = fc.oneof(
  record({ type: fc.constant('service' as const), namespace: text, name: text, port }),
  record({ type: fc.constant('backend' as const), namespace: text, name: text }),
  record({ type: fc.constant('pool' as const), namespace: text, name: text }),
  record({ type: fc.constant('invalid' as const), reason: text, message: text }),
) as fc.Arbitrary<BackendTarget>
const filter = fc.oneof(
  record({ type: fc.constant('requestHeaders' as const), changes }),
  record({ type: fc.constant('responseHeaders' as const), changes }),
  record(
    {
      type: fc.constant('redirect' as const),
      scheme: text,
      hostname: text,
      path: modifier,
      port,
      statusCode: fc.integer({ min: 100, max: 599 }),
    },
    'scheme',
    'hostname',
    'path',
    'port',
  ),
  record(
    { type: fc.constant('rewrite' as const), hostname: text, path: modifier },
    'hostname',
    'path',
  ),
  record({ type: fc.constant('mirror' as const), target, numerator: count, denominator: count }),
) as fc.Arbitrary<RouteFilter>

const provider = fc.record(
  {
    name: text,
    host: text,
    port,
    path: text,
    config: fc.record(
      {
        vendor: fc.constantFrom(
          'vendorA',
          'vendorB',
          'vendorC',
          'vendorD',
          'vendorE',
          'vendorF',
          'custom',
        ),
        model: text,
        endpoint: text,
        deploymentName: text,
        apiVersion: text,
        projectId: text,
        region: text,
        guardrail: record({ identifier: text, version: text }),
        // An empty list is not sent, and a server has at least one format.
        formats: fc.array(record({ type: text, path: text }, 'path'), {
          minLength: 1,
          maxLength: 3,
        }),
        systemName: text,
        pathPrefix: text,
      },
      { requiredKeys: ['vendor'], noNullPrototype: true },
    ),
  },
  { requiredKeys: ['config'], noNullPrototype: true },
)

const resources = {
  listener: record(
    {
      type: fc.constant('listener' as const),
      key: text,
      gateway: name,
      owner: ref,
      section: text,
      port,
      protocol: fc.constantFrom('HTTP', 'HTTPS', 'TLS', 'TCP', 'UDP'),
      hostname: text,
      tls: record(
        {
          certificates: list(record({ certificate: secretRef, privateKey: secretRef })),
          clients: record({
            required: fc.boolean(),
            authorities: list(fc.oneof(record({ pem: text }), record({ secret: secretRef }))),
          }),
        },
        'clients',
      ),
    },
    'tls',
  ),
  secret: record({
    type: fc.constant('secret' as const),
    key: text,
    digest: text,
    value: fc.uint8Array({ maxLength: 64 }),
  }),
  route: record(
    {
      type: fc.constant('route' as const),
      key: text,
      ...age,
      route: ref,
      ruleIndex: count,
      ruleName: text,
      delegatedFrom: fc.array(
        record({ route: ref, ruleIndex: count, ruleName: text }, 'ruleName'),
        {
          minLength: 1,
          maxLength: 3,
        },
      ),
      attachments: list(record({ listener: text, hostnames: list(text) })),
      matches: list(
        record(
          {
            path: record({
              type: fc.constantFrom('Exact', 'PathPrefix', 'RegularExpression'),
              value: text,
            }),
            method: text,
            headers: list(named),
            query: list(named),
          },
          'method',
        ),
      ),
      filters: list(filter),
      backends: list(record({ weight: count, target, filters: list(filter) })),
      requestTimeoutMs: fc.nat(Number.MAX_SAFE_INTEGER),
      backendTimeoutMs: fc.nat(Number.MAX_SAFE_INTEGER),
      session: record(
        {
          carrier: fc.constantFrom('Cookie', 'Header'),
          name: text,
          absoluteTimeoutMs: fc.nat(Number.MAX_SAFE_INTEGER),
          isPermanent: fc.boolean(),
        },
        'absoluteTimeoutMs',
      ),
      unusable: text,
    },
    'ruleName',
    'delegatedFrom',
    'requestTimeoutMs',
    'backendTimeoutMs',
    'session',
    'unusable',
  ),
  stream: record(
    {
      type: fc.constant('stream' as const),
      key: text,
      ...age,
      route: ref,
      ruleName: text,
      attachments: list(record({ listener: text, hostnames: list(text) })),
      backends: list(record({ weight: count, target })),
    },
    'ruleName',
  ),
  backend: record({
    type: fc.constant('backend' as const),
    key: text,
    namespace: text,
    name: text,
    destination: fc.oneof(
      record({ type: fc.constant('static' as const), host: text, port }),
      record({ type: fc.constant('dynamic' as const) }),
      record({ type: fc.constant('ai' as const), groups: list(list(provider)) }),
      mcpDestination,
      record(
        {
          type: fc.constant('a2a' as const),
          host: text,
          port,
          push: record({ hosts: list(text), addresses: list(text), allowHttp: fc.boolean() }),
          pinning: fc.constantFrom('Warn', 'Block'),
          pins: fc.array(mcpPins, { minLength: 1, maxLength: 3 }),
        },
        'pinning',
        'pins',
      ),
      record({ type: fc.constant('unsupported' as const), message: text }),
    ),
  }),
  service: record({
    type: fc.constant('service' as const),
    key: text,
    namespace: text,
    name: text,
    ports: list(
      record(
        {
          name: text,
          port,
          protocol: fc.constant('UDP' as const),
          targetPort: port,
          appProtocol: text,
        },
        'protocol',
        'targetPort',
        'appProtocol',
      ),
    ),
    publishNotReady: fc.boolean(),
  }),
  workload: record({
    type: fc.constant('workload' as const),
    key: text,
    namespace: text,
    name: text,
    service: text,
    ports: list(record({ name: text, port, appProtocol: text }, 'appProtocol')),
    endpoints: list(
      record(
        {
          address: text,
          ready: fc.boolean(),
          serving: fc.boolean(),
          zone: text,
          node: text,
          forZones: fc.array(text, { minLength: 1, maxLength: 2 }),
          forNodes: fc.array(text, { minLength: 1, maxLength: 2 }),
        },
        'serving',
        'zone',
        'node',
        'forZones',
        'forNodes',
      ),
    ),
  }),
  pool: record(
    {
      type: fc.constant('pool' as const),
      key: text,
      namespace: text,
      name: text,
      targetPorts: list(port),
      appProtocol: fc.constantFrom('http', 'kubernetes.io/h2c'),
      picker: record({
        target: record({ type: fc.constant('service'), namespace: text, name: text, port }),
        failureMode: fc.constantFrom('FailOpen', 'FailClose'),
      }),
      unusable: text,
    },
    'picker',
    'unusable',
  ),
  pod: record(
    {
      type: fc.constant('pod' as const),
      key: text,
      namespace: text,
      name: text,
      pools: list(text),
      address: text,
      ready: fc.boolean(),
      serving: fc.boolean(),
    },
    'serving',
  ),
  policy: record(
    {
      type: fc.constant('policy' as const),
      key: text,
      ...age,
      policy: name,
      section: fc.constantFrom('frontend', 'traffic', 'backend'),
      field: text,
      phase: fc.constantFrom('PreRouting', 'PostRouting'),
      target: record(
        { kind: text, namespace: text, name: text, section: text, inline: fc.boolean() },
        'section',
        'inline',
      ),
      configVersion: count,
      config: text,
      secrets: fc.array(secretRef, { minLength: 1, maxLength: 3 }),
      unenforceable: text,
      dispensable: fc.constant(true),
    },
    'secrets',
    'unenforceable',
    'dispensable',
  ),
} as unknown as Record<Resource['type'], fc.Arbitrary<Resource>>

describe('encoding and decoding desired state', () => {
  it.each(Object.entries(resources))('preserves every %s', (_, arbitrary) => {
    fc.assert(
      fc.property(text, arbitrary, (version, resource) => {
        const delta = { sequence: 1, upserted: [{ version, resource }], removed: [] }
        expect(decodeDelta(encodeDelta(delta))).toStrictEqual({ ...delta, unreadable: [] })
      }),
      { numRuns: 60 },
    )
  })

  it('preserves sequence, order and removals of a change set', () => {
    const versioned = record({ version: text, resource: fc.oneof(...Object.values(resources)) })
    fc.assert(
      fc.property(
        fc.nat(Number.MAX_SAFE_INTEGER),
        list(versioned),
        list(text),
        (sequence, upserted, removed) => {
          const delta = { sequence, upserted, removed } as DesiredDelta
          expect(decodeDelta(encodeDelta(delta))).toStrictEqual({ ...delta, unreadable: [] })
        },
      ),
      { numRuns: 60 },
    )
  })
})
