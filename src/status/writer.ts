/**
 * Statuses into the cluster.
 *
 * ```
 *   decided or seen ──► marked ── settled, and not too soon ──► compared ──► right: nothing
 *                        ▲ ▲                                       │
 *                        │ └──── not decided for this version ◄────┤
 *                        │                                         │
 *                        └──── the object has changed (409) ◄─── written ──► refused: told, left
 * ```
 *
 * A key is marked when the fold decides about it and when its object changes, whoever changed it.
 * What is written is found out at the last moment, against the newest version that is known, and
 * the server takes it for that version only.
 */
import { type KubeClient, KubeError, type LiveObject, objectPath } from '../kube/index.ts'
import type { ObjectKey } from '../model/names.ts'
import { type Status, statusPatch } from './merge.ts'

interface StatusWriterOptions {
  readonly client: KubeClient
  /** What is decided for an object, and for which version of it. */
  wanted(key: ObjectKey): Decided
  /** The object as it was seen last. */
  live(key: ObjectKey): LiveObject | undefined
  /** An object as a read or a write has given it. */
  note(key: ObjectKey, object: Awaited<ReturnType<KubeClient['patchStatus']>>): void
  /** May this replica write now? Asked before every write. */
  isLeading(): boolean
  /** After a write, or where none was possible. */
  onOutcome(kind: string, outcome: WriteOutcome, message?: string): void
  readonly timing?: Partial<StatusTiming>
}

interface Decided {
  /** Undefined where the object has no status of ours. */
  readonly status: Status | undefined
  /** Undefined where nothing is known of the object. */
  readonly of: { readonly uid: string; readonly generation: number } | undefined
}

type WriteOutcome = 'written' | 'conflict' | 'refused' | 'failed'

/** All in milliseconds. */
interface StatusTiming {
  /** Quiet time before a write: one edit often changes a status in steps. */
  readonly settleMs: number
  /** Shortest time between two writes to one object. */
  readonly intervalMs: number
  /** Wait after an error that may pass. */
  readonly retryMs: number
  /** Wait where the version that was seen is not decided yet. */
  readonly behindMs: number
}

const defaultTiming: StatusTiming = { settleMs: 50, intervalMs: 500, retryMs: 1_000, behindMs: 100 }
const writesAtOnce = 16
const tickMs = 20

export class StatusWriter {
  readonly #options: StatusWriterOptions
  readonly #timing: StatusTiming
  /** Key -> when it may be written, by `performance.now()`. */
  readonly #due = new Map<ObjectKey, number>()
  readonly #writing = new Set<ObjectKey>()
  readonly #lastWrite = new Map<ObjectKey, number>()
  /** What we wrote, and what the server made of it: that again is no reason to write again. */
  readonly #made = new Map<ObjectKey, { readonly wanted: Status; readonly made: string }>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: StatusWriterOptions) {
    this.#options = options
    this.#timing = { ...defaultTiming, ...options.timing }
  }

  /** The decision about an object, or the object, may have changed. */
  mark(key: ObjectKey): void {
    if (!this.#options.isLeading() || this.#isClosed) return
    if (!this.#due.has(key)) this.#postpone(key, this.#timing.settleMs)
  }

  /** Number of objects that wait to be compared or written. */
  get depth(): number {
    return this.#due.size + this.#writing.size
  }

  /** Forgets what was to be written: another replica writes now. */
  clear(): void {
    this.#due.clear()
    this.#made.clear()
    this.#lastWrite.clear()
  }

  close(): void {
    this.#isClosed = true
    this.clear()
    clearTimeout(this.#timer)
  }

  #postpone(key: ObjectKey, waitMs: number): void {
    const now = performance.now()
    const soonest = (this.#lastWrite.get(key) ?? Number.NEGATIVE_INFINITY) + this.#timing.intervalMs
    this.#due.set(key, Math.max(now + waitMs, soonest))
    this.#timer ??= setTimeout(() => this.#tick(), tickMs)
  }

  #tick(): void {
    this.#timer = undefined
    const now = performance.now()
    for (const [key, due] of this.#due) {
      if (this.#writing.size >= writesAtOnce) break
      if (due > now || this.#writing.has(key)) continue
      this.#due.delete(key)
      this.#attempt(key)
    }
    if (this.#due.size > 0 && !this.#isClosed) {
      this.#timer ??= setTimeout(() => this.#tick(), tickMs)
    }
  }

  #attempt(key: ObjectKey): void {
    const { live, wanted, isLeading } = this.#options
    const object = live(key)
    if (object === undefined) {
      this.#made.delete(key)
      this.#lastWrite.delete(key)
      return
    }
    if (object.isDeleting || !isLeading()) return
    const { status: decided, of } = wanted(key)
    // The log is behind the watch: what is decided of the version before would be written in vain.
    if (of !== undefined && (of.uid !== object.uid || of.generation !== object.generation)) {
      this.#postpone(key, this.#timing.behindMs)
      return
    }
    const patch = statusPatch(object.kind, object.status, decided)
    if (patch === undefined || this.#isAsMade(key, decided, object)) return
    this.#writing.add(key)
    void this.#write(key, object, patch, decided).finally(() => this.#writing.delete(key))
  }

  #isAsMade(key: ObjectKey, decided: Status | undefined, { status }: LiveObject): boolean {
    const known = this.#made.get(key)
    return known !== undefined && known.wanted === decided && known.made === JSON.stringify(status)
  }

  async #write(
    key: ObjectKey,
    { kind, path, namespace, name, resourceVersion, uid }: LiveObject,
    patch: Status,
    decided: Status | undefined,
  ): Promise<void> {
    const { client, note, onOutcome } = this.#options
    const place = objectPath(path, namespace, name)
    try {
      const object = await client.patchStatus(place, resourceVersion, patch)
      this.#lastWrite.set(key, performance.now())
      note(key, object)
      if (decided !== undefined) {
        this.#made.set(key, { wanted: decided, made: JSON.stringify(object.status) })
      }
      onOutcome(kind, 'written')
    } catch (thrown) {
      const error = thrown instanceof KubeError ? thrown : new KubeError(0, '', String(thrown))
      if (error.isConflict) await this.#refresh(key, place, uid)
      this.#fail(key, kind, error)
    }
  }

  /** The object has changed since it was seen; the watch may be long in telling. */
  async #refresh(key: ObjectKey, place: string, uid: string): Promise<void> {
    try {
      const object = await this.#options.client.get(place)
      if (object.metadata.uid === uid) this.#options.note(key, object)
    } catch {
      // The watch tells, or the next try does.
    }
  }

  #fail(key: ObjectKey, kind: string, error: KubeError): void {
    const { onOutcome } = this.#options
    const message = `status of ${key}: ${error.message}`
    // It is gone.
    if (error.isNotFound) return
    if (error.isConflict) {
      onOutcome(kind, 'conflict')
      this.#postpone(key, this.#timing.settleMs)
      return
    }
    const isFinal = error.status === 422 || error.status === 400
    onOutcome(kind, isFinal ? 'refused' : 'failed', message)
    // What the server will never take is tried again only when something changes.
    if (!isFinal) this.#postpone(key, Math.max(this.#timing.retryMs, error.retryAfterMs ?? 0))
  }
}
