/**
 * The fold: recorded events in, desired state and statuses out. Pure given the log: no network, no
 * clock, no randomness, so that for one fold version the same log gives byte-identical results on
 * any machine, in whatever batches it is read.
 */
import type { SnapshotFrom } from 'xstate'
import { EpochGate, type SluiceEvent } from '../../events/index.ts'
import type { Deployment } from '../desired/deployment/index.ts'
import { gatewayApiVersions } from '../desired/derive/gateway-class.ts'
import { unreadKindsFact } from '../desired/derive/inference-pool.ts'
import type { Graph } from '../desired/graph.ts'
import type { ObjectState, ObservedObject } from '../desired/object-state.ts'
import type { Status } from '../desired/status-book.ts'
import { StatusBook } from '../desired/status-book.ts'
import { type FetchedKeys, keySetFact } from '../model/key-sets.ts'
import type { ObjectKey, ObjectRef } from '../model/names.ts'
import { compareText, objectKey, parseObjectKey } from '../model/names.ts'
import type { DesiredDelta, VersionedResource } from '../model/resources.ts'
import { type ConnectedProxy, Delivery } from './delivery.ts'
import type { PendingTimer } from './delivery-timers.ts'
import { DeploymentReports } from './deployment-reports.ts'
import type { ObservedAt, ResourceInput } from './resource.machine.ts'
import { absentResource, nextResource, resourceMachine } from './resource.machine.ts'

/** Changes with every change of what the fold makes of a log; digests compare only within one. */
export const foldVersion = '10'

/** An event with its place in the log. */
export interface RecordedEvent {
  readonly position: number
  readonly event: SluiceEvent
}

export interface StatusChange {
  readonly ref: ObjectRef
  readonly generation: number
  readonly status: Status
}

/** An object that had a status of ours and has none any more: it went, or it is not ours now. */
type StatusDrop = ObjectRef

/** Everything that changed since the last call. */
export interface FoldChange {
  readonly delta: DesiredDelta
  readonly statuses: readonly StatusChange[]
  readonly dropped: readonly StatusDrop[]
  /** Gateways for which something else is to be deployed than before. */
  readonly deployments: readonly ObjectKey[]
  /** Did anything but delivery events happen? Then proxies should hear of the new position. */
  readonly observed: boolean
}

export interface Digests {
  readonly desired: string
  readonly status: string
}

/** What a snapshot stores; JSON. */
export interface FoldSnapshot {
  readonly position: number
  readonly actors: readonly (readonly [ObjectKey, unknown])[]
  readonly delivery: unknown
  readonly keySets?: readonly (readonly [uri: string, FetchedKeys])[]
  readonly deployments?: unknown
  /** Kinds that a setting leaves out; absent where no listing said. */
  readonly unread?: readonly string[]
  readonly definitions?: string
  readonly statuses: readonly (readonly [ObjectKey, Status])[]
  /** Of the newest lease holder; absent where there was none. */
  readonly epoch?: number
}

type ResourceSnapshot = SnapshotFrom<typeof resourceMachine>

export class Fold {
  readonly graph: Graph
  readonly #actors = new Map<ObjectKey, ResourceSnapshot>()
  readonly #delivery: Delivery
  readonly #deployments: DeploymentReports
  readonly #book = new StatusBook()
  /** Last fetched, by URI; they stand until others are fetched, whoever asks for them. */
  readonly #keySets = new Map<string, FetchedKeys>()
  #unread: readonly string[] | undefined
  #definitions: string | undefined
  #gate = new EpochGate()
  #position = 0
  #observed = false
  #statuses = new Map<ObjectKey, StatusChange>()
  #dropped = new Set<ObjectKey>()

  /** `graph` comes from `desired/derivations.ts`; a fold owns its graph. */
  constructor(graph: Graph) {
    this.graph = graph
    this.#delivery = new Delivery(graph)
    this.#deployments = new DeploymentReports(graph)
  }

  /** Position of the last event that was folded; 0 before the first. */
  get position(): number {
    return this.#position
  }

  /** Of the newest lease holder; 0 before any. Observations of lower epochs do not count. */
  get epoch(): number {
    return this.#gate.epoch
  }

  digests(): Digests {
    return { desired: this.graph.outputs.digest, status: this.#book.digest }
  }

  resources(): readonly VersionedResource[] {
    return [...this.graph.outputs.resources.values()]
  }

  statusOf(ref: ObjectRef): Status | undefined {
    return this.#book.get(objectKey(ref))
  }

  /** The status with the version that it was decided of, valid or refused. */
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
    const seen = { sequence: position, timeMs: Date.parse(event.time) }
    const isFolded =
      this.#isResourceEvent(event, seen) ||
      this.#isKeySet(event) ||
      this.#isListing(event) ||
      this.#isAboutDefinitions(event) ||
      this.#deployments.apply(event) ||
      this.#delivery.apply(event)
    this.#delivery.settle(seen.timeMs)
    if (isFolded) {
      this.graph.settle()
      this.#collectStatuses(event.time)
    }
  }

  /** Takes what changed since the last call. */
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
    this.#statuses = new Map()
    this.#dropped.clear()
    this.#observed = false
    const deployments = [...this.graph.outputs.takeDeployments()]
    const delta = { sequence: this.#position, upserted, removed }
    return { delta, statuses, dropped, deployments, observed }
  }

  snapshot(): FoldSnapshot {
    return {
      position: this.#position,
      actors: [...this.#actors].map(([key, { value, context }]) => [key, { value, context }]),
      delivery: this.#delivery.snapshot(),
      keySets: [...this.#keySets],
      deployments: this.#deployments.snapshot(),
      ...(this.#unread && { unread: this.#unread }),
      ...(this.#definitions !== undefined && { definitions: this.#definitions }),
      statuses: this.#book.entries(),
      ...(this.epoch > 0 && { epoch: this.epoch }),
    }
  }

  /**
   * Continues from a snapshot of the same fold version; only on a fresh fold. Afterwards every
   * resource counts as changed, and no status does.
   */
  restore(snapshot: FoldSnapshot): void {
    this.#book.restore(snapshot.statuses)
    for (const [key, persisted] of snapshot.actors) {
      const { value, context } = persisted as Pick<ResourceSnapshot, 'value' | 'context'>
      this.#setActor(key, resourceMachine.resolveState({ value, context }))
    }
    this.#delivery.restore(snapshot.delivery)
    for (const [uri, keys] of snapshot.keySets ?? []) this.#setKeys(uri, keys)
    this.#deployments.restore(snapshot.deployments)
    this.#setUnread(snapshot.unread)
    this.#setDefinitions(snapshot.definitions)
    this.#position = snapshot.position
    this.#gate = new EpochGate(snapshot.epoch)
    this.graph.settle()
    this.#collectStatuses('1970-01-01T00:00:00.000Z')
    this.#statuses = new Map()
    this.#dropped.clear()
    this.#observed = true
  }

  /** What is to be deployed, by Gateway. */
  deployments(): ReadonlyMap<ObjectKey, Deployment> {
    return this.graph.outputs.deployments
  }

  /** Why the cluster does not take what a Gateway needs; undefined where it does. */
  deploymentProblem(key: ObjectKey): string | undefined {
    return this.#deployments.problem(key)
  }

  /** The proxies that are connected, by name. */
  proxies(): readonly ConnectedProxy[] {
    return this.#delivery.proxies()
  }

  /** What the fold wants to be told of by TimerFired; the same array until it changes. */
  timers(): readonly PendingTimer[] {
    return this.#delivery.timers()
  }

  /** Every object that has a status, with it; sorted by kind, namespace and name. */
  statuses(): readonly (readonly [ObjectRef, Status])[] {
    return this.#book
      .entries()
      .sort(([a], [b]) => compareText(a, b))
      .map(([key, status]) => [parseObjectKey(key), status])
  }

  #isResourceEvent(event: SluiceEvent, seen: ObservedAt): boolean {
    const input = toResourceInput(event, seen)
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

  #isKeySet(event: SluiceEvent): boolean {
    if (event.type !== 'dev.sluice.jwks.fetched.v1') return false
    const { uri, digest, keySet } = event.data
    if (this.#keySets.get(uri)?.digest === digest) return false
    this.#observed = true
    this.#setKeys(uri, { digest, keySet })
    return true
  }

  #isListing(event: SluiceEvent): boolean {
    if (event.type !== 'dev.sluice.relist.started.v1') return false
    const { unread } = event.data
    if (unread === undefined || unread.join() === this.#unread?.join()) return false
    this.#observed = true
    this.#setUnread(unread)
    return true
  }

  #setUnread(kinds: readonly string[] | undefined): void {
    this.#unread = kinds
    this.graph.setFact(unreadKindsFact, kinds)
  }

  #setKeys(uri: string, keys: FetchedKeys): void {
    this.#keySets.set(uri, keys)
    this.graph.setFact(keySetFact(uri), keys)
  }

  #isAboutDefinitions({ type, data }: SluiceEvent): boolean {
    if (type !== 'dev.sluice.definitions.observed.v1') return false
    this.#setDefinitions(data.versions.join(','))
    return true
  }

  #setDefinitions(versions: string | undefined): void {
    this.#definitions = versions
    this.graph.setFact(gatewayApiVersions, versions)
  }

  /** Versions of the Gateway API that the cluster was seen to have, with commas; undefined before. */
  get definitions(): string | undefined {
    return this.#definitions
  }

  /** Digest of a key set as last fetched; undefined before the first time. */
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
      this.graph.setObject(state)
    }
    this.#delivery.noteObject(key, before, state)
    this.#deployments.noteObject(key, state)
  }

  #collectStatuses(time: string): void {
    for (const [key, decided] of this.graph.outputs.takeStatuses()) {
      const had = this.#book.get(key) !== undefined
      const status = this.#book.decide(key, decided, time)
      if (decided !== undefined) this.#dropped.delete(key)
      else if (had) this.#dropped.add(key)
      // What was decided earlier in the batch for an object that is gone is no news any more.
      if (decided === undefined) this.#statuses.delete(key)
      if (status === undefined) continue
      const state = this.graph.object(key)
      const generation = state === undefined ? 0 : generationOf(state)
      this.#statuses.set(key, { ref: parseObjectKey(key), generation, status })
    }
  }
}

/** The generation that conditions speak of: of the refused version where there is no valid one. */
function generationOf(state: ObjectState): number {
  return state.object === undefined ? (state.refused?.generation ?? 0) : state.generation
}

function toResourceInput(event: SluiceEvent, seen: ObservedAt): ResourceInput | undefined {
  switch (event.type) {
    case 'dev.sluice.resource.applied.v1': {
      const { uid, resourceVersion, generation, object } = event.data
      const observed = object as ObservedObject
      return { type: 'APPLIED', uid, resourceVersion, generation, object: observed, seen }
    }
    case 'dev.sluice.resource.refused.v1': {
      const { uid, resourceVersion, generation, problems, targets, appliesTo } = event.data
      const refusal = { generation, problems, targets: targets ?? [], appliesTo: appliesTo ?? [] }
      return { type: 'REFUSED', uid, resourceVersion, refusal, seen }
    }
    case 'dev.sluice.resource.deleted.v1':
      return { type: 'DELETED', uid: event.data.uid }
    default:
      return undefined
  }
}
