/**
 * A model of the Kubernetes API server: objects with versions and generations, watches with bookmarks,
 * conflicts (409), compaction (410) and restarts. Objects are frozen, so that a change in place by the code
 * under test fails. Only what the controller uses is modelled.
 */
import { KubeError, type KubeObject } from '../../src/control/kube/index.ts'
import type { Random } from '../virtual-time/random.ts'
import type { Machine, World } from '../virtual-time/world.ts'

interface Change {
  readonly revision: number
  readonly collection: string
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: KubeObject
  readonly before: KubeObject | undefined
}

export type WatchMessage =
  | { readonly type: Change['type'] | 'BOOKMARK'; readonly object: KubeObject }
  | { readonly type: 'ERROR'; readonly error: KubeError }
  | { readonly type: 'END' }

interface Watcher {
  readonly collection: string
  readonly selector: string | undefined
  send(message: WatchMessage): void
}

/** A request, after its path was read. */
export interface ApiCall {
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, unknown>>
  readonly body: unknown
  /** Who sends it; for the checks. */
  readonly by: string
}

/** An accepted write, for the checks. */
export interface Write {
  readonly collection: string
  readonly by: string
  readonly isStatus: boolean
  readonly object: KubeObject | undefined
  readonly before: KubeObject | undefined
}

interface Place {
  readonly collection: string
  readonly apiVersion: string
  readonly namespace: string
  readonly name: string | undefined
  readonly isStatus: boolean
}

type Fields = Record<string, unknown>

/** Kinds whose objects have no generation. */
const withoutGeneration = new Set([
  'secrets',
  'configmaps',
  'namespaces',
  'services',
  'events',
  'leases',
])
const bookmarkMs = 45_000

export class ApiServer {
  readonly machine: Machine
  revision = 100
  /** Probability that a request is refused with 429, 500 or 503. */
  flakiness = 0
  /** Called with every accepted write. */
  onWrite: (write: Write) => void = () => undefined
  readonly #world: World
  readonly #random: Random
  readonly #objects = new Map<string, Map<string, KubeObject>>()
  #history: Change[] = []
  #compactedAt = 100
  readonly #watchers = new Set<Watcher>()
  #uids = 0
  #created = 0

  constructor(world: World, machine: Machine, random: Random) {
    this.#world = world
    this.machine = machine
    this.#random = random
    const mark = () => {
      for (const watcher of this.#watchers) watcher.send(this.#bookmark())
      world.schedule(world.outside, bookmarkMs, mark)
    }
    world.schedule(world.outside, bookmarkMs, mark)
  }

  /** All objects of a collection, `group/plural`. */
  list(collection: string): readonly KubeObject[] {
    return [...(this.#objects.get(collection)?.values() ?? [])]
  }

  get(collection: string, namespace: string, name: string): KubeObject | undefined {
    return this.#objects.get(collection)?.get(`${namespace}/${name}`)
  }

  /** Forgets history, so that watches from earlier versions are refused with 410. */
  compact(): void {
    this.#history = []
    this.#compactedAt = this.revision
  }

  /** Ends every watch. If `isExpired`, with an error 410 in the stream. */
  endWatches(isExpired: boolean): void {
    const error = new KubeError(410, 'Expired', 'too old resource version')
    for (const watcher of [...this.#watchers]) {
      this.#watchers.delete(watcher)
      watcher.send(isExpired ? { type: 'ERROR', error } : { type: 'END' })
    }
  }

  /** Answers a request. @throws KubeError */
  handle(call: ApiCall): unknown {
    if (this.#random.chance(this.flakiness)) {
      const status = this.#random.pick([429, 500, 503])
      throw new KubeError(status, 'Simulated', `the server is overloaded (${status})`)
    }
    const place = placeOf(call.path)
    const { method, body } = call
    if (method === 'GET') return this.#read(place, call.query)
    if (method === 'POST') return this.#create(place, body as KubeObject, call.by)
    if (method === 'PUT') return this.#replace(place, body as KubeObject, call.by)
    if (method === 'DELETE') return this.#remove(place, body as Fields, call.by)
    if (place.isStatus) return this.#patchStatus(place, body as KubeObject, call.by)
    return this.#apply(place, body as KubeObject, call.query.dryRun === 'All', call.by)
  }

  /** Opens a watch, which gets every change after a version. @throws KubeError 410 */
  watch(path: string, query: Fields, send: (message: WatchMessage) => void): () => void {
    const { collection } = placeOf(path)
    const since = Number(query.resourceVersion)
    if (since < this.#compactedAt) throw new KubeError(410, 'Expired', 'too old resource version')
    const selector = query.labelSelector as string | undefined
    const watcher = { collection, selector, send }
    for (const change of this.#history) if (change.revision > since) deliver(watcher, change)
    this.#watchers.add(watcher)
    return () => this.#watchers.delete(watcher)
  }

  #bookmark(): WatchMessage {
    return {
      type: 'BOOKMARK',
      object: { metadata: { name: '', resourceVersion: `${this.revision}` } },
    }
  }

  #read(place: Place, query: Fields): unknown {
    if (place.name !== undefined) return this.#known(place)
    const selector = query.labelSelector as string | undefined
    const items = this.list(place.collection).filter((one) => matches(selector, one))
    return { metadata: { resourceVersion: `${this.revision}` }, items }
  }

  #known({ collection, namespace, name = '' }: Place): KubeObject {
    const object = this.get(collection, namespace, name)
    if (object !== undefined) return object
    throw new KubeError(404, 'NotFound', `${collection} "${namespace}/${name}" not found`)
  }

  #create(place: Place, body: KubeObject, by: string): KubeObject {
    const { name } = body.metadata
    const { namespace } = place
    if (this.get(place.collection, namespace, name) !== undefined) {
      throw new KubeError(409, 'AlreadyExists', `${name} already exists`)
    }
    return this.#put(place, name, body, undefined, by)
  }

  #replace(place: Place, body: KubeObject, by: string): KubeObject {
    const before = this.#known(place)
    assertVersion(before, body)
    return this.#put(place, before.metadata.name, body, before, by)
  }

  #patchStatus(place: Place, body: KubeObject, by: string): KubeObject {
    const before = this.#known(place)
    assertVersion(before, body)
    const status = { ...(before.status as Fields | undefined), ...(body.status as Fields) }
    const kept = Object.entries(status).filter(([, value]) => value !== null)
    return this.#put(
      place,
      before.metadata.name,
      { ...before, status: Object.fromEntries(kept) },
      before,
      by,
    )
  }

  /** Server-side apply by one manager: the given fields replace the known ones. */
  #apply(place: Place, body: KubeObject, isDry: boolean, by: string): KubeObject {
    const { name = '', collection, namespace } = place
    const before = this.get(collection, namespace, name)
    const metadata = { ...before?.metadata, ...body.metadata }
    const merged = { ...before, ...body, metadata }
    if (isDry) return this.#stamped(place, merged, before)
    if (before !== undefined && isEqual(this.#stamped(place, merged, before), before)) return before
    return this.#put(place, name, merged, before, by)
  }

  #remove(place: Place, body: Fields | undefined, by: string): unknown {
    const before = this.#known(place)
    const { uid } = (body?.preconditions ?? {}) as { uid?: string }
    if (uid !== undefined && uid !== before.metadata.uid) {
      throw new KubeError(409, 'Conflict', 'the uid is another')
    }
    this.#objects.get(place.collection)?.delete(`${place.namespace}/${before.metadata.name}`)
    const resourceVersion = `${++this.revision}`
    const last = freeze({ ...before, metadata: { ...before.metadata, resourceVersion } })
    this.#publish({ ...place, revision: this.revision, type: 'DELETED', object: last, before })
    this.onWrite({ collection: place.collection, by, isStatus: false, object: undefined, before })
    return {}
  }

  #stamped(
    { collection, namespace, isStatus, apiVersion }: Place,
    body: KubeObject,
    before: KubeObject | undefined,
  ): KubeObject {
    const { status, ...rest } = body
    const isSame = before !== undefined && isEqual(rest.spec, before.spec)
    const generation = (before?.metadata.generation ?? 0) + (isSame ? 0 : 1)
    const hasGeneration = !withoutGeneration.has(collection.slice(collection.indexOf('/') + 1))
    const ownStatus = isStatus || before === undefined ? status : before.status
    return {
      ...rest,
      apiVersion,
      metadata: {
        ...rest.metadata,
        ...(namespace !== '' && { namespace }),
        uid: before?.metadata.uid ?? `uid-${this.#uids + 1}`,
        creationTimestamp: before?.metadata.creationTimestamp ?? this.#newTimestamp(),
        ...(hasGeneration && { generation }),
        ...(before !== undefined && { resourceVersion: before.metadata.resourceVersion ?? '' }),
      },
      ...(ownStatus !== undefined && { status: ownStatus }),
    }
  }

  /** A time of creation that no other object has, since the order of equal ones is not defined. */
  #newTimestamp(): string {
    this.#created = Math.max(this.#created + 1_000, this.#world.wallMs(this.machine))
    return new Date(this.#created).toISOString().replace(/\.\d+/, '')
  }

  #put(
    place: Place,
    name: string,
    body: KubeObject,
    before: KubeObject | undefined,
    by: string,
  ): KubeObject {
    const { collection, namespace, isStatus } = place
    const stamped = this.#stamped(place, body, before)
    if (before === undefined) this.#uids++
    const resourceVersion = `${++this.revision}`
    const object = freeze({ ...stamped, metadata: { ...stamped.metadata, resourceVersion } })
    const all = this.#objects.get(collection) ?? new Map<string, KubeObject>()
    this.#objects.set(collection, all.set(`${namespace}/${name}`, object))
    const type = before === undefined ? 'ADDED' : 'MODIFIED'
    this.#publish({ collection, revision: this.revision, type, object, before })
    this.onWrite({ collection, by, isStatus, object, before })
    return object
  }

  #publish(change: Change): void {
    this.#history.push(change)
    for (const watcher of this.#watchers) deliver(watcher, change)
  }
}

/** Sends a change as a watch with a selector sees it. */
function deliver(watcher: Watcher, { collection, type, object, before }: Change): void {
  const { selector } = watcher
  if (collection !== watcher.collection) return
  const did = before !== undefined && matches(selector, before)
  const does = type !== 'DELETED' && matches(selector, object)
  if (does) watcher.send({ type: did ? 'MODIFIED' : 'ADDED', object })
  else if (did) watcher.send({ type: 'DELETED', object })
}

/** `apis/GROUP/VERSION/[namespaces/NS/]PLURAL[/NAME[/status]]`, or `api/v1/...` */
function placeOf(path: string): Place {
  const parts = path.replace(/^\//, '').split('/').map(decodeURIComponent)
  const group = parts[0] === 'api' ? '' : (parts[1] ?? '')
  const version = parts[0] === 'api' ? parts[1] : parts[2]
  const rest = parts.slice(parts[0] === 'api' ? 2 : 3)
  const isNamespaced = rest[0] === 'namespaces' && rest.length > 2
  const [plural = '', name, sub] = isNamespaced ? rest.slice(2) : rest
  return {
    collection: `${group}/${plural}`,
    apiVersion: group === '' ? `${version}` : `${group}/${version}`,
    namespace: isNamespaced ? (rest[1] ?? '') : '',
    name,
    isStatus: sub === 'status',
  }
}

function assertVersion(before: KubeObject, { metadata }: KubeObject): void {
  const { resourceVersion } = metadata
  if (resourceVersion === undefined || resourceVersion === before.metadata.resourceVersion) return
  throw new KubeError(409, 'Conflict', 'the object has been modified')
}

/** Matches a selector of the form `label=value`. */
function matches(selector: string | undefined, { metadata }: KubeObject): boolean {
  const [label = '', value] = selector?.split('=') ?? []
  return selector === undefined || metadata.labels?.[label] === value
}

const isEqual = (a: unknown, b: unknown): boolean =>
  a === b || JSON.stringify(a) === JSON.stringify(b)

function freeze<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const part of Object.values(value)) freeze(part)
  return Object.freeze(value)
}
