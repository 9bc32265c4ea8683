/**
 * Writes statuses into the cluster.
 *
 * ```
 *   decided or observed ──► marked ── settled, and not too soon ──► compared ──► equal: nothing
 *                            ▲ ▲                                       │
 *                            │ └──── not decided for this version ◄────┤
 *                            │                                         │
 *                            └──── the object has changed (409) ◄─── written ──► refused: reported
 * ```
 *
 * A key is marked when the fold decides about it and when its object changes. The patch is computed
 * right before the write, against the newest known version, and applies to that version only.
 */

import type { ObjectKey } from '../../ground/model/names.ts'
import type { Status } from '../desired/status-store.ts'
import { type KubeClient, KubeError, type LiveObject, objectPath } from '../kube/index.ts'
import { statusPatch } from './merge.ts'

interface StatusWriterOptions {
  readonly client: KubeClient
  /** Returns the decided status of an object, and the version that it is about. */
  wanted(key: ObjectKey): Decided
  /** Returns the object as last observed. */
  live(key: ObjectKey): LiveObject | undefined
  /** Called with the result of a read or a write. */
  note(key: ObjectKey, object: Awaited<ReturnType<KubeClient['patchStatus']>>): void
  /** Whether this replica may write now; called before every write. */
  isLeading(): boolean
  /** Called after a successful write with the object as it was before, and its new status. */
  onWritten(before: LiveObject, status: Status | undefined): void
  /** Called after every write, successful or not. */
  onOutcome(kind: string, outcome: WriteOutcome, message?: string): void
}

interface Decided {
  /** Undefined if the object has no status of ours. */
  readonly status: Status | undefined
  /** Undefined if the fold does not have the object. */
  readonly of: { readonly uid: string; readonly generation: number } | undefined
}

type WriteOutcome = 'written' | 'conflict' | 'refused' | 'failed'

/** Quiet time before a write: one edit often changes a status in steps. */
const settleMs = 50
/** Shortest time between two writes to one object. */
const intervalMs = 500
/** Wait after an error that may pass. */
const retryMs = 1_000
/** Wait if the fold has not decided yet about the current version of the object. */
const behindMs = 100
const maxParallelWrites = 16
const tickMs = 20

export class StatusWriter {
  readonly #options: StatusWriterOptions
  /** Key -> when it may be written, by `performance.now()`. */
  readonly #due = new Map<ObjectKey, number>()
  readonly #writing = new Set<ObjectKey>()
  readonly #lastWrite = new Map<ObjectKey, number>()
  /** The last written status, and the server's result. While both stay the same, nothing is due. */
  readonly #written = new Map<ObjectKey, { readonly wanted: Status; readonly result: string }>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: StatusWriterOptions) {
    this.#options = options
  }

  /** Schedules a comparison. Called when an object, or the decision about it, may have changed. */
  mark(key: ObjectKey): void {
    if (!this.#options.isLeading() || this.#isClosed) return
    if (!this.#due.has(key)) this.#postpone(key, settleMs)
  }

  /** Number of objects that are to be compared or written. */
  get depth(): number {
    return this.#due.size + this.#writing.size
  }

  /** Drops pending writes, since another replica writes now. */
  clear(): void {
    this.#due.clear()
    this.#written.clear()
    this.#lastWrite.clear()
  }

  close(): void {
    this.#isClosed = true
    this.clear()
    clearTimeout(this.#timer)
  }

  #postpone(key: ObjectKey, waitMs: number): void {
    const now = performance.now()
    const soonest = (this.#lastWrite.get(key) ?? Number.NEGATIVE_INFINITY) + intervalMs
    this.#due.set(key, Math.max(now + waitMs, soonest))
    this.#timer ??= setTimeout(() => this.#tick(), tickMs)
  }

  #tick(): void {
    this.#timer = undefined
    const now = performance.now()
    for (const [key, due] of this.#due) {
      if (this.#writing.size >= maxParallelWrites) break
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
      this.#written.delete(key)
      this.#lastWrite.delete(key)
      return
    }
    if (object.isDeleting || !isLeading()) return
    const { status: decided, of } = wanted(key)
    // The log is behind the watch: the decision is about an older version.
    if (of !== undefined && (of.uid !== object.uid || of.generation !== object.generation)) {
      this.#postpone(key, behindMs)
      return
    }
    const patch = statusPatch(object.kind, object.status, decided)
    if (patch === undefined || this.#isAsWritten(key, decided, object)) return
    this.#writing.add(key)
    void this.#write(key, object, patch, decided).finally(() => this.#writing.delete(key))
  }

  #isAsWritten(key: ObjectKey, decided: Status | undefined, { status }: LiveObject): boolean {
    const known = this.#written.get(key)
    return (
      known !== undefined && known.wanted === decided && known.result === JSON.stringify(status)
    )
  }

  async #write(
    key: ObjectKey,
    before: LiveObject,
    patch: Status,
    decided: Status | undefined,
  ): Promise<void> {
    const { client, note, onOutcome, onWritten } = this.#options
    const { kind, path, namespace, name, resourceVersion, uid } = before
    const place = objectPath(path, namespace, name)
    try {
      const object = await client.patchStatus(place, resourceVersion, patch)
      this.#lastWrite.set(key, performance.now())
      note(key, object)
      if (decided !== undefined) {
        this.#written.set(key, { wanted: decided, result: JSON.stringify(object.status) })
      }
      onOutcome(kind, 'written')
      onWritten(before, object.status as Status | undefined)
    } catch (thrown) {
      const error = thrown instanceof KubeError ? thrown : new KubeError(0, '', String(thrown))
      if (error.isConflict) await this.#refresh(key, place, uid)
      this.#fail(key, kind, error)
    }
  }

  /** Reads an object that has changed, since the watch may report it late. */
  async #refresh(key: ObjectKey, place: string, uid: string): Promise<void> {
    try {
      const object = await this.#options.client.get(place)
      if (object.metadata.uid === uid) this.#options.note(key, object)
    } catch {
      // The watch or the next attempt will get the object.
    }
  }

  #fail(key: ObjectKey, kind: string, error: KubeError): void {
    const { onOutcome } = this.#options
    const message = `status of ${key}: ${error.message}`
    // The object is deleted.
    if (error.isNotFound) return
    if (error.isConflict) {
      onOutcome(kind, 'conflict')
      this.#postpone(key, settleMs)
      return
    }
    const isFinal = error.status === 422 || error.status === 400
    onOutcome(kind, isFinal ? 'refused' : 'failed', message)
    // A status that the server refuses permanently is retried only after a change.
    if (!isFinal) this.#postpone(key, Math.max(retryMs, error.retryAfterMs ?? 0))
  }
}
