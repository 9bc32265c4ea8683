/**
 * The outputs of all derivations: published resources and statuses. Digests are the sum of the hashes of
 * all entries, so a change costs only one hash.
 */
import { hash } from 'node:crypto'
import { contentVersion } from '../base/content-version.ts'
import { hasSameContent } from '../base/same-content.ts'
import type { ObjectKey } from '../model/names.ts'
import type { Resource, ResourceKey, VersionedResource } from '../model/resources.ts'
import type { Deployment } from './deployment/plan.ts'

/** The sum of 64-bit hashes of all entries (key and content). It does not depend on their order. */
export class SumDigest {
  readonly #parts = new Map<string, bigint>()
  #sum = 0n
  #text: string | undefined

  /** Sets the content of a key; undefined removes it. Returns false if nothing changed. */
  set(key: string, content: string | undefined): boolean {
    const before = this.#parts.get(key)
    const part = content === undefined ? undefined : partOf(`${key}\0${content}`)
    if (part === before) return false
    if (part === undefined) this.#parts.delete(key)
    else this.#parts.set(key, part)
    this.#sum = BigInt.asUintN(64, this.#sum + (part ?? 0n) - (before ?? 0n))
    this.#text = undefined
    return true
  }

  /** The digest as 16 hex digits. Returns the same text until something changes. */
  toString(): string {
    this.#text ??= this.#sum.toString(16).padStart(16, '0')
    return this.#text
  }
}

const partOf = (entry: string) => BigInt(`0x${hash('sha256', entry).slice(0, 16)}`)

export class OutputStore {
  readonly resources = new Map<ResourceKey, VersionedResource>()
  /** Last owner of each resource: a listener may move between Gateways that are derived in any order. */
  readonly #owners = new Map<ResourceKey, string>()
  readonly #digest = new SumDigest()
  readonly #deployments = new Map<ObjectKey, Deployment>()
  #changedDeployments = new Set<ObjectKey>()
  #changed = new Map<ResourceKey, VersionedResource | undefined>()
  #statuses = new Map<ObjectKey, Readonly<Record<string, unknown>> | undefined>()

  /** Digest over keys and versions of all resources and deployments. */
  get digest(): string {
    return this.#digest.toString()
  }

  /** Replaces the resources `before` of an owner by `after`. */
  replaceResources(owner: string, before: readonly Resource[], after: readonly Resource[]): void {
    if (!hasSameKeys(before, after)) {
      const kept = new Set(after.map(({ key }) => key))
      for (const { key } of before) {
        if (!kept.has(key) && this.#owners.get(key) === owner) this.#remove(key)
      }
    }
    for (const resource of after) {
      this.#owners.set(resource.key, owner)
      this.#put(resource)
    }
  }

  /** Stores the status that was decided for an object, until `takeStatuses` collects it. */
  replaceStatus(key: ObjectKey, status: Readonly<Record<string, unknown>> | undefined): void {
    this.#statuses.set(key, status)
  }

  /** Replaces what must be deployed for an object; undefined if no stage decides this. */
  replaceDeployment(
    key: ObjectKey,
    before: Deployment | undefined,
    after: Deployment | undefined,
  ): void {
    if (before === after) return
    const [old, fresh] = [before, after].map((one) => one && contentVersion(one))
    if (old === fresh) return
    this.#digest.set(`deployment/${key}`, fresh)
    if (after === undefined) this.#deployments.delete(key)
    else this.#deployments.set(key, after)
    this.#changedDeployments.add(key)
  }

  /** What must be deployed for each object. */
  get deployments(): ReadonlyMap<ObjectKey, Deployment> {
    return this.#deployments
  }

  /** Objects whose deployment changed since the last call. */
  takeDeployments(): ReadonlySet<ObjectKey> {
    const changed = this.#changedDeployments
    this.#changedDeployments = new Set()
    return changed
  }

  /** Resources that changed since the last call; undefined for those that were removed. */
  takeChanges(): Map<ResourceKey, VersionedResource | undefined> {
    const changed = this.#changed
    this.#changed = new Map()
    return changed
  }

  /** Statuses decided since the last call; undefined for objects that have no status any more. */
  takeStatuses(): Map<ObjectKey, Readonly<Record<string, unknown>> | undefined> {
    const statuses = this.#statuses
    this.#statuses = new Map()
    return statuses
  }

  #put(resource: Resource): void {
    const before = this.resources.get(resource.key)
    // Most derivations give the same result as before, and comparing is much cheaper than hashing.
    if (before !== undefined && hasSameContent(before.resource, resource)) return
    const version = contentVersion(resource)
    if (before?.version === version) return
    this.#digest.set(resource.key, version)
    const entry = { version, resource }
    this.resources.set(resource.key, entry)
    this.#changed.set(resource.key, entry)
  }

  #remove(key: ResourceKey): void {
    const before = this.resources.get(key)
    if (before === undefined) return
    this.#digest.set(key, undefined)
    this.resources.delete(key)
    this.#owners.delete(key)
    this.#changed.set(key, undefined)
  }
}

/** A shortcut for the usual case that an object's resources keep their keys. */
function hasSameKeys(a: readonly Resource[], b: readonly Resource[]): boolean {
  if (a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) if (a[at]?.key !== b[at]?.key) return false
  return true
}
