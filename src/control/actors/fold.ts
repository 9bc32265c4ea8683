/**
 * The fold derives desired state and statuses from recorded events. It is pure (no network, no clock, no
 * randomness): for one fold version, the same log gives byte-identical results on any machine, no matter in
 * which batches it is read.
 */
import { EpochGate, type SluiceEvent } from '../../../events/index.ts'
import { type FetchedKeys, keySetInput } from '../../ground/model/key-sets.ts'
import {
  compareText,
  type ObjectKey,
  type ObjectRef,
  objectKey,
  parseObjectKey,
} from '../../ground/model/names.ts'
import type { DesiredDelta, VersionedResource } from '../../ground/model/resources.ts'
import type { Deployment } from '../desired/deployment/plan.ts'
import { gatewayApiVersions } from '../desired/derive/gateway-class.ts'
import { unreadKindsInput } from '../desired/derive/inference-pool.ts'
import type { Graph } from '../desired/graph.ts'
import { generationOf, isSameVersion } from '../desired/object-state.ts'
import { type Status, StatusStore } from '../desired/status-store.ts'
import { type ConnectedProxy, Delivery } from './delivery.ts'
import type { PendingTimer } from './delivery-timers.ts'
import { DeploymentReports } from './deployment-reports.ts'
import { DynamicApiKeys, type StoredDynamicKey } from './dynamic-api-keys.ts'
import {
  absentResource,
  nextResource,
  type ResourceSnapshot,
  toResourceInput,
} from './resource.machine.ts'
import { StatusCauses } from './status-causes.ts'

/** Must change if the same log gives other results. Digests are comparable within one version only. */
export const foldVersion = '14'

/** An event with its position in the log. */
export interface RecordedEvent {
  readonly position: number
  readonly event: SluiceEvent
  /** Whether it comes from an export that leaves out credentials of the event's object. */
  readonly redacted?: true
}

export interface StatusChange {
  readonly ref: ObjectRef
  readonly generation: number
  readonly status: Status
}

/** Everything that changed since the last call of `takeChange`. */
export interface FoldChange {
  readonly delta: DesiredDelta
  readonly statuses: readonly StatusChange[]
  /** Objects that no longer have a status of ours: they were deleted, or belong to another controller. */
  readonly dropped: readonly ObjectRef[]
  readonly causes: ReturnType<StatusCauses['take']>
  /** Gateways whose deployment has changed. */
  readonly deployments: readonly ObjectKey[]
  /** Whether there were events other than delivery events, so that proxies should get the new position. */
  readonly observed: boolean
}

export interface Digests {
  readonly desired: string
  readonly status: string
}

/** The state of a fold as JSON. */
export interface FoldSnapshot {
  readonly position: number
  readonly actors: readonly (readonly [ObjectKey, unknown])[]
  readonly delivery: unknown
  readonly keySets: readonly (readonly [uri: string, FetchedKeys])[]
  readonly deployments: unknown
  /** Kinds that a setting excludes. Not set before a listing. */
  readonly unread?: readonly string[]
  readonly definitions?: string
  /** Not set if there are none. */
  readonly dynamicKeys?: readonly StoredDynamicKey[]
  readonly statuses: readonly (readonly [ObjectKey, Status])[]
  /** Epoch of the newest lease holder. Not set if there was none. */
  readonly epoch?: number
}

export class Fold {
  readonly graph: Graph
  readonly #actors = new Map<ObjectKey, ResourceSnapshot>()
  #delivery: Delivery
  #deployments: DeploymentReports
  readonly #dynamicKeys: DynamicApiKeys
  #statusStore = new StatusStore()
  /** URI -> last fetched key set, kept until another one is fetched. */
  readonly #keySets = new Map<string, FetchedKeys>()
  #unread: readonly string[] | undefined
  #definitions: string | undefined
  #gate = new EpochGate()
  #position = 0
  #changedAt = 0
  #observed = false
  #statuses = new Map<ObjectKey, StatusChange>()
  #dropped = new Set<ObjectKey>()
  readonly #causes = new StatusCauses()

  /** `graph` comes from `desired/derivations.ts`; a fold owns its graph. */
  constructor(graph: Graph) {
    this.graph = graph
    this.#delivery = new Delivery(graph)
    this.#deployments = new DeploymentReports(graph)
    this.#dynamicKeys = new DynamicApiKeys(graph)
  }

  /** Position of the last event that was folded; 0 before the first. */
  get position(): number {
    return this.#position
  }

  /** Epoch of the newest lease holder; 0 before any. Observations of lower epochs are ignored. */
  get epoch(): number {
    return this.#gate.epoch
  }

  /** Position of the last event that changed a resource, a deployment or a status. */
  get changedAt(): number {
    return this.#changedAt
  }

  /** Hashes everything that changed since the last call. */
  digests(): Digests {
    return { desired: this.graph.outputs.digest, status: this.#statusStore.digest }
  }

  resources(): readonly VersionedResource[] {
    return this.graph.outputs.resources()
  }

  statusOf(ref: ObjectRef): Status | undefined {
    return this.#statusStore.get(objectKey(ref))
  }

  /** The status of an object, and the version of the object (valid or refused) that the status is about. */
  decidedOf(ref: ObjectRef): {
    readonly status: Status | undefined
    readonly of: { readonly uid: string; readonly generation: number } | undefined
  } {
    const state = this.graph.object(objectKey(ref))
    const of = state && {
      uid: state.uid,
      generation: state.refused?.generation ?? state.generation,
    }
    return { status: this.statusOf(ref), of }
  }

  /** Folds one event. Events at or below the current position are ignored. */
  apply({ position, event }: RecordedEvent): void {
    if (position <= this.#position) return
    this.#position = position
    if (!this.#gate.admits(event)) return
    const isFolded =
      this.#applyResource(event) ||
      this.#applyKeySet(event) ||
      this.#applyListing(event) ||
      this.#applyDefinitions(event) ||
      this.#dynamicKeys.apply(event) ||
      this.#deployments.apply(event) ||
      this.#delivery.apply(event)
    this.#delivery.settle(event.time)
    if (!isFolded) return
    const before = this.#changes
    this.graph.settle()
    this.#collectStatuses(event.time)
    if (this.#changes !== before) this.#changedAt = position
  }

  get #changes(): number {
    return this.graph.outputs.changes + this.#statusStore.changes
  }

  /** Returns what changed since the last call. */
  takeChange(): FoldChange {
    const upserted: VersionedResource[] = []
    const removed: string[] = []
    for (const [key, resource] of this.graph.outputs.takeChanges()) {
      if (resource === undefined) removed.push(key)
      else upserted.push(resource)
    }
    const statuses = [...this.#statuses.values()]
    const observed = this.#observed
    const dropped = [...this.#dropped].map(parseObjectKey)
    const causes = this.#causes.take()
    this.#statuses = new Map()
    this.#dropped.clear()
    this.#observed = false
    const deployments = [...this.graph.outputs.takeDeployments()]
    const delta = { sequence: this.#position, upserted, removed }
    return { delta, statuses, dropped, causes, deployments, observed }
  }

  /** New resources that `takeChange` will return unless they change again, without those of earlier calls. */
  newResources(): readonly VersionedResource[] {
    return this.graph.outputs.newChanges()
  }

  /** Drops what `takeChange` would return, which otherwise accumulates. */
  dropChange(): void {
    this.graph.outputs.dropChanges()
    this.#statuses.clear()
    this.#causes.clear()
    this.#dropped.clear()
    this.#observed = false
  }

  snapshot(): FoldSnapshot {
    return {
      position: this.#position,
      actors: [...this.#actors],
      delivery: this.#delivery.snapshot(),
      keySets: [...this.#keySets],
      deployments: this.#deployments.snapshot(),
      ...(this.#unread && { unread: this.#unread }),
      ...(this.#definitions !== undefined && { definitions: this.#definitions }),
      ...this.#dynamicKeys.snapshot(),
      statuses: this.#statusStore.entries(),
      ...(this.epoch > 0 && { epoch: this.epoch }),
    }
  }

  /**
   * Continues from a snapshot. A fold that has a state of the same log and fold version derives only what
   * differs. Afterwards every resource that differs counts as changed, and no status does.
   */
  restore(snapshot: FoldSnapshot): void {
    this.#forget()
    this.#statusStore.restore(snapshot.statuses)
    for (const [key, persisted] of snapshot.actors) {
      this.#setActor(key, persisted as ResourceSnapshot)
    }
    for (const { ref } of this.graph.objects()) {
      if (!this.#actors.has(objectKey(ref))) this.graph.removeObject(ref)
    }
    this.#delivery.restore(snapshot.delivery)
    for (const [uri, keys] of snapshot.keySets) this.#setKeys(uri, keys)
    this.#deployments.restore(snapshot.deployments)
    this.#setUnread(snapshot.unread)
    this.#setDefinitions(snapshot.definitions)
    this.#dynamicKeys.restore(snapshot.dynamicKeys)
    this.#position = snapshot.position
    this.#changedAt = snapshot.position
    this.#gate = new EpochGate(snapshot.epoch)
    this.graph.settle()
    this.#collectStatuses('1970-01-01T00:00:00.000Z')
    this.#statuses = new Map()
    this.#causes.clear()
    this.#dropped.clear()
    this.#observed = true
  }

  /** Forgets everything but the objects of the graph, and what was derived from them. */
  #forget(): void {
    for (const name of [...this.graph.inputs.keys()]) this.graph.setInput(name, undefined)
    this.#actors.clear()
    this.#keySets.clear()
    this.#statusStore = new StatusStore()
    this.#delivery = new Delivery(this.graph)
    this.#deployments = new DeploymentReports(this.graph)
  }

  /** The deployments by Gateway. */
  deployments(): ReadonlyMap<ObjectKey, Deployment> {
    return this.graph.outputs.deployments
  }

  /** Why the cluster refuses the objects of a Gateway; undefined if it does not refuse them. */
  deploymentProblem(key: ObjectKey): string | undefined {
    return this.#deployments.problem(key)
  }

  /** The proxies that are connected, by name. */
  proxies(): readonly ConnectedProxy[] {
    return this.#delivery.proxies()
  }

  /** The pending timers; the same array until they change. */
  timers(): readonly PendingTimer[] {
    return this.#delivery.timers()
  }

  /** Every object that has a status, and that status; sorted by kind, namespace and name. */
  statuses(): readonly (readonly [ObjectRef, Status])[] {
    return this.#statusStore
      .entries()
      .sort(([a], [b]) => compareText(a, b))
      .map(([key, status]) => [parseObjectKey(key), status])
  }

  #applyResource(event: SluiceEvent): boolean {
    const input = toResourceInput(event, this.#position)
    if (input === undefined) return false
    this.#observed = true
    const { kind, namespace, name } = event.data as ObjectRef
    const ref = { kind, namespace, name }
    const key = objectKey(ref)
    const before = this.#actors.get(key) ?? absentResource(ref)
    const after = nextResource(before, input)
    if (after !== before) this.#setActor(key, after)
    const isFirst = before.context.state?.uid !== after.context.state?.uid
    if (isFirst && 'programmed' in event.data && event.data.programmed !== undefined) {
      this.#delivery.remember(key, event.data.programmed)
    }
    return after !== before
  }

  #applyKeySet(event: SluiceEvent): boolean {
    if (event.type !== 'dev.sluice.jwks.fetched.v1') return false
    const { uri, digest, keySet } = event.data
    if (this.#keySets.get(uri)?.digest === digest) return false
    this.#observed = true
    this.#setKeys(uri, { digest, keySet })
    return true
  }

  #applyListing(event: SluiceEvent): boolean {
    if (event.type !== 'dev.sluice.relist.started.v1') return false
    const { unread } = event.data
    if (unread === undefined || unread.join() === this.#unread?.join()) return false
    this.#observed = true
    this.#setUnread(unread)
    return true
  }

  #setUnread(kinds: readonly string[] | undefined): void {
    this.#unread = kinds
    this.graph.setInput(unreadKindsInput, kinds)
  }

  #setKeys(uri: string, keys: FetchedKeys): void {
    this.#keySets.set(uri, keys)
    this.graph.setInput(keySetInput(uri), keys)
  }

  #applyDefinitions({ type, data }: SluiceEvent): boolean {
    if (type !== 'dev.sluice.definitions.observed.v1') return false
    this.#setDefinitions(data.versions.join(','))
    return true
  }

  #setDefinitions(versions: string | undefined): void {
    this.#definitions = versions
    this.graph.setInput(gatewayApiVersions, versions)
  }

  /** Versions of the Gateway API in the cluster, joined by commas; undefined if not observed yet. */
  get definitions(): string | undefined {
    return this.#definitions
  }

  /** Digest of a key set as last fetched; undefined before the first fetch. */
  keySetDigest(uri: string): string | undefined {
    return this.#keySets.get(uri)?.digest
  }

  #setActor(key: ObjectKey, snapshot: ResourceSnapshot): void {
    const { state } = snapshot.context
    const before = this.graph.object(key)
    if (state === undefined) {
      this.#actors.delete(key)
      this.graph.removeObject(parseObjectKey(key))
    } else {
      this.#actors.set(key, snapshot)
      if (!isSameVersion(before, state)) this.graph.setObject(state)
    }
    this.#delivery.noteObject(key, before, state)
    this.#deployments.noteObject(key, state)
  }

  /** Drops the status of an object, and an earlier decision of the batch about it. */
  #dropStatus(key: ObjectKey): void {
    if (this.#statusStore.drop(key)) {
      this.#dropped.add(key)
      this.#causes.note(key, this.#position)
    }
    this.#statuses.delete(key)
  }

  #collectStatuses(time: string): void {
    for (const [key, decided] of this.graph.outputs.takeStatuses()) {
      if (decided === undefined) {
        this.#dropStatus(key)
        continue
      }
      const status = this.#statusStore.decide(key, decided, time)
      if (this.#dropped.size > 0) this.#dropped.delete(key)
      const state = this.graph.object(key)
      if (status === undefined || state === undefined) continue
      this.#causes.note(key, this.#position)
      this.#statuses.set(key, { ref: state.ref, generation: generationOf(state), status })
    }
  }
}
