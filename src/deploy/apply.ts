/**
 * The objects of one Gateway into the cluster: first everything that differs is tried (a dry run on
 * the server), and only when all of it is taken it is written, so that what runs is never left half
 * changed. Then what is ours and no longer wanted goes.
 */
import { canonicalJson } from '../base/canonical.ts'
import type { ProxyPlan, RenderedObject } from '../desired/deployment/index.ts'
import { type KubeClient, KubeError, type KubeObject, objectPath } from '../kube/index.ts'
import { type ObjectKey, objectKey } from '../model/names.ts'
import {
  contentOf,
  controllerOf,
  isOwnedKind,
  type OwnedKind,
  type OwnedObjects,
  ownedKinds,
} from './owned-objects.ts'

export interface Change {
  readonly kind: string
  readonly name: string
  readonly change: 'created' | 'updated' | 'deleted'
}

/** An object stands in the way; `isPassing` where it is about to go. */
export class InTheWayError extends Error {
  readonly isPassing: boolean

  constructor(message: string, isPassing: boolean) {
    super(message)
    this.isPassing = isPassing
  }
}

/** The API server does not take an object. */
export class RefusedObjectError extends Error {
  readonly error: KubeError

  constructor(kind: string, name: string, error: KubeError) {
    super(`${kind} ${name}: ${error.message}`, { cause: error })
    this.error = error
  }
}

/** The lease went to another replica meanwhile. */
export class NotWritingError extends Error {}

interface Made {
  readonly wanted: string
  readonly content: string
}

interface ApplierOptions {
  readonly client: KubeClient
  readonly owned: OwnedObjects
  /** May this replica write now? Asked before every write. */
  readonly isWriting: () => boolean
}

export class Applier {
  readonly #options: ApplierOptions
  /** What was last wanted of an object, and what the server made of it: that again is right. */
  readonly #made = new Map<ObjectKey, Made>()

  constructor(options: ApplierOptions) {
    this.#options = options
  }

  forget(): void {
    this.#made.clear()
  }

  /** Resolves with what was changed. @throws InTheWayError, RefusedObjectError, NotWritingError */
  async apply(plan: ProxyPlan, objects: readonly RenderedObject[]): Promise<Change[]> {
    const isScaled = objects.some(({ kind }) => kind === 'HorizontalPodAutoscaler')
    const due: { object: RenderedObject; isNew: boolean }[] = []
    for (const rendered of objects) {
      const object = isScaled ? this.#withLiveReplicas(rendered) : rendered
      if (this.#isRight(object)) continue
      const live = await this.#find(object, plan)
      const tried = await this.#send(object, true)
      if (live !== undefined && contentOf(tried) === contentOf(live)) this.#remember(object, live)
      else due.push({ object, isNew: live === undefined })
    }
    const changes: Change[] = []
    for (const { object, isNew } of due) {
      this.#remember(object, await this.#send(object, false))
      const { kind, metadata } = object
      changes.push({ kind, name: metadata.name, change: isNew ? 'created' : 'updated' })
    }
    return [...changes, ...(await this.remove(plan.uid, objects))]
  }

  /** Removes what belongs to a Gateway, by its uid, and is not among `kept`. */
  async remove(uid: string, kept: readonly RenderedObject[] = []): Promise<Change[]> {
    const keys = new Set(kept.map(keyOf))
    const changes: Change[] = []
    for (const { kind, object } of this.#options.owned.ofOwner(uid)) {
      const { namespace = '', name, deletionTimestamp } = object.metadata
      if (deletionTimestamp !== undefined || keys.has(objectKey({ kind, namespace, name })))
        continue
      await this.#delete(kind, object)
      changes.push({ kind, name, change: 'deleted' })
    }
    return changes
  }

  #isRight(object: RenderedObject): boolean {
    const key = keyOf(object)
    const made = this.#made.get(key)
    const live = this.#options.owned.get(key)
    if (made === undefined || live === undefined) return false
    if (live.metadata.deletionTimestamp !== undefined) return false
    return made.wanted === canonicalJson(object) && made.content === contentOf(live)
  }

  #remember(object: RenderedObject, live: KubeObject): void {
    this.#made.set(keyOf(object), { wanted: canonicalJson(object), content: contentOf(live) })
  }

  /** An autoscaler decides how many there are, once they are there. */
  #withLiveReplicas(object: RenderedObject): RenderedObject {
    const spec = object.spec as { readonly replicas?: number } | undefined
    if (object.kind !== 'Deployment' || spec?.replicas === undefined) return object
    const live = this.#options.owned.get(keyOf(object))?.spec as typeof spec
    return live?.replicas === undefined
      ? object
      : { ...object, spec: { ...spec, replicas: live.replicas } }
  }

  /** The object as it is, which must be this Gateway's. */
  async #find(object: RenderedObject, plan: ProxyPlan): Promise<KubeObject | undefined> {
    const live = this.#options.owned.get(keyOf(object)) ?? (await this.#get(object))
    if (live === undefined) return undefined
    const { kind, metadata } = object
    const what = `${kind} ${metadata.namespace}/${metadata.name}`
    const owner = controllerOf(live)
    if (owner?.uid === plan.uid) {
      if (live.metadata.deletionTimestamp === undefined) return live
      throw new InTheWayError(`${what} is being removed`, true)
    }
    if (owner?.kind === 'Gateway' && owner.name === plan.name) {
      // The cluster's garbage collection would remove it too, some time.
      await this.#delete(kind as OwnedKind, live)
      throw new InTheWayError(`${what} is of an earlier Gateway of this name`, true)
    }
    const advice = 'rename the Gateway, or remove the object'
    throw new InTheWayError(`${what} exists and is not this Gateway's: ${advice}`, false)
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
      // Gone already, or another one by now, which the watch will tell.
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

function refused(kind: string, name: string, error: unknown): RefusedObjectError {
  const cause = error instanceof KubeError ? error : new KubeError(0, '', String(error))
  return new RefusedObjectError(kind, name, cause)
}
