/** The outputs of all derivations: published resources, deployments and statuses. */

import type { ObjectKey } from '../../ground/model/names.ts'
import type { Resource, ResourceKey, VersionedResource } from '../../ground/model/resources.ts'
import { contentVersion } from '../wire/content-version.ts'
import type { Deployment } from './deployment/plan.ts'
import { hasSameContent, shareContent } from './same-content.ts'
import { SumDigest } from './sum-digest.ts'

/** A published resource. Its version is computed when it is first needed. */
class PublishedOutput {
  readonly resource: Resource
  /** Whose resource it is: a listener may move between Gateways that are derived in any order. */
  owner: object
  #version: string | undefined

  constructor(resource: Resource, owner: object) {
    this.resource = resource
    this.owner = owner
  }

  get version(): string {
    this.#version ??= contentVersion(this.resource)
    return this.#version
  }
}

export class OutputStore {
  readonly #outputs = new Map<ResourceKey, PublishedOutput>()
  readonly #digest = new SumDigest<{ readonly version: string }>(
    (key, { version }) => `${key}\0${version}`,
  )
  /** The newest resource of each type, with which a new one shares its equal parts. */
  readonly #newest = new Map<Resource['type'], Resource>()
  readonly #deployments = new Map<ObjectKey, Deployment>()
  #changedDeployments = new Set<ObjectKey>()
  #changed = new Map<ResourceKey, PublishedOutput | undefined>()
  /** Keys of changes that `newChanges` has not returned. */
  #newKeys: ResourceKey[] = []
  #statuses = new Map<ObjectKey, Readonly<Record<string, unknown>> | undefined>()

  /** Digest over keys and versions of all resources and deployments. */
  get digest(): string {
    return this.#digest.toString()
  }

  /** How often resources and deployments changed. */
  get changes(): number {
    return this.#digest.changes
  }

  /** All resources, with their versions. */
  resources(): VersionedResource[] {
    return [...this.#outputs.values()].map(versioned)
  }

  /**
   * Replaces the resources `before` of an owner by `after`. Returns `after`, with the stored objects in
   * place of those that have the same content.
   */
  replaceResources(
    owner: object,
    before: readonly Resource[],
    after: readonly Resource[],
  ): readonly Resource[] {
    if (!hasSameKeys(before, after)) {
      const kept = new Set(after.map(({ key }) => key))
      for (const { key } of before) {
        if (!kept.has(key) && this.#outputs.get(key)?.owner === owner) this.#remove(key)
      }
    }
    const stored = after.map((resource) => this.#put(resource, owner))
    return stored.every((resource, at) => resource === after[at]) ? after : stored
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
    if (hasSameContent(before, after)) return
    this.#digest.set(`deployment/${key}`, after && { version: contentVersion(after) })
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
  takeChanges(): ReadonlyMap<ResourceKey, VersionedResource | undefined> {
    const changed = this.#changed
    this.#changed = new Map()
    this.#newKeys = []
    return new Map([...changed].map(([key, output]) => [key, output && versioned(output)]))
  }

  /**
   * Resources that `takeChanges` will return unless they change again, without those of earlier calls. A resource
   * that was returned and has changed since is not returned again.
   */
  newChanges(): VersionedResource[] {
    const outputs = this.#newKeys.map((key) => this.#changed.get(key))
    this.#newKeys = []
    return outputs.flatMap((output) => (output === undefined ? [] : [versioned(output)]))
  }

  /** Drops what `takeChanges` and `takeDeployments` would return. */
  dropChanges(): void {
    this.#changed.clear()
    this.#newKeys = []
    this.#changedDeployments.clear()
  }

  /** Statuses decided since the last call; undefined for objects that have no status any more. */
  takeStatuses(): Map<ObjectKey, Readonly<Record<string, unknown>> | undefined> {
    const statuses = this.#statuses
    if (statuses.size > 0) this.#statuses = new Map()
    return statuses
  }

  #put(resource: Resource, owner: object): Resource {
    const before = this.#outputs.get(resource.key)
    if (before !== undefined && hasSameContent(before.resource, resource)) {
      before.owner = owner
      return before.resource
    }
    // Many resources are the first of their object, and have equal parts with those of other objects.
    if (before === undefined) {
      shareContent(this.#newest.get(resource.type), resource, true)
      this.#newest.set(resource.type, resource)
    }
    const output = new PublishedOutput(resource, owner)
    this.#digest.set(resource.key, output)
    this.#outputs.set(resource.key, output)
    this.#noteChange(resource.key, output)
    return resource
  }

  #remove(key: ResourceKey): void {
    this.#digest.set(key, undefined)
    this.#outputs.delete(key)
    this.#noteChange(key, undefined)
  }

  #noteChange(key: ResourceKey, output: PublishedOutput | undefined): void {
    if (!this.#changed.has(key)) this.#newKeys.push(key)
    this.#changed.set(key, output)
  }
}

/** The version is hashed when it is first read: replays of a log read few of them. */
const versioned = (output: PublishedOutput): VersionedResource => ({
  resource: output.resource,
  get version() {
    return output.version
  },
})

/** A shortcut for the usual case that an object's resources keep their keys. */
function hasSameKeys(a: readonly Resource[], b: readonly Resource[]): boolean {
  if (a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) if (a[at]?.key !== b[at]?.key) return false
  return true
}
