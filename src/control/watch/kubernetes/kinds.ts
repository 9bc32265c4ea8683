/** The kinds that are watched in a cluster, and how. */
import type { ApiKind } from '../../api/kind.ts'
import { kinds } from '../../api/kinds.ts'
import type { ApiPath } from '../../kube/index.ts'
import { rankOf } from '../kind-order.ts'

export interface WatchedKind {
  readonly kind: string
  readonly group: string
  /** Supported versions, the preferred one first. */
  readonly versions: readonly string[]
  readonly plural: string
  readonly namespaced: boolean
  /** Whether a CRD defines the kind, so it may be missing now and be created or deleted later. */
  readonly isOptional?: boolean
  /** Whether objects are kept only if something refers to them. */
  readonly isNarrowed?: boolean
  /** Whether only metadata is watched; relevant objects are fetched separately. */
  readonly isMetadataOnly?: boolean
  /** Whether this controller writes the status of the objects. */
  readonly hasStatus?: boolean
  /** The API server sends only objects that match these two selectors. */
  readonly fieldSelector?: string
  readonly labelSelector?: string
}

/** Kinds whose status this controller does not write. */
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

/** Kinds that are read only if `inferenceExtension.enabled` is set. */
export const inferenceKinds: ReadonlySet<string> = new Set(['InferencePool', 'Pod'])

/** Excludes Pods that have finished, which may be many. */
const podFields = 'status.phase!=Succeeded,status.phase!=Failed'

/** Excludes Helm releases and service account tokens, which are many, large and irrelevant. */
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

export const watchedKinds: readonly WatchedKind[] = kinds
  .map(watched)
  .sort((a, b) => rankOf(a.kind) - rankOf(b.kind))

/** API path of the objects of a kind, in a version. */
export const pathOf = ({ group, plural }: WatchedKind, version: string): ApiPath => ({
  group,
  version,
  plural,
})

/** The kind of CRDs, which define other kinds. */
export const definitionKind: WatchedKind = {
  kind: 'CustomResourceDefinition',
  group: 'apiextensions.k8s.io',
  versions: ['v1'],
  plural: 'customresourcedefinitions',
  namespaced: false,
  isMetadataOnly: true,
}
