/** What the watches have seen: the newest version of every object, by kind, namespace and name. */
import type { KubeObject, LiveObject } from '../../kube/index.ts'
import type { ObserveOptions } from '../observed.ts'
import { keyOf } from '../resource-index.ts'
import { type Mentions, mentionsOf } from './interest.ts'
import type { Listing } from './kind-watch.ts'
import { pathOf, type WatchedKind } from './kinds.ts'
import { type ClusterClaim, isNewer, nameOf, observeObject } from './observe.ts'

export interface Entry {
  readonly key: string
  readonly kind: WatchedKind
  readonly version: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly revision: string
  readonly labels: Readonly<Record<string, string>>
  /** Absent where only metadata was seen. */
  claim: ClusterClaim | undefined
  /** Present for kinds whose status is ours to write. */
  readonly live: LiveObject | undefined
  /** Everything but status and bookkeeping, as far as that tells whether anything else changed. */
  readonly stamp: string
}

interface CollectionOptions extends ObserveOptions {
  /** An entry has come, changed, or gone (then the entry is the last one). */
  onEntry(entry: Entry, isGone: boolean, mentions: Mentions | undefined): void
  onLive(key: string): void
  /** Does an object count at present? */
  counts(entry: Entry): boolean
}

/** Uids of objects that are gone, as many as a late event may speak of. */
const keptTombstones = 20_000

export class Collection {
  readonly #options: CollectionOptions
  readonly #entries = new Map<string, Entry>()
  readonly #byKind = new Map<string, Set<string>>()
  readonly #tombstones = new Set<string>()

  constructor(options: CollectionOptions) {
    this.#options = options
  }

  get(key: string): Entry | undefined {
    return this.#entries.get(key)
  }

  entries(): IterableIterator<Entry> {
    return this.#entries.values()
  }

  /** Keys of the objects of a kind. */
  keysOf(kind: string): ReadonlySet<string> {
    return this.#byKind.get(kind) ?? new Set()
  }

  get size(): number {
    return this.#entries.size
  }

  /** Takes an object as a watch or a listing has it, unless something newer is known. */
  put(kind: WatchedKind, version: string, object: KubeObject, isListed = false): void {
    const name = nameOf(kind, object)
    const key = keyOf(name)
    const { uid = '', resourceVersion = '', labels = {} } = object.metadata
    const before = this.#entries.get(key)
    if (!isListed && this.#tombstones.has(uid)) return
    if (before?.uid === uid && !isNewer(resourceVersion, before.revision)) {
      // A listing is the truth even where versions went back, as after a restored backup.
      if (!isListed || before.revision === resourceVersion) return
    }
    const entry: Entry = {
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

  /** Takes the end of an object. */
  remove(kind: WatchedKind, object: KubeObject): void {
    const { uid = '' } = object.metadata
    const key = keyOf(nameOf(kind, object))
    this.#bury(uid)
    const entry = this.#entries.get(key)
    // Made again before its end was told.
    if (entry === undefined || entry.uid !== uid) return
    this.#forget(entry)
  }

  /** What a status writer has got back for its write: newer than what the watch has told so far. */
  noteWrite(key: string, object: KubeObject): void {
    const entry = this.#entries.get(key)
    const { uid, resourceVersion = '' } = object.metadata
    if (entry === undefined || entry.uid !== uid || entry.live === undefined) return
    if (!isNewer(resourceVersion, entry.live.resourceVersion)) return
    const live = liveOf(entry.kind, entry.version, object)
    this.#entries.set(key, { ...entry, live })
  }

  listing(kind: WatchedKind, version: string): Listing {
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

  #store(entry: Entry, before: Entry | undefined, object: KubeObject): void {
    const { key, kind, version } = entry
    const isSame = before?.uid === entry.uid && before.stamp === entry.stamp && entry.stamp !== ''
    if (isSame && before.claim !== undefined) {
      // Only its status is other: what is recorded of it stands.
      this.#entries.set(key, { ...entry, claim: before.claim })
      if (entry.live !== undefined) this.#options.onLive(key)
      return
    }
    if (!kind.isNarrowed || (!kind.isMetadataOnly && this.#options.counts(entry)))
      entry.claim = observeObject(kind, version, object, this.#options)
    this.#entries.set(key, entry)
    const keys = this.#byKind.get(kind.kind) ?? new Set()
    this.#byKind.set(kind.kind, keys.add(key))
    this.#options.onEntry(entry, false, mentionsOf(kind.kind, object.spec))
    if (entry.live !== undefined) this.#options.onLive(key)
  }

  #forget(entry: Entry): void {
    this.#entries.delete(entry.key)
    this.#byKind.get(entry.kind.kind)?.delete(entry.key)
    this.#options.onEntry(entry, true, undefined)
    if (entry.live !== undefined) this.#options.onLive(entry.key)
  }

  #bury(uid: string): void {
    this.#tombstones.add(uid)
    if (this.#tombstones.size <= keptTombstones) return
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

/** What a write of ours gave back may be newer than what the watch tells. */
function newestLive(
  before: Entry | undefined,
  seen: LiveObject | undefined,
): LiveObject | undefined {
  const known = before?.live
  if (known === undefined || seen === undefined || known.uid !== seen.uid) return seen
  return isNewer(known.resourceVersion, seen.resourceVersion) ? known : seen
}

/**
 * Equal stamps: nothing that is recorded differs. Where the API server counts generations, metadata
 * and generation tell; elsewhere nothing but the whole object does, and there is no stamp.
 */
function stampOf({ hasStatus }: WatchedKind, version: string, { metadata }: KubeObject): string {
  if (!hasStatus || metadata.generation === undefined) return ''
  const {
    resourceVersion: _,
    managedFields: __,
    ...rest
  } = metadata as unknown as {
    readonly [field: string]: unknown
  }
  return JSON.stringify([version, rest])
}
