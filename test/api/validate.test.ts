import { describe, expect, it } from 'vitest'
import { kinds } from '../../src/control/api/kinds.ts'
import { expandList, isForeign, validateObject } from '../../src/control/api/validate.ts'
import type { Node } from '../../src/ground/schema/field.ts'

const ours = 'sluice.dev/v1alpha1'
const backend = (spec: unknown, more: object = {}) => ({
  apiVersion: ours,
  kind: 'GatewayBackend',
  metadata: { name: 'a' },
  spec,
  ...more,
})
const policy = (spec: object, more: object = {}) => ({
  apiVersion: ours,
  kind: 'GatewayPolicy',
  metadata: { name: 'a' },
  spec: { targetRefs: [{ group: '', kind: 'Service', name: 'a' }], ...spec },
  ...more,
})
const parameters = (spec: unknown) => ({ ...backend(spec), kind: 'GatewayParameters' })
const fixed = { static: { host: 'a.example', port: 80 } }

const problemsOf = (input: unknown) => {
  const outcome = validateObject(input)
  return outcome.ok ? [] : outcome.problems.map(({ path, message }) => `${path}: ${message}`)
}

describe('integer fields', () => {
  it('have an upper bound in every kind', () => {
    const unbounded: string[] = []
    const seen = new Set<Node>()
    const look = (node: Node, path: string): void => {
      if (seen.has(node)) return
      seen.add(node)
      if (node.type === 'integer' && node.max === undefined && node.values === undefined) {
        unbounded.push(path)
      }
      if (node.type === 'list') look(node.items, `${path}[]`)
      if (node.type === 'map') look(node.values, `${path}{}`)
      if (node.type !== 'object') return
      for (const [name, { schema }] of Object.entries(node.fields)) {
        look(schema.node, `${path}.${name}`)
      }
    }
    for (const { kind, versions, schemaOf } of kinds) {
      for (const version of versions) look(schemaOf(version).node, kind)
    }
    expect(seen.size).toBeGreaterThan(100)
    expect(unbounded).toEqual([])
    const tooMany = policy({ frontend: { http: { maxBufferSize: 2 ** 31 } } })
    expect(problemsOf(tooMany)).toEqual([
      'spec.frontend.http.maxBufferSize: must be at most 2147483647',
    ])
  })
})

describe('apiVersion and kind', () => {
  it.each([
    [
      '[version.v1alpha1] an unknown version of sluice.dev',
      { apiVersion: 'sluice.dev/v1', kind: 'GatewayBackend' },
      'apiVersion: sluice.dev/v1 is not known for GatewayBackend; known: sluice.dev/v1alpha1',
    ],
    [
      'a misspelled kind of sluice.dev',
      { apiVersion: ours, kind: 'GatewayPolicies' },
      'kind: GatewayPolicies is not a kind of sluice.dev; did you mean GatewayPolicy?',
    ],
    [
      'an unknown kind of sluice.dev',
      { apiVersion: ours, kind: 'Thing' },
      'kind: Thing is not a kind of sluice.dev; known: GatewayBackend, AgentgatewayModel, GatewayPolicy, GatewayParameters, GatewayBudget',
    ],
    [
      'an unknown version of the Gateway API',
      { apiVersion: 'gateway.networking.k8s.io/v2', kind: 'HTTPRoute' },
      'apiVersion: gateway.networking.k8s.io/v2 is not known for HTTPRoute; known: gateway.networking.k8s.io/v1, gateway.networking.k8s.io/v1beta1',
    ],
    ['no apiVersion', { kind: 'Service' }, 'apiVersion: is required'],
    ['no kind', { apiVersion: 'v1' }, 'kind: is required'],
    ['a number as kind', { apiVersion: 'v1', kind: 1 }, 'kind: must be a string'],
    ['a list', [], ': must be an object'],
    ['nothing', null, ': must be an object'],
  ])('rejects %s with a message that names the problem', (_, input, problem) => {
    expect(problemsOf(input)).toEqual([problem])
    expect(isForeign(input)).toBe(false)
  })

  it.each([
    { apiVersion: 'apps/v1', kind: 'Deployment' },
    { apiVersion: 'v1', kind: 'PersistentVolume' },
    { apiVersion: 'gateway.networking.x-k8s.io/v1alpha1', kind: 'XMesh' },
  ])('is foreign for $kind', (input) => expect(isForeign(input)).toBe(true))

  it.each(kinds.map((row) => [row.kind, row] as const))('is not foreign for %s', (kind, row) => {
    for (const version of row.versions) {
      const apiVersion = row.group === '' ? version : `${row.group}/${version}`
      expect(isForeign({ apiVersion, kind })).toBe(false)
    }
  })
})

describe('metadata of an object', () => {
  it('gets the default namespace if the object is namespaced, and none if it is cluster-scoped', () => {
    expect(validateObject(backend(fixed))).toMatchObject({
      value: { metadata: { name: 'a', namespace: 'default' } },
    })
    expect(
      validateObject({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a' } }),
    ).toMatchObject({ value: { metadata: { namespace: '' } } })
  })

  it.each([
    [undefined, 'metadata: is required'],
    [{}, 'metadata.name: is required'],
    [{ name: 'A' }, 'metadata.name: must be a lowercase DNS name'],
    [{ name: 'a'.repeat(254) }, 'metadata.name: must have at most 253 characters, has 254'],
    [{ name: 'a', namespace: 'A' }, 'metadata.namespace: must be a lowercase DNS label'],
    [{ name: 'a', lables: {} }, 'metadata.lables: unknown field; did you mean labels?'],
    [
      { name: 'a', labels: { a: 1 } },
      'metadata.labels.a: must be a string, not an integer; write it in quotes: "1"',
    ],
  ])('is refused if it is %j', (metadata, problem) => {
    expect(problemsOf({ ...backend(fixed), metadata })).toEqual([problem])
  })

  it('is refused with a namespace if the kind is cluster-scoped', () => {
    const metadata = { name: 'a', namespace: 'b' }
    expect(problemsOf({ apiVersion: 'v1', kind: 'Namespace', metadata })).toEqual([
      'metadata.namespace: must not be set: Namespace has no namespace',
    ])
  })

  it('may contain the fields that the API server and tools write', () => {
    const metadata = {
      name: 'a',
      uid: 'u',
      resourceVersion: '1',
      generation: 3,
      creationTimestamp: null,
      managedFields: [{ manager: 'kubectl' }],
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' }],
    }
    const outcome = validateObject({ ...backend(fixed), metadata })
    expect(outcome).toMatchObject({ ok: true, value: { metadata: { uid: 'u', generation: 3 } } })
    expect(JSON.stringify(outcome)).not.toContain('kubectl')
  })
})

describe('kinds of sluice.dev', () => {
  it('[GatewayParameters.configs] has configuration and overlays directly in spec', () => {
    const configs = {
      logging: { level: 'info,sluice=debug', format: 'json' },
      rawConfig: { a: [null] },
      image: { registry: 'r', repository: 'p', tag: '1', digest: 'sha256:a', pullPolicy: 'Always' },
      env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
      resources: { limits: { cpu: 1, memory: '1Gi' } },
      shutdown: { min: 0, max: 31_536_000 },
      mesh: { trustDomain: 'a' },
    }
    const overlay = { metadata: { labels: { a: 'b' } }, spec: { $patch: 'delete', a: null } }
    const overlays = {
      deployment: overlay,
      service: overlay,
      serviceAccount: overlay,
      podDisruptionBudget: overlay,
      horizontalPodAutoscaler: overlay,
    }
    const spec = { ...configs, ...overlays }
    expect(validateObject(parameters(spec))).toMatchObject({ ok: true, value: { spec } })
    expect(problemsOf(parameters({ overlays }))).toEqual(['spec.overlays: unknown field'])
  })

  it.each(['GatewayBackend', 'GatewayPolicy', 'GatewayParameters'])(
    'require a spec in %s',
    (kind) => {
      expect(problemsOf({ apiVersion: ours, kind, metadata: { name: 'a' } })).toEqual([
        'spec: is required',
      ])
    },
  )

  it('[BackendStatus.conditions] takes at most 8 conditions of different types', () => {
    const condition = (index: number) => ({
      type: `T${index}`,
      status: 'True',
      reason: 'R',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    })
    const all = Array.from({ length: 9 }, (_, index) => condition(index))
    const status = (conditions: unknown) => backend(fixed, { status: { conditions } })
    expect(problemsOf(status(all.slice(0, 8)))).toEqual([])
    expect(problemsOf(status(all))).toEqual(['status.conditions: must have at most 8 items, has 9'])
    expect(problemsOf(status([condition(1), condition(1)]))).toEqual([
      'status.conditions[1]: has the same type as item 0',
    ])
  })

  it('[PolicyStatus.conditions] may be set together with the required ancestors', () => {
    const conditions = [
      { type: 'Accepted', status: 'True', reason: 'Valid', message: '', lastTransitionTime: 't' },
    ]
    const ancestors = [
      { ancestorRef: { name: 'gw' }, controllerName: 'sluice.dev/gateway-controller', conditions },
    ]
    expect(problemsOf(policy({}, { status: { conditions, ancestors } }))).toEqual([])
    expect(problemsOf(policy({}, { status: { conditions } }))).toEqual([
      'status.ancestors: is required',
    ])
    const nobody = [{ ancestorRef: { name: 'gw' }, controllerName: 'nobody' }]
    expect(problemsOf(policy({}, { status: { ancestors: nobody } }))).toEqual([
      'status.ancestors[0].controllerName: must be a domain and a path, such as example.com/controller',
    ])
  })

  const ai = { promptCaching: {} }
  const mcp = { authorization: { policy: { matchExpressions: ['true'] } } }
  const simple = { tcp: {}, tls: {}, http: {}, auth: { passthrough: {} } }

  it('[BackendSimple.fields] has tcp, tls, http and auth, but neither ai nor mcp', () => {
    const moderation = (policies: object) =>
      policy({
        backend: { ai: { promptGuard: { request: [{ vendorAModeration: { policies } }] } } },
      })
    const at = 'spec.backend.ai.promptGuard.request[0].vendorAModeration.policies'
    expect(problemsOf(moderation(simple))).toEqual([])
    expect(problemsOf(moderation({ ...simple, ai, mcp }))).toEqual([
      `${at}.ai: unknown field`,
      `${at}.mcp: unknown field`,
    ])
  })

  it('[BackendWithAI.fields] has ai, but not mcp', () => {
    const named = (policies: object) =>
      backend({ ai: { groups: [{ providers: [{ name: 'a', vendorA: {}, policies }] }] } })
    expect(problemsOf(named({ ...simple, ai }))).toEqual([])
    expect(problemsOf(named({ ...simple, mcp }))).toEqual([
      'spec.ai.groups[0].providers[0].policies.mcp: unknown field',
    ])
  })

  it('[BackendWithMCP.fields] has mcp, but not ai', () => {
    const target = (policies: object) =>
      backend({ mcp: { targets: [{ name: 'a', static: { host: 'a', port: 1, policies } }] } })
    expect(problemsOf(target({ ...simple, mcp }))).toEqual([])
    expect(problemsOf(target({ ...simple, ai }))).toEqual([
      'spec.mcp.targets[0].static.policies.ai: unknown field',
    ])
  })
})

describe('problem messages', () => {
  const jwks = { backendRef: { name: 'a', port: 1 }, jwksPath: '/a' }
  it.each([
    [
      policy({ frontend: { tls: { minProtocolVersion: 1.2 } } }),
      'spec.frontend.tls.minProtocolVersion: must be a string, not a number; write it in quotes: "1.2"',
    ],
    [
      policy({ frontend: { http: { maxBufferSize: '2MB' } } }),
      'spec.frontend.http.maxBufferSize: must be a number of bytes such as 2097152 or 2Mi, not a string',
    ],
    [policy({ traffic: { csfr: {} } }), 'spec.traffic.csfr: unknown field; did you mean csrf?'],
    [
      policy({ traffic: { csrf: null } }),
      'spec.traffic.csrf: must be an object, not null; leave the field out to unset it',
    ],
    [
      policy({ backend: { mcp: { authentication: { jwks: { ...jwks, inline: '{}' } } } } }),
      'spec.backend.mcp.authentication.jwks.inline: unknown field; an inline key set is not possible here; give jwksPath and backendRef',
    ],
    [
      policy({ traffic: { jwtAuthentication: { mode: 'strict', providers: [] } } }),
      'spec.traffic.jwtAuthentication.mode: must be one of Strict, Optional, Permissive',
    ],
    [
      policy({ backend: { ai: { routes: { '/v1/chat': 'Chat' } } } }),
      'spec.backend.ai.routes["/v1/chat"]: must be one of Completions, Messages, Models, Passthrough, Responses, VendorCTokenCount, Embeddings, GenerateContent, GeminiCountTokens, EmbedContent, BatchEmbedContents, Converse, InvokeModel, TextCompletions, Rerank, Images, Speech, Moderations, ResponsesTokenCount, ResponsesCompact, Transcriptions, Translations, ImageEdits, ImageVariations, Conversations, Files, Batches, MessageBatches, Realtime',
    ],
  ])('%#', (input, problem) => expect(problemsOf(input)).toContain(problem))
})

describe('Kubernetes core kinds', () => {
  const core = (kind: string, body: object, apiVersion = 'v1') => ({
    apiVersion,
    kind,
    metadata: { name: 'a' },
    ...body,
  })

  it('keep unknown fields, and treat null as not set', () => {
    const spec = { ipFamilies: ['IPv4'], selector: null, ports: [{ port: 80, nodePort: 30_000 }] }
    const outcome = validateObject(core('Service', { spec }))
    expect(outcome).toMatchObject({
      ok: true,
      value: { spec: { ipFamilies: ['IPv4'], ports: [{ port: 80, nodePort: 30_000 }] } },
    })
    expect(outcome.ok && JSON.stringify(outcome.value)).not.toContain('selector')
  })

  it('accept an EndpointSlice whose lists are null', () => {
    const slice = core(
      'EndpointSlice',
      { addressType: 'IPv4', endpoints: null, ports: null },
      'discovery.k8s.io/v1',
    )
    expect(problemsOf(slice)).toEqual([])
  })

  it('refuse the port number 0', () => {
    expect(problemsOf(core('Service', { spec: { ports: [{ port: 0 }] } }))).toEqual([
      'spec.ports[0].port: must be at least 1',
    ])
  })

  it('merge stringData of a Secret into data', () => {
    const secret = core('Secret', { data: { a: 'YQ==', b: 'Yg==' }, stringData: { b: 'ä' } })
    const outcome = validateObject(secret)
    expect(outcome).toMatchObject({ ok: true, value: { data: { a: 'YQ==', b: 'w6Q=' } } })
    expect(outcome.ok && 'stringData' in outcome.value).toBe(false)
  })

  it('refuse data of a Secret that is not base64', () => {
    expect(problemsOf(core('Secret', { data: { a: 'not base64' } }))).toEqual([
      'data.a: must be base64; for plain text use stringData',
    ])
  })
})

describe('validateObject', () => {
  it('does not change its input', () => {
    const deepFreeze = (value: unknown): unknown => {
      if (typeof value === 'object' && value !== null) {
        Object.freeze(value)
        Object.values(value).forEach(deepFreeze)
      }
      return value
    }
    const route = {
      apiVersion: 'gateway.networking.k8s.io/v1beta1',
      kind: 'HTTPRoute',
      metadata: { name: 'a', creationTimestamp: null },
      spec: { rules: [{ backendRefs: [{ name: 'a', port: 1 }] }] },
    }
    const before = JSON.stringify(route)
    expect(validateObject(deepFreeze(route)).ok).toBe(true)
    expect(JSON.stringify(route)).toBe(before)
  })
})

describe('objects that are cyclic or nested too deeply', () => {
  const depth = (levels: number): object => (levels === 0 ? {} : { a: depth(levels - 1) })
  const problem = ': must not be nested deeper than 128 levels, nor be a part of itself'

  it('are refused if they contain themselves', () => {
    const rawConfig: Record<string, unknown> = {}
    rawConfig.again = rawConfig
    expect(problemsOf(parameters({ rawConfig }))).toEqual([problem])
  })

  it('are refused if they have more than 128 levels', () => {
    expect(problemsOf(parameters({ rawConfig: depth(100) }))).toEqual([])
    expect(problemsOf(parameters({ rawConfig: depth(130) }))).toEqual([problem])
  })
})

describe('expandList', () => {
  it('returns the items of a list with their paths', () => {
    const items = [backend(fixed), { apiVersion: 'v1', kind: 'Secret' }]
    expect(expandList({ apiVersion: 'v1', kind: 'List', items })).toEqual([
      { input: items[0], path: 'items[0]' },
      { input: items[1], path: 'items[1]' },
    ])
  })

  it('gives the items of a typed list their apiVersion and kind', () => {
    const list = { apiVersion: ours, kind: 'GatewayBackendList', items: [{ spec: fixed }] }
    expect(expandList(list)).toEqual([
      { input: { apiVersion: ours, kind: 'GatewayBackend', spec: fixed }, path: 'items[0]' },
    ])
  })

  it('returns any other input unchanged', () => {
    expect(expandList(backend(fixed))).toEqual([{ input: backend(fixed), path: '' }])
    expect(expandList(null)).toEqual([{ input: null, path: '' }])
  })
})
