/**
 * The in-process channel sends configuration to the workers of the same process, as a stream does to remote
 * proxies. All workers read a change set or the full state from the same shared memory. The full state is only
 * encoded for a worker that starts, and is not kept: the resources are in memory anyway.
 */
import type { Diversion } from '../../ground/model/diversion.ts'
import { type EndedEntry, EndedList } from '../../ground/model/ended-sessions.ts'
import {
  type DesiredDelta,
  type ResourceKey,
  type ResourceType,
  secretRefsOf,
  type VersionedResource,
} from '../../ground/model/resources.ts'
import type { ConfigChannel, ConfigUpdate, Rejection } from '../wire/channel.ts'
import { assembleSharedDelta, type EncodedResource, encodeResource } from '../wire/encode.ts'
import type { AckHandler } from './delivery-recorder.ts'

/** Stands for the proxy in rejections of resources that cannot be encoded. */
const publisher = 'publisher'

/** Number of routes in a part of the first state. Workers apply a part while the next one is encoded. */
const partRoutes = 500

interface Encoded extends Pick<ConfigUpdate, 'isPart'> {
  readonly pieces: readonly EncodedResource[]
  readonly removed: readonly ResourceKey[]
}

/** Types of which resources are sent before the first state is complete. Workers only store them. */
const preparedTypes: readonly ResourceType[] = ['service', 'workload', 'listener', 'route']

/**
 * The version of prepared resources. Versions only tell a worker whether it has a resource already, which a new
 * worker has not. Hashing them takes a twentieth of a start with many routes.
 */
const preparedVersion = 'prepared'

/** Values of secrets are only added to what is published. */
const isPreparable = ({ resource }: VersionedResource): boolean =>
  preparedTypes.includes(resource.type) && secretRefsOf(resource).length === 0

/** Splits a state. The first part has everything that routes depend on, and the first routes. */
function partsOf(all: readonly VersionedResource[]): VersionedResource[][] {
  const routes = all.filter(({ resource }) => resource.type === 'route')
  const parts = [all.filter(({ resource }) => resource.type !== 'route')]
  for (let from = 0; from < routes.length; from += partRoutes) {
    const part = routes.slice(from, from + partRoutes)
    if (from === 0) parts[0]?.push(...part)
    else parts.push(part)
  }
  return parts
}

type State = Map<ResourceKey, VersionedResource>

interface Subscriber {
  readonly receive: (update: ConfigUpdate) => void
  /** Name of the worker, such as `local/0`; not set for other subscribers. */
  readonly worker: string | undefined
  /** The state that it gets. */
  state: State
}

export class InProcessChannel implements ConfigChannel {
  readonly #ended = new EndedList()
  readonly #endedSubscribers = new Set<(entries: readonly EndedEntry[]) => void>()
  readonly #acks: AckHandler
  readonly #resources: State = new Map()
  readonly #subscribers = new Set<Subscriber>()
  #sequence: number | undefined
  #full: ConfigUpdate | undefined
  /** What some workers get instead of `#resources`. */
  #diverted: { readonly resources: State; readonly workers: ReadonlySet<string> } | undefined
  /** Subscribers that do not get the change set that is being published as it is. */
  #moving: ReadonlySet<Subscriber> = new Set()
  readonly #proxy: string

  /** `proxy` is the name of the proxy whose workers subscribe. */
  constructor(acks: AckHandler, proxy = 'local') {
    this.#acks = acks
    this.#proxy = proxy
  }

  /** Sends resources of the first state before it is published, so that workers apply them meanwhile. */
  prepare(resources: readonly VersionedResource[]): void {
    if (this.#sequence !== undefined) return
    const pieces = resources
      .filter(isPreparable)
      .flatMap((versioned) => this.#put(0, versioned, preparedVersion))
    if (pieces.length > 0) this.#send(0, { pieces, removed: [], isPart: true })
  }

  /**
   * Applies a change set and sends it to every subscriber, even an empty one, which must be acknowledged. The workers
   * that `diversion` names get its state instead; if it is null, none do, and if omitted, the same as before.
   */
  publish(delta: DesiredDelta, diversion?: Diversion | null): void {
    const { sequence, upserted, removed } = delta
    const isFirst = this.#sequence === undefined
    this.#sequence = sequence
    this.#full = undefined
    const apart = this.#divert(diversion)
    this.#moving = new Set(apart.map(({ subscriber }) => subscriber))
    const parts = isFirst ? partsOf(upserted.filter((one) => !this.#isPrepared(one))) : [upserted]
    // A prepared resource that has changed is removed, since nothing of its earlier version may stay in force.
    const gone = isFirst ? [...removed, ...this.#dropPrepared(parts.flat())] : removed
    for (const [index, part] of parts.entries()) {
      const pieces = part.flatMap((versioned) => this.#put(sequence, versioned))
      const isPart = index < parts.length - 1 && { isPart: true as const }
      this.#send(sequence, { pieces, removed: index === 0 ? gone : [], ...isPart })
    }
    for (const key of removed) this.#resources.delete(key)
    const changed = keysOf([delta, ...(diversion ? [diversion.delta] : [])])
    for (const { subscriber, before } of apart) this.#sendOwn(subscriber, before, changed)
    this.#moving = new Set()
  }

  #isPrepared({ resource }: VersionedResource): boolean {
    return this.#resources.get(resource.key)?.resource === resource
  }

  /** Forgets earlier versions of resources. Returns the keys of those that had one. */
  #dropPrepared(resources: readonly VersionedResource[]): ResourceKey[] {
    const keys = resources.map(({ resource }) => resource.key)
    return keys.filter((key) => this.#resources.delete(key))
  }

  #send(sequence: number, { pieces, removed, ...part }: Encoded): void {
    const subscribers = [...this.#subscribers].filter(
      (one) => one.state === this.#resources && !this.#moving.has(one),
    )
    if (subscribers.length === 0) return
    const update = { sequence, bytes: assembleSharedDelta(sequence, pieces, removed), ...part }
    for (const { receive } of subscribers) receive(update)
  }

  /** Returns the subscribers that do not get the published change set, with the states that they had. */
  #divert(diversion: Diversion | null | undefined) {
    if (diversion === undefined) return []
    const kept = diversion?.isNew === false ? this.#diverted?.resources : undefined
    const resources: State = kept ?? new Map()
    for (const key of diversion?.delta.removed ?? []) resources.delete(key)
    for (const one of diversion?.delta.upserted ?? []) resources.set(one.resource.key, one)
    this.#diverted = diversion === null ? undefined : { resources, workers: diversion.proxies }
    return [...this.#subscribers].flatMap((subscriber) => {
      const before = subscriber.state
      subscriber.state = this.#stateFor(subscriber.worker)
      const isPublished = before === this.#resources && subscriber.state === this.#resources
      return isPublished ? [] : [{ subscriber, before }]
    })
  }

  /** Sends what differs from an earlier state, and `changed`, which the worker may have in older versions. */
  #sendOwn({ state, receive }: Subscriber, before: State, changed: ReadonlySet<ResourceKey>): void {
    const sequence = this.#sequence ?? 0
    const keys = before === state ? changed : differing(before, state, changed)
    const { pieces, removed } = this.#difference(keys, state)
    receive({ sequence, bytes: assembleSharedDelta(sequence, pieces, removed) })
  }

  /** How a worker gets resources in the form of a state. One that cannot be encoded stays as it is. */
  #difference(keys: ReadonlySet<ResourceKey>, state: State): Encoded {
    const removed = [...keys].filter((key) => !state.has(key))
    const pieces = [...keys].flatMap((key) => {
      const versioned = state.get(key)
      return versioned === undefined ? [] : this.#encode(versioned)
    })
    return { pieces, removed }
  }

  #stateFor(worker: string | undefined): State {
    const isDiverted = worker !== undefined && this.#diverted?.workers.has(worker) === true
    return isDiverted ? (this.#diverted?.resources ?? this.#resources) : this.#resources
  }

  /** Encodes and keeps a resource. One that cannot be encoded does not replace its previous version. */
  #put(
    sequence: number,
    versioned: VersionedResource,
    version = versioned.version,
  ): readonly EncodedResource[] {
    const bytes = this.#encode({ version, resource: versioned.resource }, sequence)
    if (bytes.length > 0) this.#resources.set(versioned.resource.key, versioned)
    return bytes
  }

  #encode(versioned: VersionedResource, sequence = this.#sequence ?? 0): EncodedResource[] {
    try {
      return [encodeResource(versioned)]
    } catch (error) {
      // This is a bug that must not prevent the others from being served. It is reported with a publication.
      const message = `cannot be encoded: ${error}`
      if (this.#sequence !== undefined) {
        this.#acks.onReject(publisher, sequence, versioned.resource.key, 'bug', message)
      }
      return []
    }
  }

  /** The full state; undefined before the first publish. */
  current(): ConfigUpdate | undefined {
    if (this.#sequence === undefined) return undefined
    const sequence = this.#sequence
    this.#full ??= { sequence, bytes: assembleSharedDelta(sequence, this.#pieces(), []) }
    return this.#full
  }

  /** What was sent before the first publish; undefined if that is nothing. */
  #prepared(): ConfigUpdate | undefined {
    if (this.#resources.size === 0) return undefined
    return { sequence: 0, bytes: assembleSharedDelta(0, this.#pieces(), []), isPart: true }
  }

  *#pieces(): Iterable<EncodedResource> {
    for (const versioned of this.#resources.values()) yield encodeResource(versioned)
  }

  subscribe(receive: (update: ConfigUpdate) => void, index?: number): () => void {
    const worker = index === undefined ? undefined : `${this.#proxy}/${index}`
    // A new object for each call, since the same function may subscribe twice.
    const subscriber: Subscriber = { receive, worker, state: this.#stateFor(worker) }
    this.#subscribers.add(subscriber)
    const known = this.#known(subscriber.state)
    if (known !== undefined) receive(known)
    return () => this.#subscribers.delete(subscriber)
  }

  #known(state: State): ConfigUpdate | undefined {
    if (state === this.#resources) return this.current() ?? this.#prepared()
    const sequence = this.#sequence ?? 0
    const pieces = [...state.values()].flatMap((one) => this.#encode(one))
    return { sequence, bytes: assembleSharedDelta(sequence, pieces, []) }
  }

  /** Sends sessions and tokens that are refused to every worker. */
  endSessions(entries: readonly EndedEntry[]): void {
    this.#ended.add(entries, Date.now())
    for (const receive of this.#endedSubscribers) receive(entries)
  }

  subscribeEnded(receive: (entries: readonly EndedEntry[]) => void): () => void {
    const subscriber = (entries: readonly EndedEntry[]) => receive(entries)
    this.#endedSubscribers.add(subscriber)
    if (this.#ended.size > 0) receive(this.#ended.all())
    return () => this.#endedSubscribers.delete(subscriber)
  }

  ack(proxy: string, sequence: number): void {
    this.#acks.onAck(proxy, sequence)
  }

  reject(proxy: string, sequence: number, { key, code, message }: Rejection): void {
    this.#acks.onReject(proxy, sequence, key, code, message)
  }

  recover(proxy: string, sequence: number, key: ResourceKey): void {
    this.#acks.onRecover(proxy, sequence, key)
  }
}

const keysOf = (deltas: readonly DesiredDelta[]): ReadonlySet<ResourceKey> =>
  new Set(
    deltas.flatMap(({ upserted, removed }) => [
      ...upserted.map(({ resource }) => resource.key),
      ...removed,
    ]),
  )

/** Keys of the resources that differ between two states, and `changed`. */
function differing(
  before: State,
  after: State,
  changed: ReadonlySet<ResourceKey>,
): ReadonlySet<ResourceKey> {
  const keys = new Set(changed)
  for (const [key, { version }] of before) if (after.get(key)?.version !== version) keys.add(key)
  for (const key of after.keys()) if (!before.has(key)) keys.add(key)
  return keys
}
