/**
 * The fold derives desired state and statuses from recorded events. It is pure (no network, no clock, no
 * randomness): for one fold version, the same log gives byte-identical results on any machine, no matter in
 * which batches it is read.
 */
import { EpochGate, type JwksFetchedData, type SluiceEvent } from '../../../events/index.ts'
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
import { isSameVersion, type ObservedObject } from '../desired/object-state.ts'
import { shareContent } from '../desired/same-content.ts'
import type { Status } from '../desired/status-store.ts'
import { type ConnectedProxy, Delivery } from './delivery.ts'
import { JoinedTimers, type PendingTimer } from './delivery-timers.ts'
import { DeploymentReports } from './deployment-reports.ts'
import type { EndedSessions } from './ended-sessions.ts'
import type { Digests, FoldSnapshot } from './fold-snapshot.ts'
import { LogInputs } from './log-inputs.ts'
import type { PinState } from './pin.ts'
import {
  absentResource,
  nextResource,
  type ResourceSnapshot,
  toResourceInput,
} from './resource.machine.ts'
import { StatusChanges } from './status-changes.ts'
import { VersionStages } from './version-stages.ts'

export type { Digests, FoldSnapshot } from './fold-snapshot.ts'

/** Must change if the same log gives other results. Digests are comparable within one version only. */
export const foldVersion = '20'

/** An event with its position in the log. */
export interface RecordedEvent {
  readonly position: number
  readonly event: SluiceEvent
  /** Whether it comes from an export that leaves out credentials of the event's object. */
  readonly redacted?: true
}

/** Everything that changed since the last call of `takeChange`. */
export interface FoldChange extends ReturnType<StatusChanges['take']> {
  readonly delta: DesiredDelta
  /** Gateways whose deployment has changed. */
  readonly deployments: readonly ObjectKey[]
  /** Whether there were events other than delivery events, so that proxies should get the new position. */
  readonly observed: boolean
}

export class Fold {
  readonly graph: Graph
  readonly #actors = new Map<ObjectKey, ResourceSnapshot>()
  #delivery: Delivery
  #deployments: DeploymentReports
  /** The object of each kind that was added last. */
  readonly #newestOfKind = new Map<string, ObservedObject>()
  readonly #inputs: LogInputs
  readonly #stages = new VersionStages({
    get: (key) => this.#actors.get(key),
    set: (key, snapshot) => this.#setActor(key, snapshot),
  })
  /** Changes that wait until they are judged or approved. */
  readonly changes = this.#stages.changes
  /** Changes that are delivered in steps. */
  readonly rollouts = this.#stages.rollouts
  readonly #statuses: StatusChanges
  /** URI -> last fetched key set, kept until another one is fetched. */
  readonly #keySets = new Map<string, FetchedKeys>()
  #unread: readonly string[] | undefined
  #definitions: string | undefined
  #gate = new EpochGate()
  #position = 0
  #changedAt = 0
  readonly #timers = new JoinedTimers()
  #observed = false

  /** `graph` comes from `desired/derivations.ts`; a fold owns its graph. */
  constructor(graph: Graph) {
    this.graph = graph
    this.#delivery = new Delivery(graph)
    this.#deployments = new DeploymentReports(graph)
    this.#inputs = new LogInputs(graph)
    this.#statuses = new StatusChanges(graph)
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
    return { desired: this.graph.outputs.digest, status: this.#statuses.store.digest }
  }

  resources(): readonly VersionedResource[] {
    return this.graph.outputs.resources()
  }

  statusOf(ref: ObjectRef): Status | undefined {
    return this.#statuses.store.get(objectKey(ref))
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
      this.#applyStages(event) ||
      this.#applyKeySet(event) ||
      this.#applyListing(event) ||
      this.#applyDefinitions(event) ||
      this.#inputs.apply(event) ||
      this.#deployments.apply(event) ||
      this.#delivery.apply(event)
    this.#delivery.settle(event.time)
    if (!isFolded) return
    const before = this.#changes
    this.graph.settle()
    this.#statuses.collect(position, event.time)
    if (this.#changes !== before) this.#changedAt = position
  }

  /**
   * Makes this fold a candidate: puts the newest versions of these objects in force, even if they wait for a judgement,
   * an approval or a rollout. A candidate is only compared, never published.
   */
  putInForce(keys: Iterable<ObjectKey>): void {
    for (const key of keys) this.#stages.putInForce(key)
    this.graph.settle()
    this.#statuses.collect(this.#position, '1970-01-01T00:00:00.000Z')
  }

  get #changes(): number {
    return this.graph.outputs.changes + this.#statuses.store.changes
  }

  /** Returns what changed since the last call. */
  takeChange(): FoldChange {
    const upserted: VersionedResource[] = []
    const removed: string[] = []
    for (const [key, resource] of this.graph.outputs.takeChanges()) {
      if (resource === undefined) removed.push(key)
      else upserted.push(resource)
    }
    const observed = this.#observed
    this.#observed = false
    const deployments = [...this.graph.outputs.takeDeployments()]
    const delta = { sequence: this.#position, upserted, removed }
    return { delta, ...this.#statuses.take(), deployments, observed }
  }

  /** New resources that `takeChange` will return unless they change again, without those of earlier calls. */
  newResources(): readonly VersionedResource[] {
    return this.graph.outputs.newChanges()
  }

  /** Drops what `takeChange` would return, which otherwise accumulates. */
  dropChange(): void {
    this.graph.outputs.dropChanges()
    this.#statuses.dropBatch()
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
      ...this.#inputs.snapshot(),
      ...this.#stages.snapshot(),
      statuses: this.#statuses.store.entries(),
      ...(this.epoch > 0 && { epoch: this.epoch }),
    }
  }

  /**
   * Continues from a snapshot. A fold that has a state of the same log and fold version derives only what
   * differs. Afterwards every resource that differs counts as changed, and no status does.
   */
  restore(snapshot: FoldSnapshot): void {
    this.#forget()
    this.#statuses.restore(snapshot.statuses)
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
    this.#inputs.restore(snapshot)
    this.#stages.restore(snapshot)
    this.#position = snapshot.position
    this.#changedAt = snapshot.position
    this.#gate = new EpochGate(snapshot.epoch)
    this.graph.settle()
    this.#statuses.collect(this.#position, '1970-01-01T00:00:00.000Z')
    this.#statuses.dropBatch()
    this.#observed = true
  }

  /** Forgets everything but the objects of the graph, and what was derived from them. */
  #forget(): void {
    for (const name of [...this.graph.inputs.keys()]) this.graph.setInput(name, undefined)
    this.#actors.clear()
    this.#stages.forget()
    this.#keySets.clear()
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

  /** Sessions and tokens that are refused. */
  get endedSessions(): EndedSessions {
    return this.#inputs.ended
  }

  /** The proxies that are connected, by name. */
  proxies(): readonly ConnectedProxy[] {
    return this.#delivery.proxies()
  }

  /** The pending timers; the same array until they change. */
  timers(): readonly PendingTimer[] {
    return this.#timers.join(this.#delivery.timers(), this.#stages.pin.timers)
  }

  /** The configuration that an operator holds in force; undefined if none. */
  get pin(): PinState | undefined {
    return this.#stages.pin.state
  }

  /** The newest versions of the objects of which the pin holds another one. */
  get heldBack(): ReadonlyMap<ObjectKey, ResourceSnapshot> {
    return this.#stages.pin.newest
  }

  /** Every object that has a status, and that status; sorted by kind, namespace and name. */
  statuses(): readonly (readonly [ObjectRef, Status])[] {
    return this.#statuses.store
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
    const before = this.#stages.newest(key) ?? absentResource(ref)
    const after = nextResource(before, input)
    if (after !== before) this.#stages.put(key, after)
    const isFirst = before.context.state?.uid !== after.context.state?.uid
    if (isFirst && 'programmed' in event.data && event.data.programmed !== undefined) {
      this.#delivery.remember(key, event.data.programmed)
    }
    return after !== before
  }

  #applyStages(event: SluiceEvent): boolean {
    if (!this.#stages.apply(event, this.#position)) return false
    this.#observed = true
    return true
  }

  #applyKeySet(event: SluiceEvent): boolean {
    const { type, data } = event
    if (type === 'dev.sluice.jwks.fetched.v1') return this.#fetched(data, data.keySet)
    return type === 'dev.sluice.document.fetched.v1' && this.#fetched(data, data.document)
  }

  #fetched(
    { uri, digest }: Pick<JwksFetchedData, 'uri' | 'digest'>,
    keySet: FetchedKeys['keySet'],
  ): boolean {
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

  /** Shares equal parts. Which object is the newest depends on the restored snapshot, so members keep their order. */
  #shareObject(object: ObservedObject): void {
    shareContent(this.#newestOfKind.get(object.kind), object, true)
    this.#newestOfKind.set(object.kind, object)
  }

  #setActor(key: ObjectKey, snapshot: ResourceSnapshot): void {
    const { state } = snapshot.context
    const before = this.graph.object(key)
    if (state?.object !== undefined && before === undefined) this.#shareObject(state.object)
    if (state === undefined) {
      this.#actors.delete(key)
      this.graph.removeObject(parseObjectKey(key))
    } else {
      this.#actors.set(key, snapshot)
      if (!isSameVersion(before, state)) this.graph.setObject(state, key)
    }
    this.#stages.noteObject(key, state)
    this.#delivery.noteObject(key, before, state)
    this.#deployments.noteObject(key, state)
  }
}
