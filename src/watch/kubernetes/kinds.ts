/** The kinds that are watched in a cluster, and how. */
import type { ApiKind } from '../../api/kind.ts'
import { kinds } from '../../api/kinds.ts'
import type { ApiPath } from '../../kube/index.ts'

export interface WatchedKind {
  readonly kind: string
  readonly group: string
  /** Versions that are read, the preferred one first. */
  readonly versions: readonly string[]
  readonly plural: string
  readonly namespaced: boolean
  /** Defined by a CRD, which may come and go. */
  readonly isOptional: boolean
  /** Kept only where something refers to it. */
  readonly isNarrowed: boolean
  /** Only metadata is watched; what counts is fetched. */
  readonly isMetadataOnly: boolean
  /** Does this controller write its status? */
  readonly hasStatus: boolean
  /** Chosen by the server, so that the others never travel. */
  readonly fieldSelector?: string
  readonly labelSelector?: string
}

/** Kinds without a status of ours. */
const withoutStatus = new Set([
  'ReferenceGrant',
  'GatewayParameters',
  'Service',
  'EndpointSlice',
  'Secret',
  'ConfigMap',
  'Namespace',
  'Pod',
])

/** Kinds that are read only where `inferenceExtension.enabled` says so. */
export const inferenceKinds: ReadonlySet<string> = new Set(['InferencePool', 'Pod'])

/** Pods that have run to their end are many where jobs run, and serve nobody. */
const podFields = 'status.phase!=Succeeded,status.phase!=Failed'

/** Releases of Helm and tokens of service accounts are many, large and never ours. */
const secretFields = 'type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token'

function watched(row: ApiKind): WatchedKind {
  const { kind, group, versions, plural, namespaced } = row
  const isHeavy = kind === 'Secret' || kind === 'ConfigMap'
  return {
    kind,
    group,
    versions,
    plural,
    namespaced,
    isOptional: row.lenient !== true,
    isNarrowed: isHeavy || kind === 'Pod',
    isMetadataOnly: isHeavy,
    hasStatus: !withoutStatus.has(kind),
    ...(kind === 'Secret' && { fieldSelector: secretFields }),
    ...(kind === 'Pod' && { fieldSelector: podFields }),
  }
}

/**
 * In the order in which a batch is appended: what others refer to comes first, so that a route and
 * its Service that come together are never seen apart.
 */
const order = [
  'Namespace',
  'GatewayParameters',
  'GatewayClass',
  'ConfigMap',
  'Secret',
  'Service',
  'EndpointSlice',
  'ReferenceGrant',
  'GatewayBackend',
  'InferencePool',
  'Pod',
  'BackendTLSPolicy',
  'GatewayPolicy',
  'Gateway',
  'ListenerSet',
]

/** Place of a kind in a batch. */
export function rankOf(kind: string): number {
  const at = order.indexOf(kind)
  return at < 0 ? order.length : at
}

export const watchedKinds: readonly WatchedKind[] = kinds
  .map(watched)
  .sort((a, b) => rankOf(a.kind) - rankOf(b.kind))

/** Where the objects of a kind are, in a version. */
export const pathOf = ({ group, plural }: WatchedKind, version: string): ApiPath => ({
  group,
  version,
  plural,
})

/** Kinds that tell which others exist: a CRD that comes or goes. */
export const definitionKind: WatchedKind = {
  kind: 'CustomResourceDefinition',
  group: 'apiextensions.k8s.io',
  versions: ['v1'],
  plural: 'customresourcedefinitions',
  namespaced: false,
  isOptional: false,
  isNarrowed: true,
  isMetadataOnly: true,
  hasStatus: false,
}
