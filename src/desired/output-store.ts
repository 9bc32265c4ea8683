/**
 * The outputs of all derivations: published resources and statuses, each with an incremental digest
 * (the sum of the hashes of its entries, so that one change costs one hash).
 */
import { hash } from 'node:crypto'
import { contentVersion } from '../base/content-version.ts'
import { hasSameContent } from '../base/same-content.ts'
import type { ObjectKey } from '../model/names.ts'
import type { Resource, ResourceKey, VersionedResource } from '../model/resources.ts'
import type { Deployment } from './deployment/index.ts'

/** First 128 bits of the SHA-256 of an entry of a digest, in hex. */
export const entryHash = (entry: string): string => hash('sha256', entry).slice(0, 32)

/** A sum of 64 bits of each entry's hash; order does not matter, and entries can be taken out again. */
export class SumDigest {
  #sum = 0n
  #text: string | undefined

  add(entryHash: string): void {
    this.#sum = BigInt.asUintN(64, this.#sum + partOf(entryHash))
    this.#text = undefined
  }

  remove(entryHash: string): void {
    this.#sum = BigInt.asUintN(64, this.#sum - partOf(entryHash))
    this.#text = undefined
  }

  /** 16 hex digits; the same text until something changes. */
  toString(): string {
    this.#text ??= this.#sum.toString(16).padStart(16, '0')
    return this.#text
  }
}

const partOf = (entryHash: string) => BigInt(`0x${entryHash.slice(0, 16)}`)

export class OutputStore {
  readonly resources = new Map<ResourceKey, VersionedResource>()
  /** Who gave a resource last: a listener may move from one Gateway to another in either order. */
  readonly #owners = new Map<ResourceKey, string>()
  readonly #digest = new SumDigest()
  readonly #deployments = new Map<ObjectKey, Deployment>()
  #changedDeployments = new Set<ObjectKey>()
  /** Of each resource in the digest. */
  readonly #hashes = new Map<ResourceKey, string>()
  #changed = new Map<ResourceKey, VersionedResource | undefined>()
  #statuses = new Map<ObjectKey, Readonly<Record<string, unknown>> | undefined>()

  /** Digest of all resources and of all that is to be deployed: keys and versions. */
  get digest(): string {
    return this.#digest.toString()
  }

  /** Takes what `owner` gives in place of what it gave before. */
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

  /** The decided status of an object, to be collected by `takeStatuses`. */
  replaceStatus(key: ObjectKey, status: Readonly<Record<string, unknown>> | undefined): void {
    this.#statuses.set(key, status)
  }

  /** What is to be deployed for an object in place of what was; undefined where nobody says. */
  replaceDeployment(
    key: ObjectKey,
    before: Deployment | undefined,
    after: Deployment | undefined,
  ): void {
    if (before === after) return
    const [old, fresh] = [before, after].map((one) => one && contentVersion(one))
    if (old === fresh) return
    if (old !== undefined) this.#digest.remove(entryHash(`deployment/${key}\0${old}`))
    if (fresh !== undefined) this.#digest.add(entryHash(`deployment/${key}\0${fresh}`))
    if (after === undefined) this.#deployments.delete(key)
    else this.#deployments.set(key, after)
    this.#changedDeployments.add(key)
  }

  /** What is to be deployed, by object. */
  get deployments(): ReadonlyMap<ObjectKey, Deployment> {
    return this.#deployments
  }

  /** Objects for which something else is to be deployed than at the last call. */
  takeDeployments(): ReadonlySet<ObjectKey> {
    const changed = this.#changedDeployments
    this.#changedDeployments = new Set()
    return changed
  }

  /** What changed since the last call; a key without a resource is gone. */
  takeChanges(): Map<ResourceKey, VersionedResource | undefined> {
    const changed = this.#changed
    this.#changed = new Map()
    return changed
  }

  /** Statuses decided since the last call; undefined where the object has none any more. */
  takeStatuses(): Map<ObjectKey, Readonly<Record<string, unknown>> | undefined> {
    const statuses = this.#statuses
    this.#statuses = new Map()
    return statuses
  }

  #put(resource: Resource): void {
    const before = this.resources.get(resource.key)
    // Most of what is derived again comes out as it was, and to look is much cheaper than to hash.
    if (before !== undefined && hasSameContent(before.resource, resource)) return
    const version = contentVersion(resource)
    if (before?.version === version) return
    this.#takeOut(resource.key)
    const hash = entryHash(`${resource.key}\0${version}`)
    this.#hashes.set(resource.key, hash)
    this.#digest.add(hash)
    const entry = { version, resource }
    this.resources.set(resource.key, entry)
    this.#changed.set(resource.key, entry)
  }

  #remove(key: ResourceKey): void {
    const before = this.resources.get(key)
    if (before === undefined) return
    this.#takeOut(key)
    this.resources.delete(key)
    this.#owners.delete(key)
    this.#changed.set(key, undefined)
  }

  #takeOut(key: ResourceKey): void {
    const hash = this.#hashes.get(key)
    if (hash !== undefined) this.#digest.remove(hash)
    this.#hashes.delete(key)
  }
}

/** As nearly always, where an object has changed. */
function hasSameKeys(a: readonly Resource[], b: readonly Resource[]): boolean {
  if (a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) if (a[at]?.key !== b[at]?.key) return false
  return true
}
