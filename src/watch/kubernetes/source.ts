/**
 * A cluster as a source of events.
 *
 * ```
 *   watches ──► collection ──► scope: does it count? ──► differences to the log's index ──► append
 *                   │                  │                            only while leading
 *                   │                  └──► fetch Secrets and ConfigMaps that count
 *                   └──► live statuses, for the status writer
 * ```
 *
 * Every replica watches, so that each has the values of Secrets and can take over at once. Only the
 * one that leads appends, and it begins with a comparison of everything that it knows.
 */
import { KubeError, type KubeObject, type LiveObject, objectPath } from '../../kube/index.ts'
import { asRelist, type Listing, type WriterContext } from '../difference.ts'
import type { IndexEntry, ResourceIndex } from '../resource-index.ts'
import { Collection, type Entry } from './collection.ts'
import { Definitions } from './definitions.ts'
import { clusterDifferences } from './differences.ts'
import { type KindState, KindWatch } from './kind-watch.ts'
import { inferenceKinds, pathOf, type WatchedKind, watchedKinds } from './kinds.ts'
import { type ClusterClaim, observeObject } from './observe.ts'
import { wasProgrammed } from './programmed.ts'
import { Scope } from './scope.ts'
import type { KubernetesSourceOptions } from './source-options.ts'

/** Source attribute of the events; the same for every replica, since all see one cluster. */
export const kubernetesSource = '/sluice/kubernetes'

const retryMs = 1_000
/** Events of one append; a first listing may have many. */
const batchSize = 1_000
const fetchesAtOnce = 8

interface Leadership {
  readonly index: ResourceIndex
  readonly epoch: number
}

export class KubernetesSource {
  readonly #options: KubernetesSourceOptions
  readonly #collection: Collection
  readonly #scope: Scope
  readonly #watches: readonly KindWatch[]
  readonly #definitions: Definitions
  /** Kinds that a setting leaves out: what the log has of them from before is gone. */
  readonly #unread: readonly string[]
  readonly #states = new Map<string, KindState>()
  /** Kinds that were listed, or found to be absent. */
  readonly #settled = new Set<string>()
  /** Objects whose last change is not in the log yet; each change has a note of its own. */
  readonly #pending = new Map<string, { readonly cause: 'watch' | 'relist' }>()
  /** Kinds that are being listed: what is found then was not seen by a watch. */
  readonly #listing = new Set<string>()
  #leading: Leadership | undefined
  /** Counts beginnings and ends of leading: one that was overtaken must not take effect. */
  #turn = 0
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
      counts: (entry) => this.#scope.includes(entry),
    })
    this.#scope = new Scope(options, this.#collection)
    const sink = {
      listing: (kind: WatchedKind, version: string) => this.#beginListing(kind, version),
      changed: (
        kind: WatchedKind,
        version: string,
        type: 'put' | 'delete',
        object: KubeObject,
      ): void => {
        if (type === 'delete') this.#collection.remove(kind, object)
        else this.#collection.put(kind, version, object)
      },
      state: (kind: WatchedKind, state: KindState) => this.#note(kind, state),
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

  /** Resolves when every kind that exists was listed once and what is relevant was fetched. */
  async start(): Promise<void> {
    for (const watch of this.#watches) watch.start()
    this.#definitions.start()
    await this.#listed.promise
    await this.#work()
  }

  get isListed(): boolean {
    return this.#settled.size === this.#watches.length
  }

  /** Which kinds were not listed yet, and why; undefined once all were. */
  listingProblem(): string | undefined {
    const missing = this.#watches.filter(({ kind }) => !this.#settled.has(kind.kind))
    if (missing.length === 0) return undefined
    const texts = missing.map(({ kind }) => {
      const state = this.#states.get(kind.kind)
      return `${kind.plural}: ${state?.state === 'failing' ? state.error.message : 'being listed'}`
    })
    return texts.join('; ')
  }

  /** Undefined while any watch works. */
  watchProblem(): string | undefined {
    const works = this.states().some(({ state }) => state === 'following' || state === 'listing')
    return works ? undefined : 'no watch of the API server works'
  }

  /** State of every kind, and how long ago its watch has last told something, in milliseconds. */
  states(): readonly { kind: string; state: KindState['state']; silentMs: number }[] {
    return this.#watches.map(({ kind, heardAt }) => ({
      kind: kind.kind,
      state: this.#states.get(kind.kind)?.state ?? 'listing',
      silentMs: heardAt === 0 ? 0 : performance.now() - heardAt,
    }))
  }

  /**
   * Appends from now on: first every difference to what the log knows, as a listing. The index is
   * kept up to date with what is appended. Resolves when the listing is in the log.
   */
  lead(index: ResourceIndex, epoch: number): Promise<void> {
    const turn = ++this.#turn
    // In turn with everything else: what changes meanwhile must stay pending.
    const begun = this.#running.then(() => this.#beginToLead({ index, epoch }, turn))
    this.#running = begun.catch(() => undefined)
    return begun
  }

  async #beginToLead(leading: Leadership, turn: number): Promise<void> {
    const cause = 'relist'
    for (const entry of this.#collection.entries()) this.#pending.set(entry.key, { cause })
    for (const { kind, namespace, name } of leading.index.entries()) {
      if (this.#settled.has(kind) || this.#unread.includes(kind)) {
        this.#pending.set(`${kind}/${namespace}/${name}`, { cause })
      }
    }
    const unfetched = await this.#hydrate()
    await this.#append(leading, true)
    if (turn !== this.#turn) return
    this.#leading = leading
    if (unfetched > 0) this.#later()
    this.#schedule()
  }

  /** Appends no more; an append under way may still arrive, and counts for nothing. */
  follow(): void {
    this.#turn++
    this.#leading = undefined
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

  /** Keys of all objects whose status is ours to write. */
  *liveKeys(): Iterable<string> {
    for (const { key, live } of this.#collection.entries()) if (live !== undefined) yield key
  }

  /** What a write of a status gave back. */
  noteWrite(key: string, object: KubeObject): void {
    this.#collection.noteWrite(key, object)
  }

  /** Digests of all secret values that counting objects hold at present. */
  secretDigests(): Set<string> {
    const digests = new Set<string>()
    for (const { claim } of this.#collection.entries()) {
      if (claim?.content.state !== 'valid') continue
      for (const digest of claim.content.secrets) digests.add(digest)
    }
    return digests
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#leading = undefined
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
    this.#states.set(kind.kind, state)
    // A server that is away says so in many ways; one line for each way of refusing is enough.
    const isSame =
      before?.state === state.state &&
      (state.state !== 'failing' ||
        (before.state === 'failing' && before.error.status === state.error.status))
    if (!isSame) this.#options.onState(kind, state)
  }

  #poke(definition: string): void {
    this.#watches.find(({ kind }) => definition === `${kind.plural}.${kind.group}`)?.poke()
  }

  #touch(key: string): void {
    const kind = key.slice(0, key.indexOf('/'))
    this.#pending.set(key, { cause: this.#listing.has(kind) ? 'relist' : 'watch' })
    this.#schedule()
  }

  /** Once per turn of the event loop: a burst becomes one batch. */
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
      // Whoever leads appends it; whoever comes to lead compares everything.
      if (unfetched === 0) this.#pending.clear()
      return
    }
    try {
      await this.#append(leading, false)
    } catch (error) {
      this.#options.onProblem(`changes could not be recorded, and will be again: ${String(error)}`)
      this.#later()
    }
  }

  #later(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#schedule(), retryMs)
  }

  /** Fetches what counts and of which only metadata was seen; returns how many are still missing. */
  async #hydrate(): Promise<number> {
    const wanted: Entry[] = []
    for (const key of this.#pending.keys()) {
      const entry = this.#collection.get(key)
      if (entry === undefined || !entry.kind.isNarrowed) continue
      if (!this.#scope.includes(entry)) entry.claim = undefined
      else if (entry.claim === undefined) wanted.push(entry)
    }
    let missing = 0
    const next = async () => {
      for (let entry = wanted.pop(); entry !== undefined; entry = wanted.pop()) {
        if (!(await this.#fetch(entry))) missing++
      }
    }
    await Promise.all(Array.from({ length: fetchesAtOnce }, next))
    return missing
  }

  async #fetch(entry: Entry): Promise<boolean> {
    const { kind, version, namespace, name } = entry
    try {
      const path = objectPath(pathOf(kind, version), namespace, name)
      const object = await this.#options.client.get(path)
      const claim = observeObject(kind, version, object, this.#options)
      // Made again meanwhile: the watch will tell.
      if (claim.uid === entry.uid) entry.claim = claim
      return true
    } catch (error) {
      // Its end is about to be told.
      if (error instanceof KubeError && error.isNotFound) return false
      this.#options.onProblem(`${kind.kind} ${namespace}/${name} cannot be read: ${String(error)}`)
      return false
    }
  }

  /** Appends everything that is pending, as a listing where one has found it. */
  async #append(leading: Leadership, isRelist: boolean): Promise<void> {
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
        // What changed meanwhile stays pending, be it only that it counts again, and what has still
        // to be fetched.
        const isUnfetched = entry?.kind.isNarrowed && entry.claim === undefined
        const isDone = this.#pending.get(key) === before
        if (isDone && !(isUnfetched && this.#scope.includes(entry))) this.#pending.delete(key)
      }
    }
  }

  #listingOf(isEverything: boolean, keys: readonly string[]): Listing {
    const source = 'kubernetes'
    if (isEverything) return { source, scope: [...this.#settled].sort(), unread: this.#unread }
    return { source, scope: [...new Set(keys.map((key) => key.slice(0, key.indexOf('/'))))].sort() }
  }

  #changeOf(keys: readonly string[], index: ResourceIndex, cause: 'watch' | 'relist') {
    const claims = []
    const gone: IndexEntry[] = []
    for (const key of keys) {
      const entry = this.#collection.get(key)
      const known = index.get(key)
      const counts = entry !== undefined && this.#scope.includes(entry)
      if (counts && entry.claim !== undefined) claims.push(claimNow(entry.claim, entry.live))
      // Counts and could not be fetched yet: what the log has of it stays.
      else if (!counts && known !== undefined) gone.push(known)
    }
    return { claims, gone, cause }
  }

  #context({ index, epoch }: Leadership): WriterContext {
    const { clock, cluster } = this.#options
    const time = new Date(clock.now()).toISOString()
    return { source: index.source, time, epoch, cluster }
  }
}

/** With what the status says by now: it changes without the object. */
function claimNow(claim: ClusterClaim, live: LiveObject | undefined): ClusterClaim {
  const programmed = wasProgrammed(live)
  return programmed === undefined ? claim : { ...claim, programmed }
}
