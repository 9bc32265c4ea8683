/**
 * A lease kept in one record. Every replica can read the record, and a write succeeds only if it
 * replaces the newest version. The record is a Kubernetes object, or an entry of a NATS key-value
 * bucket.
 *
 * ```
 *   watching ── it is free, or has not changed for its whole duration ──► taking
 *   taking ── the store took our version ──► holding ── renewed in time ──► holding
 *      │ another replica was faster               │ not renewed in time, or taken by another
 *      ▼                                          ▼
 *   watching ◄────────────────────────────────────┘
 * ```
 *
 * Clocks of different machines are never compared: a candidate measures by its own clock how long
 * the record has not changed. The epoch rises with every change of holder.
 */
import { setTimeout as after } from 'node:timers/promises'

/** The content of the record. */
export interface LeaseRecord {
  /** Version of the record, which changes with every write. */
  readonly version: string
  /** Identity of the replica that holds the lease; not set after it was given up. */
  readonly holder?: string
  /** How long the holder counts as alive without a write, in milliseconds. */
  readonly durationMs: number
  readonly epoch: number
  /** The candidate that asks the holder to give the lease up, because it cannot start without it. */
  readonly wantedBy?: string
}

/** Stores the record. `read` and `write` reject if the store does not answer. */
export interface LeaseStore {
  /** Returns undefined if there is no record. A response after `timeoutMs` is useless. */
  read(timeoutMs: number): Promise<LeaseRecord | undefined>
  /**
   * Replaces the record `before`, which was read last; creates the record if `before` is undefined.
   * Returns undefined if another replica was faster.
   */
  write(
    before: LeaseRecord | undefined,
    content: Omit<LeaseRecord, 'version'>,
    timeoutMs: number,
  ): Promise<LeaseRecord | undefined>
  close?(): Promise<void>
}

export interface LeaseOptions {
  readonly store: LeaseStore
  /** Names this run of this replica; never used twice. */
  readonly identity: string
  /** How long a holder counts as alive without renewing the lease, in milliseconds. */
  readonly durationMs: number
  /** Returns the highest epoch in the log; the next epoch is higher. */
  readonly highestEpoch: () => number
  /** Whether this replica could do the work of a holder now. If not, it does not take the lease. */
  readonly isFit: () => boolean
  /**
   * Whether this replica cannot serve any proxy without the lease, although the holder is alive. This
   * happens after the log has moved: the new log is empty until one of its own replicas writes it. The
   * replica then asks the holder for the lease.
   */
  readonly needsIt?: () => boolean
  /** Whether this replica could continue to serve without the lease. If so, it gives it up on request. */
  readonly mayYield?: () => boolean
  /** Whether a holder is certainly gone, such as an earlier process that had this machine's lock. */
  readonly isGone?: (holder: string) => boolean
  /** Called when this replica has acquired the lease. `epoch` is higher than all earlier epochs. */
  onAcquired(epoch: number): void
  /** Called when this replica has lost the lease; it must not continue writes that it has begun. */
  onLost(reason: string): void
  onProblem(message: string): void
}

/** Number of lease durations for which a candidate that needs the lease waits before it asks for it. */
const patienceInDurations = 2

export class Lease {
  readonly #options: LeaseOptions
  readonly #term: Term
  readonly #stop = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #expiry: NodeJS.Timeout | undefined
  /** Version of the record as last read, and since when it has not changed. */
  #lastVersion: { readonly version: string; readonly at: Instant } | undefined
  /** Until then, by `performance.now()`, this replica leaves the lease to others. */
  #abstainUntil = 0
  /** When this replica began to need the lease, by `performance.now()`; undefined if it does not. */
  #neededSince: number | undefined

  constructor(options: LeaseOptions) {
    this.#options = options
    this.#term = new Term(options.durationMs)
  }

  start(): void {
    this.#running = this.#run()
  }

  /** The epoch while this replica certainly holds the lease, judged by its own clocks; else undefined. */
  epoch(): number | undefined {
    return this.#term.epoch
  }

  /** Gives the lease up if this replica holds it, and leaves it to others for one duration. */
  async resign(reason: string): Promise<void> {
    if (this.#term.granted === undefined) return
    this.#abstainUntil = performance.now() + this.#options.durationMs
    this.#lose(reason)
    await this.#release()
  }

  /** Gives the lease up and stops. */
  async close(): Promise<void> {
    this.#stop.abort()
    await this.#running
    const held = this.#term.granted !== undefined
    clearTimeout(this.#expiry)
    this.#term.end()
    if (held) await this.#release()
    await this.#options.store.close?.()
  }

  async #run(): Promise<void> {
    const { durationMs, onProblem } = this.#options
    const { signal } = this.#stop
    while (!signal.aborted) {
      try {
        await this.#round()
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error)
        if (!signal.aborted) onProblem(`the lease cannot be read or written: ${message}`)
      }
      // The random part keeps replicas that started together from asking together.
      const waitMs = (durationMs / 5) * (0.8 + Math.random() * 0.4)
      await after(waitMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async #round(): Promise<void> {
    const { identity, isFit } = this.#options
    const record = await this.#read()
    if (this.#term.granted !== undefined && this.#term.leftMs <= 0) {
      this.#lose('it was not renewed in time')
    }
    if (record?.holder === identity && this.#term.granted !== undefined) {
      if (this.#isAskedFor(record)) {
        await this.resign(`${record.wantedBy} cannot begin without it: it has another log`)
      } else await this.#renew(record)
      return
    }
    if (this.#term.granted !== undefined) this.#lose('another replica holds the lease')
    if (performance.now() < this.#abstainUntil || !isFit()) return
    if (record === undefined || this.#isFree(record)) await this.#take(record)
    else await this.#askFor(record)
  }

  #isAskedFor({ wantedBy }: LeaseRecord): boolean {
    const { identity, mayYield } = this.#options
    return wantedBy !== undefined && wantedBy !== identity && mayYield?.() === true
  }

  /** Asks a live holder for the lease if this replica has needed it for long enough. */
  async #askFor(record: LeaseRecord): Promise<void> {
    const { identity, needsIt, durationMs, store } = this.#options
    if (needsIt?.() !== true) {
      this.#neededSince = undefined
      return
    }
    this.#neededSince ??= performance.now()
    const patienceMs = durationMs * patienceInDurations
    if (record.wantedBy !== undefined || performance.now() - this.#neededSince < patienceMs) return
    const { version: _, ...content } = record
    const asked = await store.write(record, { ...content, wantedBy: identity }, this.#limitMs)
    if (asked !== undefined) this.#note(asked)
  }

  async #read(): Promise<LeaseRecord | undefined> {
    const record = await this.#options.store.read(this.#limitMs)
    if (record !== undefined) this.#note(record)
    return record
  }

  #note({ version }: LeaseRecord): void {
    if (this.#lastVersion?.version !== version) this.#lastVersion = { version, at: Term.now() }
  }

  #isFree({ holder, durationMs, wantedBy = this.#options.identity }: LeaseRecord): boolean {
    const { identity, isGone } = this.#options
    // The lease was given up for another replica, which should take it soon.
    if (holder === undefined && wantedBy !== identity && !this.#isUnchangedFor(durationMs)) {
      return false
    }
    // A record that still names this replica is free as well: its term is over.
    if (holder === undefined || holder === identity || isGone?.(holder) === true) return true
    return this.#isUnchangedFor(durationMs)
  }

  #isUnchangedFor(waitMs: number): boolean {
    return performance.now() - (this.#lastVersion?.at.monotonic ?? performance.now()) > waitMs
  }

  async #take(before: LeaseRecord | undefined): Promise<void> {
    const { highestEpoch, onAcquired } = this.#options
    const epoch = Math.max(before?.epoch ?? 0, highestEpoch()) + 1
    const sent = Term.now()
    const taken = await this.#write(before, { epoch })
    // Another replica was faster.
    if (taken === undefined) return
    this.#note(taken)
    this.#term.extend(epoch, sent)
    this.#watchExpiry()
    onAcquired(epoch)
  }

  async #renew(record: LeaseRecord): Promise<void> {
    const epoch = this.#term.granted ?? 0
    const sent = Term.now()
    const { wantedBy } = record
    const renewed = await this.#write(record, { epoch, ...(wantedBy && { wantedBy }) })
    if (renewed === undefined) {
      const now = await this.#read()
      if (now?.holder !== this.#options.identity) this.#lose('another replica holds the lease')
      return
    }
    this.#note(renewed)
    // The term may have ended while the response was on its way.
    if (this.#term.epoch !== epoch) return
    this.#term.extend(epoch, sent)
    this.#watchExpiry()
  }

  #write(
    before: LeaseRecord | undefined,
    content: Pick<LeaseRecord, 'epoch' | 'wantedBy'>,
  ): Promise<LeaseRecord | undefined> {
    const { store, identity: holder, durationMs } = this.#options
    return store.write(before, { holder, durationMs, ...content }, this.#limitMs)
  }

  #watchExpiry(): void {
    clearTimeout(this.#expiry)
    this.#expiry = setTimeout(() => {
      if (this.#term.granted === undefined) return
      if (this.#term.leftMs > 0) this.#watchExpiry()
      else this.#lose('it was not renewed in time')
    }, Math.max(0, this.#term.leftMs) + 1)
  }

  #lose(reason: string): void {
    clearTimeout(this.#expiry)
    this.#term.end()
    this.#options.onLost(reason)
  }

  /** Frees the lease at once. If that fails, other replicas wait until it has expired. */
  async #release(): Promise<void> {
    try {
      const record = await this.#read()
      if (record?.holder !== this.#options.identity) return
      const { epoch, wantedBy } = record
      const given = await this.#options.store.write(
        record,
        { durationMs: 1_000, epoch, ...(wantedBy && { wantedBy }) },
        this.#limitMs,
      )
      if (given !== undefined) this.#note(given)
    } catch {
      // The lease expires by itself.
    }
  }

  /** Timeout of each read and write, since a response after the term is useless. */
  get #limitMs(): number {
    return Math.floor(this.#options.durationMs / 3)
  }
}

interface Instant {
  readonly monotonic: number
  readonly wall: number
}

/**
 * The time for which this replica may rely on the lease. It ends two thirds of the duration after the
 * last successful renewal was *sent*, so that this replica stops before another one may start. The
 * clock that advanced more counts: the monotonic clock stops while a machine sleeps, and the wall
 * clock may be set back.
 */
class Term {
  readonly #lengthMs: number
  #epoch: number | undefined
  #monotonic = 0
  #wall = 0

  constructor(durationMs: number) {
    this.#lengthMs = (durationMs * 2) / 3
  }

  /** Reads both clocks: call it before a renewal is sent, and pass the result to `extend` afterwards. */
  static now(): Instant {
    return { monotonic: performance.now(), wall: Date.now() }
  }

  extend(epoch: number, sent: Instant): void {
    this.#epoch = epoch
    this.#monotonic = sent.monotonic
    this.#wall = sent.wall
  }

  end(): void {
    this.#epoch = undefined
  }

  /** The granted epoch, even if its term has run out; undefined after `end`. */
  get granted(): number | undefined {
    return this.#epoch
  }

  get epoch(): number | undefined {
    return this.leftMs > 0 ? this.#epoch : undefined
  }

  /** Milliseconds until the term is over; zero or negative if it is. */
  get leftMs(): number {
    if (this.#epoch === undefined) return 0
    const { monotonic, wall } = Term.now()
    return this.#lengthMs - Math.max(monotonic - this.#monotonic, wall - this.#wall)
  }
}
