/**
 * A lease kept in one record that many can read and that is written on its newest version only: an
 * object of Kubernetes, or an entry of a key-value bucket of NATS.
 *
 * ```
 *   watching ── it is free, or the record stood still for its whole duration ──► taking
 *   taking ── the store took our version ──► holding ── renewed in time ──► holding
 *      │ another replica was faster               │ not renewed in time, or taken by another
 *      ▼                                          ▼
 *   watching ◄────────────────────────────────────┘
 * ```
 *
 * Clocks of different machines are never compared: a candidate measures by its own clock how long
 * the record has not changed. The epoch rises with every change of holder.
 */
import type { Lease, LeaseOptions } from './lease.ts'
import { type Instant, Term } from './term.ts'

/** What the record says. */
export interface LeaseRecord {
  /** Changes with every write. */
  readonly version: string
  /** Not set after it was given up. */
  readonly holder?: string
  /** How long the holder counts as alive without a write, in milliseconds. */
  readonly durationMs: number
  readonly epoch: number
  /** A candidate that can do nothing without it, and asks the holder to let it go. */
  readonly wantedBy?: string
}

/** Where the record is kept. Every method rejects where the store does not answer. */
export interface LeaseStore {
  /** Undefined if there is none. An answer after `timeoutMs` is of no use. */
  read(timeoutMs: number): Promise<LeaseRecord | undefined>
  /**
   * Puts a record in place of the one that was read last (`before`; undefined: there was none).
   * Undefined if another replica was faster.
   */
  write(
    before: LeaseRecord | undefined,
    content: Omit<LeaseRecord, 'version'>,
    timeoutMs: number,
  ): Promise<LeaseRecord | undefined>
}

/** So many durations a candidate that needs the lease waits before it asks for it. */
const needPatience = 2

interface RecordLeaseOptions extends LeaseOptions {
  readonly store: LeaseStore
  /** Is a holder surely gone, such as an earlier process that had the same lock of this machine? */
  readonly isGone?: (holder: string) => boolean
}

export class RecordLease implements Lease {
  readonly #options: RecordLeaseOptions
  readonly #term: Term
  readonly #stop = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #wake: (() => void) | undefined
  #expiry: NodeJS.Timeout | undefined
  /** The record as it was seen last, and since when it has not changed. */
  #seen: { readonly version: string; readonly at: Instant } | undefined
  /** Before this moment the lease is left to others. */
  #abstainUntil = 0
  /** Since when this replica can do nothing without the lease, by `performance.now()`. */
  #neededSince: number | undefined

  constructor(options: RecordLeaseOptions) {
    this.#options = options
    this.#term = new Term(options.durationMs)
  }

  start(): void {
    this.#running = this.#run()
  }

  epoch(): number | undefined {
    return this.#term.epoch
  }

  async resign(reason: string): Promise<void> {
    if (this.#term.granted === undefined) return
    this.#abstainUntil = performance.now() + this.#options.durationMs
    this.#lose(reason)
    await this.#release()
  }

  async close(): Promise<void> {
    this.#stop.abort()
    this.#wake?.()
    await this.#running
    const held = this.#term.granted !== undefined
    clearTimeout(this.#expiry)
    this.#term.end()
    if (held) await this.#release()
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
      // Replicas that started together should not ask together.
      await this.#wait((durationMs / 5) * (0.8 + Math.random() * 0.4))
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

  /** Asks a holder that lives on for the lease, where nothing can be done without it for long. */
  async #askFor(record: LeaseRecord): Promise<void> {
    const { identity, needsIt, durationMs, store } = this.#options
    if (needsIt?.() !== true) {
      this.#neededSince = undefined
      return
    }
    this.#neededSince ??= performance.now()
    const patienceMs = durationMs * needPatience
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
    if (this.#seen?.version !== version) this.#seen = { version, at: Term.now() }
  }

  #isFree({ holder, durationMs, wantedBy = this.#options.identity }: LeaseRecord): boolean {
    const { identity, isGone } = this.#options
    // It was given up for another replica, which should take it soon.
    if (holder === undefined && wantedBy !== identity && !this.#stoodStillFor(durationMs)) {
      return false
    }
    // Ours by name, but given up: a new term needs a new epoch.
    if (holder === undefined || holder === identity || isGone?.(holder) === true) return true
    return this.#stoodStillFor(durationMs)
  }

  #stoodStillFor(waitMs: number): boolean {
    return performance.now() - (this.#seen?.at.monotonic ?? performance.now()) > waitMs
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
    // It may have run out, or been given up, while the answer was on its way.
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

  /** Frees the lease at once. If that fails, others wait until it has run out. */
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
      // The lease runs out by itself.
    }
  }

  /** An answer that comes after the term is of no use. */
  get #limitMs(): number {
    return Math.floor(this.#options.durationMs / 3)
  }

  #wait(waitMs: number): Promise<void> {
    if (this.#stop.signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#wake = undefined
        resolve()
      }
      const timer = setTimeout(done, waitMs)
      this.#wake = done
    })
  }
}
