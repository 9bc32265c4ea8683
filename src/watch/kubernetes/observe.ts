/** What one object of a cluster says: its identity, and what is recorded of it. */
import type { ResourceName, WasProgrammed } from '../../../events/index.ts'
import type { JsonObject } from '../../base/json-object.ts'
import type { KubeObject } from '../../kube/index.ts'
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
  /** Absent for kinds that have none, such as ConfigMap. */
  readonly generation: number | undefined
  /** As of now. */
  readonly programmed?: WasProgrammed
  readonly content: ObservedContent
}

/** Kind, namespace and name of an object that the API server gave. */
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

/** Items of a list lack kind and version; status and bookkeeping are nothing that is recorded. */
function recordable(
  { kind, group }: WatchedKind,
  version: string,
  { status, metadata, ...rest }: KubeObject,
): JsonObject {
  const { managedFields: _, ...kept } = metadata as unknown as JsonObject
  const apiVersion = group === '' ? version : `${group}/${version}`
  // The addresses of Services and Pods are told in their status alone.
  const isTold = kind === 'Service' || kind === 'Pod'
  const addresses = isTold && status !== undefined ? { status } : {}
  return { ...rest, apiVersion, kind, metadata: kept, ...addresses }
}

/** Is `a` a newer version than `b`? Versions that are no numbers cannot be told apart by age. */
export function isNewer(a: string, b: string): boolean {
  if (!/^\d+$/.test(a) || !/^\d+$/.test(b)) return a !== b
  return a.length === b.length ? a > b : a.length > b.length
}
