/** Turns an object of a cluster into a claim: its identity and its recorded content. */
import type { ResourceName, WasProgrammed } from '../../../../events/index.ts'
import type { JsonObject } from '../../../ground/base/json-object.ts'
import type { KubeObject, LiveObject } from '../../kube/index.ts'
import { contentOf, type ObservedContent, type ObserveOptions } from '../observed.ts'
import { keyOf } from '../resource-index.ts'
import type { WatchedKind } from './kinds.ts'

/** One version of an object, as it is compared and recorded. */
export interface ClusterClaim {
  readonly key: string
  readonly name: ResourceName
  readonly uid: string
  /** The resourceVersion of Kubernetes. */
  readonly revision: string
  /** Undefined for kinds without generations, such as ConfigMap. */
  readonly generation: number | undefined
  readonly programmed?: WasProgrammed
  readonly content: ObservedContent
}

/** Kind, namespace and name of an object from the API server. */
export function nameOf({ kind, namespaced }: WatchedKind, { metadata }: KubeObject): ResourceName {
  return { kind, namespace: namespaced ? (metadata.namespace ?? '') : '', name: metadata.name }
}

/** Validates and redacts one object as a version of its kind. */
export function observeObject(
  kind: WatchedKind,
  version: string,
  object: KubeObject,
  options: ObserveOptions,
): ClusterClaim {
  const name = nameOf(kind, object)
  const { metadata } = object
  return {
    key: keyOf(name),
    name,
    uid: metadata.uid ?? '',
    revision: metadata.resourceVersion ?? '',
    generation: metadata.generation,
    content: contentOf(recordable(kind, version, object), options),
  }
}

/** Adds kind and version, which items of a list lack, and removes what is not recorded. */
function recordable(
  { kind, group }: WatchedKind,
  version: string,
  { status, metadata, ...rest }: KubeObject,
): JsonObject {
  const { managedFields: _, ...kept } = metadata as unknown as JsonObject
  const apiVersion = group === '' ? version : `${group}/${version}`
  // The addresses of Services and Pods are only in their status.
  const hasAddresses = kind === 'Service' || kind === 'Pod'
  const addresses = hasAddresses && status !== undefined ? { status } : {}
  return { ...rest, apiVersion, kind, metadata: kept, ...addresses }
}

/** Whether version `a` is newer than `b`. Versions that are not numbers count as newer if they differ. */
export function isNewer(a: string, b: string): boolean {
  if (!/^\d+$/.test(a) || !/^\d+$/.test(b)) return a !== b
  return a.length === b.length ? a > b : a.length > b.length
}

interface Condition {
  readonly type: string
  readonly status: string
  readonly observedGeneration?: number
}

interface LiveStatus {
  readonly addresses?: readonly { readonly value?: string }[]
  readonly conditions?: readonly Condition[]
  readonly listeners?: readonly { readonly conditions?: readonly Condition[] }[]
}

const listenerKinds = new Set(['Gateway', 'ListenerSet'])

/**
 * Returns the generation and addresses of a Gateway or ListenerSet if its status says that this generation is
 * programmed. Returns undefined otherwise, or if a proxy has rejected one of its listeners.
 */
export function wasProgrammed(live: LiveObject | undefined): WasProgrammed | undefined {
  if (live === undefined || !listenerKinds.has(live.kind)) return undefined
  const { addresses = [], conditions = [], listeners = [] } = (live.status ?? {}) as LiveStatus
  const own = conditions.find(({ type }) => type === 'Programmed')
  if (own?.status !== 'True' || own.observedGeneration !== live.generation) return undefined
  if (listeners.some((one) => isRefused(one.conditions ?? []))) return undefined
  return { generation: live.generation, addresses: addresses.flatMap(({ value }) => value ?? []) }
}

/** Whether a proxy rejects the listener: its conditions say that it is valid but not programmed. */
function isRefused(conditions: readonly Condition[]): boolean {
  const statusOf = (type: string) => conditions.find((one) => one.type === type)?.status
  return (
    statusOf('Programmed') === 'False' &&
    statusOf('Accepted') === 'True' &&
    statusOf('ResolvedRefs') === 'True' &&
    statusOf('Conflicted') !== 'True'
  )
}

/** Adds what the status now says is programmed, since the status changes without the rest of the object. */
export function claimNow(claim: ClusterClaim, live: LiveObject | undefined): ClusterClaim {
  const programmed = wasProgrammed(live)
  return programmed === undefined ? claim : { ...claim, programmed }
}
