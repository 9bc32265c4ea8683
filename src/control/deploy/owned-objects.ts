/** The deployed objects as last observed; all have our label. */
import { canonicalJson } from '../../ground/base/canonical.ts'
import { type ObjectKey, objectKey } from '../../ground/model/names.ts'
import { type ApiPath, fieldManager, type KubeObject } from '../kube/index.ts'

/** Kinds that are deployed, with their API paths. */
export const ownedKinds = {
  ServiceAccount: { group: '', version: 'v1', plural: 'serviceaccounts' },
  ConfigMap: { group: '', version: 'v1', plural: 'configmaps' },
  Service: { group: '', version: 'v1', plural: 'services' },
  Deployment: { group: 'apps', version: 'v1', plural: 'deployments' },
  DaemonSet: { group: 'apps', version: 'v1', plural: 'daemonsets' },
  PodDisruptionBudget: { group: 'policy', version: 'v1', plural: 'poddisruptionbudgets' },
  HorizontalPodAutoscaler: {
    group: 'autoscaling',
    version: 'v2',
    plural: 'horizontalpodautoscalers',
  },
} as const satisfies Readonly<Record<string, ApiPath>>

export type OwnedKind = keyof typeof ownedKinds

export function isOwnedKind(kind: string): kind is OwnedKind {
  return Object.hasOwn(ownedKinds, kind)
}

interface OwnedObject {
  readonly kind: OwnedKind
  readonly object: KubeObject
}

interface Owner {
  readonly kind: string
  readonly name: string
  readonly uid: string
}

/** Returns the owner that manages an object, of which there is at most one. */
export function controllerOf({ metadata }: KubeObject): Owner | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)
}

/**
 * Returns everything that a write of ours could change: no status, versions or times. `ours` has the names of
 * our fields, so that fields which others took over are noticed and taken back.
 */
export function contentOf({ metadata, status: _, ...rest }: KubeObject): string {
  const { labels, annotations, ownerReferences, managedFields = [] } = metadata
  const ours = managedFields.find(
    ({ manager, operation, subresource = '' }) =>
      manager === fieldManager && operation === 'Apply' && subresource === '',
  )
  const { apiVersion: __, kind: ___, ...fields } = rest
  return canonicalJson({
    ...fields,
    metadata: { labels, annotations, ownerReferences },
    ours: ours?.fieldsV1,
  })
}

export class OwnedObjects {
  readonly #objects = new Map<ObjectKey, OwnedObject>()
  readonly #listed = new Set<OwnedKind>()
  readonly #onChange: (gateway: ObjectKey) => void
  readonly #onListed: () => void

  /** `onChange` gets the Gateway whose object changed; `onListed` is called when all kinds are listed. */
  constructor(onChange: (gateway: ObjectKey) => void, onListed: () => void) {
    this.#onChange = onChange
    this.#onListed = onListed
  }

  get isListed(): boolean {
    return this.#listed.size === Object.keys(ownedKinds).length
  }

  get(key: ObjectKey): KubeObject | undefined {
    return this.#objects.get(key)?.object
  }

  /** Objects that an owner of this uid manages. */
  ofOwner(uid: string): OwnedObject[] {
    return [...this.#objects.values()].filter(({ object }) => controllerOf(object)?.uid === uid)
  }

  put(kind: OwnedKind, object: KubeObject): void {
    this.note(kind, object)
    this.#report(object)
  }

  /** Stores the result of a write without calling `onChange`. */
  note(kind: OwnedKind, object: KubeObject): void {
    this.#objects.set(keyOf(kind, object), { kind, object })
  }

  remove(kind: OwnedKind, object: KubeObject): void {
    const key = keyOf(kind, object)
    const known = this.#objects.get(key)?.object
    // The object was created again before its deletion was observed.
    if (known !== undefined && known.metadata.uid !== object.metadata.uid) return
    this.#objects.delete(key)
    this.#report(known ?? object)
  }

  /** Stores a complete listing of a kind. Known objects that it lacks are removed. */
  replace(kind: OwnedKind, objects: readonly KubeObject[]): void {
    const keys = new Set(objects.map((object) => keyOf(kind, object)))
    for (const [key, known] of this.#objects) {
      if (known.kind === kind && !keys.has(key)) this.remove(kind, known.object)
    }
    for (const object of objects) this.put(kind, object)
    const wasListed = this.isListed
    this.#listed.add(kind)
    if (this.isListed && !wasListed) this.#onListed()
  }

  #report(object: KubeObject): void {
    const owner = controllerOf(object)
    if (owner?.kind !== 'Gateway') return
    const { namespace = '' } = object.metadata
    this.#onChange(objectKey({ kind: 'Gateway', namespace, name: owner.name }))
  }
}

function keyOf(kind: OwnedKind, { metadata }: KubeObject): ObjectKey {
  return objectKey({ kind, namespace: metadata.namespace ?? '', name: metadata.name })
}
