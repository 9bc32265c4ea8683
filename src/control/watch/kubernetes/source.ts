/**
 * A cluster as a source of events.
 *
 * ```
 *   watches ──► collection ──► scope: is it relevant? ──► differences to the log's index ──► append
 *                   │                  │                            only while leading
 *                   │                  └──► fetch relevant Secrets and ConfigMaps
 *                   └──► live statuses, for the status writer
 * ```
 *
 * Every replica watches, so that each has the values of Secrets and can take over at once. Only the
 * leader appends, and it begins with a comparison of all objects.
 */
import type { EventContext } from '../../../../events/index.ts'
import { systemClock } from '../../../ground/base/clock.ts'
import { KubeError, type KubeObject, type LiveObject, objectPath } from '../../kube/index.ts'
import { asRelist, type CompleteListing } from '../difference.ts'
import { type IndexEntry, keyOf, type ResourceIndex } from '../resource-index.ts'
import { Collection, type CollectionEntry } from './collection.ts'
import { Definitions } from './definitions.ts'
import { clusterDifferences, kindsInDoubt } from './differences.ts'
import { isSameReport, type KindSink, type KindState, KindWatch } from './kind-watch.ts'
import { inferenceKinds, pathOf, type WatchedKind, watchedKinds } from './kinds.ts'
import { claimNow, observeObject } from './observe.ts'
import { type ScopedObject, WatchScope } from './scope.ts'
import type { KubernetesSourceOptions } from './source-options.ts'

/** Source attribute of the events, the same for every replica of a cluster. */
export const kubernetesSource = '/sluice/kubernetes'

const retryMs = 1_000
/** Maximum number of events in one append; a first listing may have more. */
const batchSize = 1_000
const maxParallelFetches = 8

interface LeaderState {
  readonly index: ResourceIndex
  readonly epoch: number
}

export class KubernetesSource {
  readonly #options: KubernetesSourceOptions
  readonly #collection: Collection
  readonly #scope: WatchScope
  readonly #watches: readonly KindWatch[]
  readonly #definitions: Definitions
  /** Kinds that a setting excludes; their objects in the log are deleted. */
  readonly #unread: readonly string[]
  readonly #states = new Map<string, KindState>()
  /** Kinds that were listed, or that the cluster does not define. */
  readonly #settled = new Set<string>()
  /** Objects whose last change is not in the log yet. Each change sets a new value object. */
  readonly #pending = new Map<string, { readonly cause: 'watch' | 'relist' }>()
  /** Kinds that are being listed. */
  readonly #listing = new Set<string>()
  #leading: LeaderState | undefined
  /** Leadership generation. Stale async work compares it and gives up. */
  #generation = 0
  /** Resolved when this replica stops appending. */
  #following = Promise.withResolvers<void>()
  #running: Promise<void> = Promise.resolve()
  #isScheduled = false
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  readonly #listed = Promise.withResolvers<void>()

  constructor(options: KubernetesSourceOptions) {
    this.#options = options
    this.#collection = new Collection({
      ...options,
      onEntry: (entry, isGone, mentions) => {
        this.#touch(entry.key)
        for (const key of this.#scope.note(entry, isGone, mentions)) this.#touch(key)
      },
      onLive: options.onLive,
      isRelevant: (entry) => this.#scope.includes(entry),
    })
    this.#scope = new WatchScope(options, this.#collection)
    const sink: KindSink = {
      listing: (kind, version) => this.#beginListing(kind, version),
      changed: (kind, version, type, object) => {
        if (type === 'delete') this.#collection.remove(kind, object)
        else this.#collection.put(kind, version, object)
      },
      state: (kind, state) => this.#note(kind, state),
    }
    this.#unread = options.readsPools ? [] : [...inferenceKinds].sort()
    this.#watches = watchedKinds
      .filter(({ kind }) => !this.#unread.includes(kind))
      .map((kind) => new KindWatch(options.client, kind, sink))
    this.#definitions = new Definitions({
      client: options.client,
      onDefinition: (name) => this.#poke(name),
      onVersions: options.onVersions,
    })
  }

  /** Resolves when every kind was listed once and relevant objects were fetched. */
  async start(): Promise<void> {
    for (const watch of this.#watches) watch.start()
    this.#definitions.start()
    await this.#listed.promise
    await this.#work()
  }

  get isListed(): boolean {
    return this.#settled.size === this.#watches.length
  }

  /** Returns which kinds are not listed yet and why, or undefined once all are listed. */
  listingProblem(): string | undefined {
    const missing = this.#watches.filter(({ kind }) => !this.#settled.has(kind.kind))
    if (missing.length === 0) return undefined
    const texts = missing.map(({ kind }) => {
      const state = this.#states.get(kind.kind)
      return `${kind.plural}: ${state?.state === 'failing' ? state.error.message : 'being listed'}`
    })
    return texts.join('; ')
  }

  /** Returns undefined while at least one watch works. */
  watchProblem(): string | undefined {
    const works = this.states().some(({ state }) => state === 'following' || state === 'listing')
    return works ? undefined : 'no watch of the API server works'
  }

  /** State of every kind, and milliseconds since the last message of its watch. */
  states(): readonly { kind: string; state: KindState['state']; silentMs: number }[] {
    return this.#watches.map(({ kind, lastEventAt }) => ({
      kind: kind.kind,
      state: this.#states.get(kind.kind)?.state ?? 'listing',
      silentMs: lastEventAt === 0 ? 0 : performance.now() - lastEventAt,
    }))
  }

  /**
   * Begins to append: first every difference from `index` as a listing, then later changes. Updates `index`
   * with every append. Resolves when the listing is in the log.
   */
  lead(index: ResourceIndex, epoch: number): Promise<void> {
    const generation = ++this.#generation
    this.#following.resolve()
    this.#following = Promise.withResolvers<void>()
    // Waits for work under way, which may still discard pending changes.
    const begun = this.#running.then(() => this.#beginToLead({ index, epoch }, generation))
    this.#running = begun.catch(() => undefined)
    return begun
  }

  async #beginToLead(leading: LeaderState, generation: number): Promise<void> {
    await this.#listAgain(leading.index)
    if (generation !== this.#generation) return
    const cause = 'relist'
    for (const entry of this.#collection.entries()) this.#pending.set(entry.key, { cause })
    for (const entry of leading.index.entries()) {
      const isDecided = this.#settled.has(entry.kind) || this.#unread.includes(entry.kind)
      if (isDecided) this.#pending.set(keyOf(entry), { cause })
    }
    const unfetched = await this.#hydrate()
    await this.#append(leading, true)
    if (generation !== this.#generation) return
    this.#leading = leading
    if (unfetched > 0) this.#later()
    this.#schedule()
  }

  /** Lists kinds of which the watch may know less than the log. */
  async #listAgain(index: ResourceIndex): Promise<void> {
    if (!index.isListed) return
    const isRelevant = (entry: CollectionEntry) => this.#scope.includes(entry)
    const kinds = kindsInDoubt(index, this.#collection.entries(), isRelevant)
    const due = this.#watches.filter(({ kind }) => kinds.has(kind.kind))
    const listed = Promise.all(due.map((watch) => watch.listAgain()))
    await Promise.race([listed, this.#following.promise])
  }

  /** Stops appending. Events of an append under way may still reach the log, where they are ignored. */
  follow(): void {
    this.#generation++
    this.#leading = undefined
    this.#following.resolve()
  }

  /** Number of objects whose last change is not in the log yet. */
  get depth(): number {
    return this.#leading === undefined ? 0 : this.#pending.size
  }

  get size(): number {
    return this.#collection.size
  }

  live(key: string): LiveObject | undefined {
    return this.#collection.get(key)?.live
  }

  /** Keys of all objects whose status this controller writes. */
  *liveKeys(): Iterable<string> {
    for (const { key, live } of this.#collection.entries()) if (live !== undefined) yield key
  }

  /** Whether an object would be read, by its namespace and by references to it. */
  isRelevant(object: ScopedObject): boolean {
    return this.#scope.includes(object)
  }

  /** Stores the object that a write of its status has returned. */
  noteWrite(key: string, object: KubeObject): void {
    this.#collection.noteWrite(key, object)
  }

  /** Digests of all secret values of relevant objects. */
  secretDigests(): Set<string> {
    return this.#collection.secretDigests()
  }

  /** Fetches the objects again that have these secret values; a failed request is repeated. */
  observeAgain(digests: ReadonlySet<string>): void {
    for (const entry of this.#collection.withSecrets(digests)) {
      entry.claim = undefined
      this.#touch(entry.key)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.follow()
    clearTimeout(this.#timer)
    await Promise.all([...this.#watches, this.#definitions].map((watch) => watch.stop()))
    await this.#running
  }

  #beginListing(kind: WatchedKind, version: string) {
    this.#listing.add(kind.kind)
    const listing = this.#collection.listing(kind, version)
    return {
      page: listing.page,
      finish: () => {
        listing.finish()
        this.#listing.delete(kind.kind)
        this.#settle(kind)
      },
    }
  }

  #settle({ kind }: WatchedKind): void {
    if (this.#settled.has(kind)) return
    this.#settled.add(kind)
    if (this.isListed) this.#listed.resolve()
  }

  #note(kind: WatchedKind, state: KindState): void {
    const before = this.#states.get(kind.kind)
    // A failing watch has not recovered before a listing is complete or a stream is open.
    if (before?.state === 'failing' && state.state === 'listing') return
    this.#states.set(kind.kind, state)
    if (!isSameReport(before, state)) this.#options.onState(kind, state)
  }

  #poke(definition: string): void {
    this.#watches.find(({ kind }) => definition === `${kind.plural}.${kind.group}`)?.poke()
  }

  #touch(key: string): void {
    this.#pending.set(key, { cause: this.#listing.has(kindOf(key)) ? 'relist' : 'watch' })
    this.#schedule()
  }

  /** Runs at most once per turn of the event loop, so that a burst of changes becomes one batch. */
  #schedule(): void {
    if (this.#isScheduled || this.#isClosed || this.#pending.size === 0) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      void this.#work()
    })
  }

  #work(): Promise<void> {
    this.#running = this.#running.then(() => this.#process())
    return this.#running
  }

  async #process(): Promise<void> {
    if (this.#isClosed) return
    const unfetched = await this.#hydrate()
    if (unfetched > 0) this.#later()
    const leading = this.#leading
    if (leading === undefined) {
      // The leader appends these changes, and a new leader compares everything.
      if (unfetched === 0) this.#pending.clear()
      return
    }
    try {
      await this.#append(leading, false)
    } catch (error) {
      this.#options.onProblem(`failed to record changes; retrying: ${String(error)}`)
      this.#later()
    }
  }

  #later(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#schedule(), retryMs)
  }

  /** Fetches relevant objects of which only metadata is known. Returns how many are still missing. */
  async #hydrate(): Promise<number> {
    const wanted: CollectionEntry[] = []
    for (const key of this.#pending.keys()) {
      const entry = this.#collection.get(key)
      if (entry === undefined) continue
      if (this.#scope.includes(entry)) {
        if (entry.claim === undefined) wanted.push(entry)
      } else if (entry.kind.isNarrowed) entry.claim = undefined
    }
    let missing = 0
    const next = async () => {
      for (let entry = wanted.pop(); entry !== undefined; entry = wanted.pop()) {
        if (!(await this.#fetch(entry))) missing++
      }
    }
    await Promise.all(Array.from({ length: maxParallelFetches }, next))
    return missing
  }

  async #fetch(entry: CollectionEntry): Promise<boolean> {
    const { kind, version, namespace, name } = entry
    try {
      const path = objectPath(pathOf(kind, version), namespace, name)
      const object = await this.#options.client.get(path)
      const claim = observeObject(kind, version, object, this.#options)
      // If the object was recreated in the meantime, the watch reports it.
      if (claim.uid === entry.uid) entry.claim = claim
      return true
    } catch (error) {
      // The object is deleted, which the watch will report.
      if (error instanceof KubeError && error.isNotFound) return false
      this.#options.onProblem(`${kind.kind} ${namespace}/${name} cannot be read: ${String(error)}`)
      return false
    }
  }

  /** Appends all pending changes. Those that a listing has found are appended as a listing. */
  async #append(leading: LeaderState, isRelist: boolean): Promise<void> {
    const { index } = leading
    const context = this.#context(leading)
    for (const cause of ['relist', 'watch'] as const) {
      const noticed = [...this.#pending].filter(([, one]) => one.cause === cause)
      const keys = noticed.map(([key]) => key)
      const events = clusterDifferences(index, this.#changeOf(keys, index, cause), context)
      const isMarked = cause === 'relist' && (isRelist || events.length > 0)
      const listing = isMarked && this.#listingOf(isRelist, keys)
      const all = listing ? asRelist(index, events, listing, context) : events
      for (let from = 0; from < all.length; from += batchSize) {
        const batch = all.slice(from, from + batchSize)
        await this.#options.onChange(batch)
        index.applyAll(batch)
      }
      for (const [key, before] of noticed) {
        const entry = this.#collection.get(key)
        // Objects that changed in the meantime or are still to be fetched stay pending.
        const isUnfetched = entry !== undefined && entry.claim === undefined
        const isDone = this.#pending.get(key) === before
        if (isDone && !(isUnfetched && this.#scope.includes(entry))) this.#pending.delete(key)
      }
    }
  }

  #listingOf(isEverything: boolean, keys: readonly string[]): CompleteListing {
    const source = 'kubernetes'
    if (isEverything) return { source, scope: [...this.#settled].sort(), unread: this.#unread }
    return { source, scope: [...new Set(keys.map(kindOf))].sort() }
  }

  #changeOf(keys: readonly string[], index: ResourceIndex, cause: 'watch' | 'relist') {
    const claims = []
    const gone: IndexEntry[] = []
    for (const key of keys) {
      const entry = this.#collection.get(key)
      const known = index.get(key)
      const isRelevant = entry !== undefined && this.#scope.includes(entry)
      if (isRelevant && entry.claim !== undefined) claims.push(claimNow(entry.claim, entry.live))
      // A relevant object that could not be fetched yet stays as it is in the log.
      else if (!isRelevant && known !== undefined) gone.push(known)
    }
    return { claims, gone, cause }
  }

  #context({ index, epoch }: LeaderState): EventContext {
    return { source: index.source, time: new Date(systemClock.now()).toISOString(), epoch }
  }
}

const kindOf = (key: string) => key.slice(0, key.indexOf('/'))
