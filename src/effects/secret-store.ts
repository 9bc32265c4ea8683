/**
 * Values of secrets, in memory only. A source brings them, by digest, before the event that names
 * the digest; they join the published changes as resources of their own, so that neither the log
 * nor the desired state ever holds one.
 *
 * ```
 *   source ──keep──► values ──join──► published change + secrets that its resources refer to
 *                      │
 *                      └──retain──► gone, when neither the source nor a resource knows the digest
 * ```
 */
import type {
  DesiredDelta,
  ResourceKey,
  SecretResource,
  VersionedResource,
} from '../model/resources.ts'
import { secretKey, secretRefsOf } from '../model/resources.ts'

export class SecretStore {
  readonly #onArrival: () => void
  readonly #values = new Map<string, Uint8Array>()
  readonly #own = new Set<string>()
  /** Published resources that refer to secrets. */
  readonly #referring = new Map<ResourceKey, VersionedResource>()
  /** Digest -> keys of the resources that refer to it. */
  readonly #references = new Map<string, Set<ResourceKey>>()
  /** Digests of the values that are published. */
  readonly #published = new Set<string>()
  /** Digests that were published without their value, which has come since. */
  readonly #arrived = new Set<string>()
  /** Of the last change set. */
  #sequence = 0

  /** `onArrival`: a value has come that a published resource waits for; `late` has it. */
  constructor(onArrival: () => void) {
    this.#onArrival = onArrival
  }

  /** Takes a value in. The bytes are copied. */
  keep(digest: string, value: Uint8Array): void {
    if (this.#values.has(digest)) return
    this.#values.set(digest, Uint8Array.from(value))
    if (!this.#references.has(digest)) return
    this.#arrived.add(digest)
    if (this.#arrived.size === 1) queueMicrotask(this.#onArrival)
  }

  /** Takes in a value of the gateway's own, which is never forgotten. */
  keepAlways(digest: string, value: Uint8Array): void {
    this.#own.add(digest)
    this.keep(digest, value)
  }

  /** A change set with the values that it newly refers to, and without those it no longer does. */
  join(delta: DesiredDelta): DesiredDelta {
    const touched = new Set<string>()
    for (const key of delta.removed) this.#refer(key, undefined, touched)
    for (const one of delta.upserted) this.#refer(one.resource.key, one, touched)
    this.#sequence = delta.sequence
    const { upserted, removed } = this.#settle(touched)
    return {
      sequence: delta.sequence,
      upserted: [...upserted, ...delta.upserted],
      removed: [...delta.removed, ...removed],
    }
  }

  /**
   * Values that came after what refers to them was published, with those resources once more, so
   * that whoever refused them tries again; undefined where there are none.
   */
  late(): DesiredDelta | undefined {
    const arrived = new Set(this.#arrived)
    this.#arrived.clear()
    const { upserted } = this.#settle(arrived)
    if (upserted.length === 0) return undefined
    const keys = new Set(
      [...arrived].flatMap((digest) => [...(this.#references.get(digest) ?? [])]),
    )
    const again = [...keys].flatMap((key) => this.#referring.get(key) ?? [])
    return { sequence: this.#sequence, upserted: [...upserted, ...again], removed: [] }
  }

  /** Forgets every value that is neither live nor referred to. */
  retain(live: ReadonlySet<string>): void {
    for (const digest of this.#values.keys()) {
      const isWanted = live.has(digest) || this.#own.has(digest) || this.#references.has(digest)
      if (!isWanted) this.#values.delete(digest)
    }
  }

  /** A value, for calls that this process makes itself; undefined where it is not known. */
  value(digest: string): Uint8Array | undefined {
    return this.#values.get(digest)
  }

  /** Number of values that are held. */
  get size(): number {
    return this.#values.size
  }

  #refer(key: ResourceKey, after: VersionedResource | undefined, touched: Set<string>): void {
    const before = this.#referring.get(key)
    const old = before === undefined ? [] : secretRefsOf(before.resource)
    const fresh = after === undefined ? [] : secretRefsOf(after.resource)
    for (const { digest } of old) {
      const keys = this.#references.get(digest)
      keys?.delete(key)
      if (keys?.size === 0) this.#references.delete(digest)
      touched.add(digest)
    }
    for (const { digest } of fresh) {
      const keys = this.#references.get(digest) ?? new Set()
      this.#references.set(digest, keys.add(key))
      touched.add(digest)
    }
    if (after === undefined || fresh.length === 0) this.#referring.delete(key)
    else this.#referring.set(key, after)
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
      upserted.push({ version: digest, resource: secretResource(digest, value) })
    }
    return { upserted, removed }
  }
}

function secretResource(digest: string, value: Uint8Array): SecretResource {
  return { type: 'secret', key: secretKey(digest), digest, value }
}
