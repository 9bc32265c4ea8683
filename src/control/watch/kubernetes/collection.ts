/** Keeps the newest observed version of every object, by kind, namespace and name. */
import { SetMap } from '../../../ground/base/set-map.ts'
import type { KubeObject, LiveObject } from '../../kube/index.ts'
import { digestsOf, hasSecret, type ObserveOptions } from '../observed.ts'
import { keyOf } from '../resource-index.ts'
import { type MentionedNames, mentionsOf } from './interest.ts'
import type { PagedListing } from './kind-watch.ts'
import { pathOf, type WatchedKind } from './kinds.ts'
import { type ClusterClaim, isNewer, nameOf, observeObject } from './observe.ts'

export interface CollectionEntry {
  readonly key: string
  readonly kind: WatchedKind
  readonly version: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly revision: string
  readonly labels: Readonly<Record<string, string>>
  /** Undefined if only metadata was observed. */
  claim: ClusterClaim | undefined
  /** Set for kinds whose status this controller writes. */
  readonly live: LiveObject | undefined
  /** Versions with equal stamps differ only in their status. Empty if that cannot be known. */
  readonly stamp: string
}

interface CollectionOptions extends ObserveOptions {
  /** Called when an entry was added, changed or removed. If `isGone`, `entry` is the last version. */
  onEntry(entry: CollectionEntry, isGone: boolean, mentions: MentionedNames | undefined): void
  onLive(key: string): void
  /** Whether an object is relevant now. */
  isRelevant(entry: CollectionEntry): boolean
}

/** Maximum number of uids of deleted objects that are kept, to ignore late events about them. */
const maxTombstones = 20_000

export class Collection {
  readonly #options: CollectionOptions
  readonly #entries = new Map<string, CollectionEntry>()
  readonly #byKind = new SetMap<string, string>()
  readonly #tombstones = new Set<string>()

  constructor(options: CollectionOptions) {
    this.#options = options
  }

  get(key: string): CollectionEntry | undefined {
    return this.#entries.get(key)
  }

  entries(): IterableIterator<CollectionEntry> {
    return this.#entries.values()
  }

  /** Keys of the objects of a kind. */
  keysOf(kind: string): ReadonlySet<string> {
    return this.#byKind.get(kind)
  }

  /** Digests of all secret values of relevant objects. */
  secretDigests(): Set<string> {
    return digestsOf(this.#claims())
  }

  /** Objects that have any of these secret values. */
  withSecrets(digests: ReadonlySet<string>): CollectionEntry[] {
    const entries = [...this.#entries.values()]
    return entries.filter(({ claim }) => claim !== undefined && hasSecret(claim, digests))
  }

  *#claims(): Iterable<ClusterClaim> {
    for (const { claim } of this.#entries.values()) if (claim !== undefined) yield claim
  }

  get size(): number {
    return this.#entries.size
  }

  /** Stores an observed object, unless a newer version is known. */
  put(kind: WatchedKind, version: string, object: KubeObject, isListed = false): void {
    const name = nameOf(kind, object)
    const key = keyOf(name)
    const { uid = '', resourceVersion = '', labels = {} } = object.metadata
    const before = this.#entries.get(key)
    if (!isListed && this.#tombstones.has(uid)) return
    if (before?.uid === uid && !isNewer(resourceVersion, before.revision)) {
      // A listing is authoritative even if versions went back, as after a restored backup.
      if (!isListed || before.revision === resourceVersion) return
    }
    const entry: CollectionEntry = {
      key,
      kind,
      version,
      namespace: name.namespace,
      name: name.name,
      uid,
      revision: resourceVersion,
      labels,
      claim: undefined,
      live: newestLive(before, kind.hasStatus ? liveOf(kind, version, object) : undefined),
      stamp: stampOf(kind, version, object),
    }
    this.#store(entry, before, object)
  }

  /** Removes an object that the watch has reported as deleted. */
  remove(kind: WatchedKind, object: KubeObject): void {
    const { uid = '' } = object.metadata
    const key = keyOf(nameOf(kind, object))
    this.#bury(uid)
    const entry = this.#entries.get(key)
    // The object was created again before its deletion was observed.
    if (entry === undefined || entry.uid !== uid) return
    this.#forget(entry)
  }

  /** Stores the result of a status write, unless the watch has reported a newer version. */
  noteWrite(key: string, object: KubeObject): void {
    const entry = this.#entries.get(key)
    const { uid, resourceVersion = '' } = object.metadata
    if (entry === undefined || entry.uid !== uid || entry.live === undefined) return
    if (!isNewer(resourceVersion, entry.live.resourceVersion)) return
    const live = liveOf(entry.kind, entry.version, object)
    this.#entries.set(key, { ...entry, live })
  }

  listing(kind: WatchedKind, version: string): PagedListing {
    const seen = new Set<string>()
    return {
      page: (objects) => {
        for (const object of objects) {
          seen.add(keyOf(nameOf(kind, object)))
          this.put(kind, version, object, true)
        }
      },
      finish: () => {
        for (const key of [...this.keysOf(kind.kind)]) {
          const entry = this.#entries.get(key)
          if (entry === undefined || seen.has(key)) continue
          this.#bury(entry.uid)
          this.#forget(entry)
        }
      },
    }
  }

  #store(entry: CollectionEntry, before: CollectionEntry | undefined, object: KubeObject): void {
    const { key, kind, version } = entry
    const isSame = before?.uid === entry.uid && before.stamp === entry.stamp && entry.stamp !== ''
    if (isSame && before.claim !== undefined) {
      // Only the status changed: the claim stays.
      this.#entries.set(key, { ...entry, claim: before.claim })
      if (entry.live !== undefined) this.#options.onLive(key)
      return
    }
    if (!kind.isNarrowed || (!kind.isMetadataOnly && this.#options.isRelevant(entry)))
      entry.claim = observeObject(kind, version, object, this.#options)
    this.#entries.set(key, entry)
    this.#byKind.add(kind.kind, key)
    this.#options.onEntry(entry, false, mentionsOf(kind.kind, object.spec))
    if (entry.live !== undefined) this.#options.onLive(key)
  }

  #forget(entry: CollectionEntry): void {
    this.#entries.delete(entry.key)
    this.#byKind.delete(entry.kind.kind, entry.key)
    this.#options.onEntry(entry, true, undefined)
    if (entry.live !== undefined) this.#options.onLive(entry.key)
  }

  #bury(uid: string): void {
    this.#tombstones.add(uid)
    if (this.#tombstones.size <= maxTombstones) return
    const [oldest] = this.#tombstones
    if (oldest !== undefined) this.#tombstones.delete(oldest)
  }
}

function liveOf(kind: WatchedKind, version: string, object: KubeObject): LiveObject {
  const { metadata, status } = object
  return {
    kind: kind.kind,
    path: pathOf(kind, version),
    namespace: kind.namespaced ? (metadata.namespace ?? '') : '',
    name: metadata.name,
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    generation: metadata.generation ?? 0,
    isDeleting: metadata.deletionTimestamp !== undefined,
    status: status as LiveObject['status'],
  }
}

/** Returns the newer object: the result of our last write may be newer than what the watch reports. */
function newestLive(
  before: CollectionEntry | undefined,
  observed: LiveObject | undefined,
): LiveObject | undefined {
  const known = before?.live
  if (known === undefined || known.uid !== observed?.uid) return observed
  return isNewer(known.resourceVersion, observed.resourceVersion) ? known : observed
}

/**
 * Returns the stamp of a version: all metadata that is recorded, including the generation. Returns an empty
 * stamp for kinds without status or generations.
 */
function stampOf({ hasStatus }: WatchedKind, version: string, { metadata }: KubeObject): string {
  if (!hasStatus || metadata.generation === undefined) return ''
  const { resourceVersion: _, managedFields: __, ...rest } = metadata
  return JSON.stringify([version, rest])
}
