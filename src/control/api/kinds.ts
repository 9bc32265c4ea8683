/** The table of all kinds that are read: our own, those of Gateway API, and some core kinds. */

import {
  agenticGroup,
  gatewayGroup,
  inferenceGroup,
  ownGroup,
} from '../../ground/model/api-names.ts'
import { optional, required, type Schema } from '../../ground/schema/field.ts'
import { accessPolicySpec } from './access-policy.ts'
import { agentgatewayModelSpec, agentgatewayModelStatus } from './agentgateway-model.ts'
import {
  configMapBody,
  endpointSliceBody,
  namespaceBody,
  podBody,
  secretBody,
  serviceBody,
} from './core-kinds.ts'
import { status } from './gateway-api/common.ts'
import { gatewayClassSpec, gatewaySpec, listenerSetSpec } from './gateway-api/gateway.ts'
import { backendTlsPolicySpec, referenceGrantSpec } from './gateway-api/grants.ts'
import { grpcRouteSpec } from './gateway-api/grpc-route.ts'
import { httpRouteSpec } from './gateway-api/http-route.ts'
import {
  tcpRouteAlphaSpec,
  tcpRouteSpec,
  tlsRouteAlphaSpec,
  tlsRouteSpec,
  udpRouteAlphaSpec,
  udpRouteSpec,
} from './gateway-api/stream-routes.ts'
import { gatewayBackendSpec, gatewayBackendStatus } from './gateway-backend.ts'
import { gatewayBudgetSpec, gatewayBudgetStatus } from './gateway-budget.ts'
import { gatewayParametersSpec, gatewayParametersStatus } from './gateway-parameters.ts'
import { gatewayPolicySpec, gatewayPolicyStatus } from './gateway-policy.ts'
import { inferencePoolSpec } from './inference-pool.ts'
import { type ApiKind, defineKind, type ObjectOfKind, type RouteTraits } from './kind.ts'
import { age, conditionColumn, reasonColumn } from './printer-columns.ts'

const specOnly = <T>(spec: Schema<T>) => ({ spec: required(spec, 'Desired state.'), status })

const ownRow = { group: ownGroup, versions: ['v1alpha1'], namespaced: true, own: true } as const

const gatewayBackend = defineKind({
  ...ownRow,
  kind: 'GatewayBackend',
  plural: 'gatewaybackends',
  doc: 'A destination of traffic: a language model, MCP servers, a fixed host, or whatever clients name.',
  shortNames: ['gwbe'],
  columns: [
    conditionColumn('Accepted', '.status.conditions', 'Whether the backend can be used.'),
    reasonColumn('.status.conditions'),
    age,
  ],
  body: {
    spec: required(gatewayBackendSpec, 'Desired state.'),
    status: optional(gatewayBackendStatus, 'Conditions, set by the controller.'),
  },
})

const agentgatewayModel = defineKind({
  ...ownRow,
  kind: 'AgentgatewayModel',
  plural: 'agentgatewaymodels',
  doc: 'A name of a language model that clients ask for, and the provider or the other models that serve it.',
  shortNames: ['agmodel'],
  columns: [
    conditionColumn('Accepted', '.status.parents[*].conditions', 'Whether it can be used.'),
    reasonColumn('.status.parents[*].conditions'),
    age,
  ],
  body: {
    spec: required(agentgatewayModelSpec, 'Desired state.'),
    status: optional(agentgatewayModelStatus, 'Conditions, set by the controller.'),
  },
})

const gatewayPolicy = defineKind({
  ...ownRow,
  kind: 'GatewayPolicy',
  plural: 'gatewaypolicies',
  doc: 'Settings attached to gateways, listeners, routes, route rules, Services or backends.',
  shortNames: ['gwpol'],
  columns: [
    conditionColumn('Accepted', '.status.ancestors[*].conditions', 'Whether it is valid.'),
    conditionColumn('Attached', '.status.ancestors[*].conditions', 'Whether it is in force.'),
    reasonColumn('.status.ancestors[*].conditions'),
    age,
  ],
  body: {
    spec: required(gatewayPolicySpec, 'The desired state.'),
    status: optional(gatewayPolicyStatus, 'Conditions, set by the controller.'),
  },
})

const gatewayBudget = defineKind({
  ...ownRow,
  kind: 'GatewayBudget',
  plural: 'gatewaybudgets',
  doc: 'How much requests may spend in a window: money, tokens or requests, for all together or for each user, key or team.',
  shortNames: ['gwbudget'],
  columns: [
    {
      name: 'Amount',
      type: 'string',
      description: 'Amount for each window.',
      jsonPath: '.spec.limit.amount',
    },
    { name: 'Unit', type: 'string', description: 'What is counted.', jsonPath: '.spec.limit.unit' },
    {
      name: 'Spent',
      type: 'string',
      description: 'What is spent in the current window.',
      jsonPath: '.status.spent',
    },
    {
      name: 'Resets',
      type: 'string',
      description: 'When the window ends.',
      jsonPath: '.status.resetsAt',
    },
    conditionColumn('Accepted', '.status.ancestors[*].conditions', 'Whether it is valid.'),
    conditionColumn('Attached', '.status.ancestors[*].conditions', 'Whether it is in force.'),
    reasonColumn('.status.ancestors[*].conditions'),
    age,
  ],
  body: {
    spec: required(gatewayBudgetSpec, 'The desired state.'),
    status: optional(gatewayBudgetStatus, 'Conditions, set by the controller.'),
  },
})

const gatewayParameters = defineKind({
  ...ownRow,
  kind: 'GatewayParameters',
  plural: 'gatewayparameters',
  doc: 'How the proxy of a Gateway is deployed.',
  shortNames: ['gwparam'],
  columns: [age],
  body: {
    spec: required(gatewayParametersSpec, 'The desired state.'),
    status: optional(gatewayParametersStatus, { doc: 'Not written.', support: 'schema' }),
  },
})

const gatewayRow = { group: gatewayGroup, namespaced: true, own: false } as const

const upstreamKinds = [
  defineKind({
    ...gatewayRow,
    kind: 'GatewayClass',
    versions: ['v1', 'v1beta1'],
    plural: 'gatewayclasses',
    namespaced: false,
    doc: 'A kind of Gateway, and the controller that serves it.',
    body: specOnly(gatewayClassSpec),
  }),
  defineKind({
    ...gatewayRow,
    kind: 'Gateway',
    versions: ['v1', 'v1beta1'],
    plural: 'gateways',
    doc: 'Listeners that traffic comes in by.',
    body: specOnly(gatewaySpec),
  }),
  defineKind({
    ...gatewayRow,
    kind: 'ListenerSet',
    versions: ['v1'],
    plural: 'listenersets',
    doc: 'More listeners for a Gateway.',
    body: specOnly(listenerSetSpec),
  }),
  defineKind({
    ...gatewayRow,
    kind: 'HTTPRoute',
    versions: ['v1', 'v1beta1'],
    plural: 'httproutes',
    doc: 'Routes HTTP requests to backends.',
    route: { carries: 'http', listeners: ['HTTP', 'HTTPS'] },
    body: specOnly(httpRouteSpec),
  }),
  defineKind({
    ...gatewayRow,
    kind: 'GRPCRoute',
    versions: ['v1', 'v1alpha2'],
    plural: 'grpcroutes',
    doc: 'Routes gRPC calls to backends.',
    route: { carries: 'grpc', listeners: ['HTTP', 'HTTPS'] },
    body: specOnly(grpcRouteSpec),
  }),
  defineKind({
    ...gatewayRow,
    kind: 'TLSRoute',
    versions: ['v1', 'v1alpha3', 'v1alpha2'],
    plural: 'tlsroutes',
    doc: 'Routes TLS connections to backends, by server name.',
    route: { carries: 'tcp', listeners: ['TLS'] },
    body: specOnly(tlsRouteSpec),
    olderBodies: { v1alpha2: specOnly(tlsRouteAlphaSpec) },
  }),
  defineKind({
    ...gatewayRow,
    kind: 'TCPRoute',
    versions: ['v1', 'v1alpha2'],
    plural: 'tcproutes',
    doc: 'Routes TCP connections to backends.',
    route: { carries: 'tcp', listeners: ['TCP'], takesDecryptedTls: true },
    body: specOnly(tcpRouteSpec),
    olderBodies: { v1alpha2: specOnly(tcpRouteAlphaSpec) },
  }),
  defineKind({
    ...gatewayRow,
    kind: 'UDPRoute',
    versions: ['v1', 'v1alpha2'],
    plural: 'udproutes',
    doc: 'Routes datagrams to backends.',
    route: { carries: 'udp', listeners: ['UDP'] },
    body: specOnly(udpRouteSpec),
    olderBodies: { v1alpha2: specOnly(udpRouteAlphaSpec) },
  }),
  defineKind({
    ...gatewayRow,
    kind: 'ReferenceGrant',
    versions: ['v1', 'v1beta1', 'v1alpha2'],
    plural: 'referencegrants',
    doc: 'References from other namespaces that are allowed.',
    body: specOnly(referenceGrantSpec),
  }),
  defineKind({
    ...gatewayRow,
    kind: 'BackendTLSPolicy',
    versions: ['v1', 'v1alpha3'],
    plural: 'backendtlspolicies',
    doc: 'TLS to the backends of a Service.',
    body: specOnly(backendTlsPolicySpec),
  }),
  defineKind({
    kind: 'InferencePool',
    group: inferenceGroup,
    versions: ['v1'],
    plural: 'inferencepools',
    namespaced: true,
    own: false,
    doc: 'Pods that serve a model, and who chooses between them.',
    body: specOnly(inferencePoolSpec),
  }),
  defineKind({
    kind: 'XAccessPolicy',
    group: agenticGroup,
    versions: ['v1alpha1'],
    plural: 'xaccesspolicies',
    namespaced: true,
    own: false,
    doc: 'Which clients may use which MCP methods and tools (kube-agentic-networking).',
    body: specOnly(accessPolicySpec),
  }),
] as const

const coreRow = {
  group: '',
  versions: ['v1'],
  namespaced: true,
  own: false,
  lenient: true,
} as const

const coreKinds = [
  defineKind({
    ...coreRow,
    kind: 'Service',
    plural: 'services',
    doc: 'Ports of a set of pods.',
    body: serviceBody,
  }),
  defineKind({
    ...coreRow,
    kind: 'EndpointSlice',
    group: 'discovery.k8s.io',
    plural: 'endpointslices',
    doc: 'Addresses behind a Service.',
    body: endpointSliceBody,
  }),
  defineKind({
    ...coreRow,
    kind: 'Secret',
    plural: 'secrets',
    doc: 'Credentials and certificates.',
    body: secretBody,
  }),
  defineKind({
    ...coreRow,
    kind: 'ConfigMap',
    plural: 'configmaps',
    doc: 'Certificates of authorities and other text.',
    body: configMapBody,
  }),
  defineKind({
    ...coreRow,
    kind: 'Namespace',
    plural: 'namespaces',
    namespaced: false,
    doc: 'Labels of a namespace.',
    body: namespaceBody,
  }),
  defineKind({
    ...coreRow,
    kind: 'Pod',
    plural: 'pods',
    doc: 'A member of an InferencePool: its address, and whether it is ready.',
    body: podBody,
  }),
] as const

const table = [
  gatewayBackend,
  agentgatewayModel,
  gatewayPolicy,
  gatewayParameters,
  gatewayBudget,
  ...upstreamKinds,
  ...coreKinds,
] as const

/** Every kind that is read. */
export const kinds: readonly ApiKind[] = table

export interface RouteKind extends RouteTraits {
  readonly kind: string
}

export const routeKinds: readonly RouteKind[] = kinds.flatMap(({ kind, route }) =>
  route === undefined ? [] : [{ kind, ...route }],
)

/** Returns undefined if the kind is not a route kind. */
export function findRouteKind(kind: string): RouteKind | undefined {
  return routeKinds.find((row) => row.kind === kind)
}

export const carriesRequests = ({ carries }: RouteTraits): boolean =>
  carries === 'http' || carries === 'grpc'

export const requestRouteKinds: readonly string[] = routeKinds
  .filter(carriesRequests)
  .map(({ kind }) => kind)

export const streamRouteKinds: readonly string[] = routeKinds
  .filter((row) => !carriesRequests(row))
  .map(({ kind }) => kind)

/** An object of any kind that is read, after validation; `kind` discriminates the union. */
export type ApiObject = ObjectOfKind<(typeof table)[number]>

export type KindName = ApiObject['kind']

/** The object type of one kind. */
export type ObjectOf<Kind extends KindName> = Extract<ApiObject, { readonly kind: Kind }>

/** Splits `group/version`. The group is empty for the core group. */
export function splitApiVersion(apiVersion: string): {
  readonly group: string
  readonly version: string
} {
  const slash = apiVersion.indexOf('/')
  return { group: apiVersion.slice(0, Math.max(slash, 0)), version: apiVersion.slice(slash + 1) }
}

/** The table entry of a kind; undefined if the kind or this version of it is not read. */
export function findKind(apiVersion: string, kind: string): ApiKind | undefined {
  const { group, version } = splitApiVersion(apiVersion)
  return kinds.find(
    (row) => row.kind === kind && row.group === group && row.versions.includes(version),
  )
}
