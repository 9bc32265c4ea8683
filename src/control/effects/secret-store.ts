/**
 * Values of secrets, in memory only. A source adds each value before it appends the event
 * with the value's digest. Values are added to published changes as separate resources, so that neither
 * the log nor the desired state contains them.
 *
 * ```
 *   source ──keep──► values ──join──► published change + secrets that its resources refer to
 *     ▲                │  │
 *     └────onMissing───┼──┘ a published resource refers to a value that is not there
 *                      │
 *                      └──retain──► removed, if neither the source nor a resource has the digest
 * ```
 */
import { SetMap } from '../../ground/base/set-map.ts'
import {
  type DesiredDelta,
  type ResourceKey,
  secretKey,
  secretRefsOf,
  secretResource,
  type VersionedResource,
} from '../../ground/model/resources.ts'

interface SecretStoreOptions {
  /** Called when a value arrives that a published resource refers to; `late` returns it. */
  readonly onArrival: () => void
  /** Called with digests that published resources newly refer to, but whose values are missing. */
  readonly onMissing?: (digests: ReadonlySet<string>) => void
}

export class SecretStore {
  readonly #options: SecretStoreOptions
  readonly #values = new Map<string, Uint8Array>()
  readonly #own = new Set<string>()
  /** Published resources that refer to secrets. */
  readonly #referringResources = new Map<ResourceKey, VersionedResource>()
  /** Digest -> keys of the resources that refer to it. */
  readonly #references = new SetMap<string, ResourceKey>()
  /** Digests of the values that are published. */
  readonly #published = new Set<string>()
  /** Digests whose value arrived after resources that refer to it were published. */
  readonly #arrived = new Set<string>()
  /** Position of the last change set. */
  #sequence = 0

  constructor(options: SecretStoreOptions) {
    this.#options = options
  }

  /** Adds a value. The bytes are copied. */
  keep(digest: string, value: Uint8Array): void {
    if (this.#values.has(digest)) return
    this.#values.set(digest, Uint8Array.from(value))
    if (!this.#references.has(digest)) return
    this.#arrived.add(digest)
    if (this.#arrived.size === 1) queueMicrotask(this.#options.onArrival)
  }

  /** Adds a value of the gateway itself, which is never removed. */
  keepAlways(digest: string, value: Uint8Array): void {
    this.#own.add(digest)
    this.keep(digest, value)
  }

  /** Adds the values that a change set newly refers to, and removes those it no longer refers to. */
  join(delta: DesiredDelta): DesiredDelta {
    const touched = new Set<string>()
    for (const key of delta.removed) this.#refer(key, undefined, touched)
    for (const one of delta.upserted) this.#refer(one.resource.key, one, touched)
    this.#sequence = delta.sequence
    const { upserted, removed } = this.#settle(touched)
    this.#reportMissing(touched)
    return {
      sequence: delta.sequence,
      upserted: [...upserted, ...delta.upserted],
      removed: [...delta.removed, ...removed],
    }
  }

  /**
   * Returns values that arrived late, with the resources that refer to them: proxies that rejected these
   * resources then retry. Returns undefined if there are none.
   */
  late(): DesiredDelta | undefined {
    const arrived = new Set(this.#arrived)
    this.#arrived.clear()
    const { upserted } = this.#settle(arrived)
    if (upserted.length === 0) return undefined
    const keys = new Set([...arrived].flatMap((digest) => [...this.#references.get(digest)]))
    const again = [...keys].flatMap((key) => this.#referringResources.get(key) ?? [])
    return { sequence: this.#sequence, upserted: [...upserted, ...again], removed: [] }
  }

  /** Removes every value that is neither live nor referred to. */
  retain(live: ReadonlySet<string>): void {
    for (const digest of this.#values.keys()) {
      const isWanted = live.has(digest) || this.#own.has(digest) || this.#references.has(digest)
      if (!isWanted) this.#values.delete(digest)
    }
  }

  /** A value for requests of this process; undefined if it is unknown. */
  value(digest: string): Uint8Array | undefined {
    return this.#values.get(digest)
  }

  /** Number of values. */
  get size(): number {
    return this.#values.size
  }

  #reportMissing(touched: ReadonlySet<string>): void {
    const missing = [...touched].filter(
      (digest) => this.#references.has(digest) && !this.#values.has(digest),
    )
    if (missing.length > 0) this.#options.onMissing?.(new Set(missing))
  }

  #refer(key: ResourceKey, after: VersionedResource | undefined, touched: Set<string>): void {
    const before = this.#referringResources.get(key)
    const old = before === undefined ? [] : secretRefsOf(before.resource)
    const fresh = after === undefined ? [] : secretRefsOf(after.resource)
    for (const { digest } of old) {
      this.#references.delete(digest, key)
      touched.add(digest)
    }
    for (const { digest } of fresh) {
      this.#references.add(digest, key)
      touched.add(digest)
    }
    if (after === undefined || fresh.length === 0) this.#referringResources.delete(key)
    else this.#referringResources.set(key, after)
  }

  #settle(touched: ReadonlySet<string>): { upserted: VersionedResource[]; removed: string[] } {
    const upserted: VersionedResource[] = []
    const removed: ResourceKey[] = []
    for (const digest of touched) {
      const isWanted = this.#references.has(digest)
      if (!isWanted && this.#published.delete(digest)) removed.push(secretKey(digest))
      const value = this.#values.get(digest)
      if (!isWanted || value === undefined || this.#published.has(digest)) continue
      this.#published.add(digest)
      upserted.push(secretResource(digest, value))
    }
    return { upserted, removed }
  }
}
