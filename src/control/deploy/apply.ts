/**
 * Applies the objects of one Gateway. First sends a dry run of every object that differs; only if the server
 * accepts them all, writes them, so that a Gateway is never changed in part. Then removes objects that are no
 * longer wanted.
 */
import { canonicalJson } from '../../ground/base/canonical.ts'
import { type ObjectKey, objectKey } from '../../ground/model/names.ts'
import type { ProxyPlan, RenderedObject } from '../desired/deployment/plan.ts'
import { type KubeClient, KubeError, type KubeObject, objectPath } from '../kube/index.ts'
import {
  contentOf,
  controllerOf,
  isOwnedKind,
  type OwnedKind,
  type OwnedObjects,
  ownedKinds,
} from './owned-objects.ts'
import { isAvailable, isWorkload } from './workload.ts'

export interface ObjectChange {
  readonly kind: string
  readonly name: string
  readonly change: 'created' | 'updated' | 'deleted'
}

/** Another object has the name. `isPassing` is set if that object is being removed. */
export class ConflictingObjectError extends Error {
  readonly isPassing: boolean

  constructor(message: string, isPassing: boolean) {
    super(message)
    this.isPassing = isPassing
  }
}

/** Thrown if another replica has acquired the lease in the meantime. */
export class NotWritingError extends Error {}

interface AppliedObject {
  readonly wanted: string
  readonly content: string
}

interface ApplierOptions {
  readonly client: KubeClient
  readonly owned: OwnedObjects
  /** Whether this replica may write now; called before every write. */
  readonly isWriting: () => boolean
}

export class Applier {
  readonly #options: ApplierOptions
  /** The object as last applied, and the server's result. While both stay the same, nothing is due. */
  readonly #applied = new Map<ObjectKey, AppliedObject>()

  constructor(options: ApplierOptions) {
    this.#options = options
  }

  forget(): void {
    this.#applied.clear()
  }

  /** Resolves with the changes. @throws ConflictingObjectError, KubeError, NotWritingError */
  async apply(plan: ProxyPlan, objects: readonly RenderedObject[]): Promise<ObjectChange[]> {
    const isScaled = objects.some(({ kind }) => kind === 'HorizontalPodAutoscaler')
    const due: { object: RenderedObject; isNew: boolean }[] = []
    for (const rendered of objects) {
      const object = isScaled ? this.#withLiveReplicas(rendered) : rendered
      if (this.#isUpToDate(object)) continue
      const live = await this.#find(object, plan)
      const tried = await this.#send(object, true)
      if (live !== undefined && contentOf(tried) === contentOf(live)) this.#remember(object, live)
      else due.push({ object, isNew: live === undefined })
    }
    const changes: ObjectChange[] = []
    for (const { object, isNew } of due) {
      this.#remember(object, await this.#send(object, false))
      const { kind, metadata } = object
      changes.push({ kind, name: metadata.name, change: isNew ? 'created' : 'updated' })
    }
    return [...changes, ...(await this.remove(plan.uid, objects))]
  }

  /**
   * Removes the objects that the Gateway with this uid owns, except `kept`. A workload that one of another kind
   * replaces is removed only when all pods of the new one are available.
   */
  async remove(uid: string, kept: readonly RenderedObject[] = []): Promise<ObjectChange[]> {
    const keys = new Set(kept.map(keyOf))
    const isReplacing = kept.some(
      (object) =>
        isWorkload(object.kind) &&
        !isAvailable(object.kind, this.#options.owned.get(keyOf(object))),
    )
    const changes: ObjectChange[] = []
    for (const { kind, object } of this.#options.owned.ofOwner(uid)) {
      const { namespace = '', name, deletionTimestamp } = object.metadata
      if (deletionTimestamp !== undefined || keys.has(objectKey({ kind, namespace, name })))
        continue
      if (isReplacing && isWorkload(kind)) continue
      await this.#delete(kind, object)
      changes.push({ kind, name, change: 'deleted' })
    }
    return changes
  }

  #isUpToDate(object: RenderedObject): boolean {
    const key = keyOf(object)
    const applied = this.#applied.get(key)
    const live = this.#options.owned.get(key)
    if (applied === undefined || live === undefined) return false
    if (live.metadata.deletionTimestamp !== undefined) return false
    return applied.wanted === canonicalJson(object) && applied.content === contentOf(live)
  }

  #remember(object: RenderedObject, live: KubeObject): void {
    this.#applied.set(keyOf(object), { wanted: canonicalJson(object), content: contentOf(live) })
  }

  /** Keeps the number of replicas that an autoscaler has set. */
  #withLiveReplicas(object: RenderedObject): RenderedObject {
    const spec = object.spec as { readonly replicas?: number } | undefined
    if (object.kind !== 'Deployment' || spec?.replicas === undefined) return object
    const live = this.#options.owned.get(keyOf(object))?.spec as typeof spec
    return live?.replicas === undefined
      ? object
      : { ...object, spec: { ...spec, replicas: live.replicas } }
  }

  /** Returns the object in the cluster. @throws ConflictingObjectError if it is not this Gateway's */
  async #find(object: RenderedObject, plan: ProxyPlan): Promise<KubeObject | undefined> {
    const live = this.#options.owned.get(keyOf(object)) ?? (await this.#get(object))
    if (live === undefined) return undefined
    const { kind, metadata } = object
    const what = `${kind} ${metadata.namespace}/${metadata.name}`
    const owner = controllerOf(live)
    if (owner?.uid === plan.uid) {
      if (live.metadata.deletionTimestamp === undefined) return live
      throw new ConflictingObjectError(`${what} is being removed`, true)
    }
    if (owner?.kind === 'Gateway' && owner.name === plan.name) {
      // The cluster's garbage collection would remove it too, but later.
      await this.#delete(kind as OwnedKind, live)
      throw new ConflictingObjectError(`${what} is of an earlier Gateway of this name`, true)
    }
    const advice = 'rename the Gateway, or remove the object'
    throw new ConflictingObjectError(`${what} exists and is not this Gateway's: ${advice}`, false)
  }

  async #get(object: RenderedObject): Promise<KubeObject | undefined> {
    try {
      return await this.#options.client.get(pathOf(object))
    } catch (error) {
      if (error instanceof KubeError && error.isNotFound) return undefined
      throw refused(object.kind, object.metadata.name, error)
    }
  }

  async #send(object: RenderedObject, isDry: boolean): Promise<KubeObject> {
    const { client, owned, isWriting } = this.#options
    const { kind, metadata } = object
    if (!isWriting()) throw new NotWritingError()
    try {
      const live = await client.apply<KubeObject>(pathOf(object), object, { isDry })
      if (!isDry && isOwnedKind(kind)) owned.note(kind, live)
      return live
    } catch (error) {
      throw refused(kind, metadata.name, error)
    }
  }

  async #delete(kind: OwnedKind, { metadata }: KubeObject): Promise<void> {
    const { client, isWriting } = this.#options
    if (!isWriting()) throw new NotWritingError()
    const { namespace = '', name, uid = '' } = metadata
    try {
      await client.remove(objectPath(ownedKinds[kind], namespace, name), uid)
    } catch (error) {
      // The object is gone or was replaced; the watch reports that.
      if (error instanceof KubeError && (error.isNotFound || error.isConflict)) return
      throw refused(kind, name, error)
    }
  }
}

function keyOf({ kind, metadata }: RenderedObject): ObjectKey {
  return objectKey({ kind, namespace: metadata.namespace, name: metadata.name })
}

function pathOf({ kind, metadata }: RenderedObject): string {
  if (!isOwnedKind(kind)) throw new Error(`${kind} is not deployed`)
  return objectPath(ownedKinds[kind], metadata.namespace, metadata.name)
}

/** Adds the object's kind and name to the message of an error. */
function refused(kind: string, name: string, cause: unknown): KubeError {
  const { status, reason, message } =
    cause instanceof KubeError ? cause : new KubeError(0, '', String(cause))
  return new KubeError(status, reason, `${kind} ${name}: ${message}`, { cause })
}
