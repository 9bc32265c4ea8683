/**
 * The ledger of budgets, as one replica runs it:
 *
 *   holders ──reports──► charges ──► log ──► fold ──► decisions ──► log ──► fold ──► updates ──► holders
 *
 * Every replica serves the holders that are connected to it. No replica leads: a decision is appended at the position
 * of the log that it was made for, and made again if another writer was faster. Charges need no position, since the
 * log counts each report of a holder once. `docs/adr/0025-budgets-hold-by-escrow.md` has the proofs.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as after } from 'node:timers/promises'
import {
  type AnyCloudEvent,
  type BudgetNotifiedData,
  budgetCharged,
  budgetDefined,
  budgetNotified,
  budgetReleased,
} from '../../../events/index.ts'
import { systemClock } from '../../ground/base/clock.ts'
import {
  type HolderReport,
  type HolderUpdate,
  type LedgerConnection,
  leaseMs,
} from '../../ground/model/budgets.ts'
import { type EventLog, LogError, newEvent, type Position, type Recorded } from '../log/index.ts'
import type { BudgetDefinition } from './budget-state.ts'
import { chargesOf, liveHolders, newDefinitions } from './decide.ts'
import { HolderSession } from './holder-session.ts'
import { type LedgerChange, LedgerFold } from './ledger-fold.ts'
import {
  dueWindows,
  missingShares,
  type NewEvent,
  type Scene,
  wantedEvents,
} from './next-events.ts'
import { ledgerSubject, ledgerVersion, ledgerWriter, restoreNewest } from './read-ledger.ts'
import { dueWarnings } from './soft-limits.ts'

/** How often windows and silent holders are looked at. */
const tickMs = 250
/** A holder that runs but spends nothing is recorded this often. */
const aliveMs = 20_000
/**
 * After this time without an event of a holder, its allowances are released. The holder stops using them `leaseMs`
 * after the last report that was answered, and the answer needs an event of the holder that is at most `aliveMs` old.
 */
const releaseMs = leaseMs + aliveMs + 25_000

interface LedgerOptions {
  readonly log: EventLog
  /** Whether there is only one holder at a time: the workers of this process. */
  readonly isSole: boolean
  /** Number of events between snapshots. */
  readonly snapshotEvery?: number
  readonly onProblem: (text: string | undefined) => void
  /** Called with what every event has changed. */
  readonly onChange?: (changes: readonly LedgerChange[]) => void
}

/** Delay before the log is read again after a failure. */
const readAgainMs = 500
/** How long a want is kept while other holders give back. */
const wantMs = 3_000
const monotonicNow = () => performance.now()

export class Ledger {
  readonly fold = new LedgerFold()
  readonly #options: LedgerOptions
  readonly #snapshotEvery: number
  readonly #run = randomUUID().slice(0, 8)
  readonly #sessions = new Set<HolderSession>()
  #configured: ReadonlyMap<string, BudgetDefinition> = new Map()
  /** Monotonic times of the last events of holders. */
  readonly #heardAt = new Map<string, number>()
  readonly #over = new AbortController()
  readonly #waiting: { readonly position: number; readonly resolve: () => void }[] = []
  /** Balances to look at again: all of a budget if the value is undefined. */
  #touched: LedgerChange[] = []
  #number = 0
  #tailing: Promise<void> = Promise.resolve()
  #cycling: Promise<void> = Promise.resolve()
  #isDue = false
  #timer: NodeJS.Timeout | undefined
  #snapshotAt = 0
  #problem: string | undefined

  constructor(options: LedgerOptions) {
    this.#options = options
    this.#snapshotEvery = options.snapshotEvery ?? 5_000
  }

  /** Reads the log to its end. Rejects if it cannot be read. */
  async open(): Promise<this> {
    const { log } = this.#options
    const isRestored = await restoreNewest(this.fold, log)
    // Without a snapshot, a replica that opens the log late may miss its first events.
    this.#snapshotAt = isRestored ? this.fold.position : 1 - this.#snapshotEvery
    const last = await log.lastPosition()
    for (const holder of this.fold.holders.keys()) this.#heardAt.set(holder, monotonicNow())
    this.#tailing = this.#follow()
    await this.#foldedUpTo(last)
    this.#timer = setInterval(() => this.#tick(), tickMs).unref()
    return this
  }

  /** Replaces the budgets of the configuration. */
  configure(budgets: ReadonlyMap<string, BudgetDefinition>): void {
    this.#configured = budgets
    // A replica may have ended between a charge and its warning.
    for (const { id: budget, softLimits } of budgets.values()) {
      if (softLimits !== undefined) this.#touched.push({ budget, value: undefined })
    }
    this.#wake()
  }

  /** Records that a warning was passed on. */
  async notified(data: BudgetNotifiedData): Promise<void> {
    await this.#append([[budgetNotified, data.budget, data]])
  }

  connect(holder: string, receive: (update: HolderUpdate) => void): LedgerConnection {
    const session = new HolderSession(holder, receive)
    this.#sessions.add(session)
    for (const budget of this.fold.budgets.keys()) session.note({ budget, value: undefined })
    this.#wake()
    return {
      report: (report) => this.#report(session, report),
      close: () => {
        session.isClosed = true
        this.#sessions.delete(session)
      },
    }
  }

  /** Resolves once everything that is due now is done. */
  async settled(): Promise<void> {
    this.#wake()
    await this.#cycling
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#cycling
    if (this.#options.isSole) await this.#saveSnapshot().catch(() => undefined)
    this.#over.abort()
    await this.#tailing
  }

  #report(session: HolderSession, report: HolderReport): void {
    if (session.isClosed) return
    session.pending = report
    session.isReplyDue = true
    session.isLeaving ||= report.isLeaving === true
    const until = monotonicNow() + wantMs
    for (const { budget, value, window, want } of report.entries) {
      if (want > 0n && window === this.fold.budgets.get(budget)?.window) {
        session.want({ budget, value, want, until })
        this.#touched.push({ budget, value })
      }
    }
    this.#wake()
  }

  // Log -------------------------------------------------------------------------------------------

  /** Reads the log until the ledger is closed. After a failure, it continues behind the last event, or a snapshot. */
  async #follow(): Promise<void> {
    const { log } = this.#options
    const { signal } = this.#over
    while (!signal.aborted) {
      try {
        const from = (this.fold.position + 1) as Position
        for await (const recorded of log.tail(from, { signal })) this.#take(recorded)
      } catch (error) {
        // The events that were removed are in a snapshot.
        const isPurged = error instanceof LogError && error.code === 'purged'
        if (!isPurged) this.#setProblem(`the ledger cannot be read: ${messageOf(error)}`)
      }
      await after(readAgainMs, undefined, { signal, ref: false }).catch(() => undefined)
      if (!signal.aborted) await this.#restoreNewer().catch(() => undefined)
    }
    for (const { resolve } of this.#waiting.splice(0)) resolve()
  }

  #take(recorded: Recorded): void {
    const changes = this.fold.apply(recorded)
    const { event } = recorded
    // Grants of other replicas do not show that a holder still runs.
    if (event.type === budgetCharged.type) this.#heardAt.set(event.data.holder, monotonicNow())
    for (const session of this.#sessions) for (const change of changes) session.note(change)
    if (changes.length > 0) {
      this.#touched.push(...changes)
      this.#options.onChange?.(changes)
    }
    this.#folded()
    this.#wake()
  }

  #folded(): void {
    while ((this.#waiting[0]?.position ?? Number.POSITIVE_INFINITY) <= this.fold.position) {
      this.#waiting.shift()?.resolve()
    }
  }

  /** Restores a stored state that is ahead of this one, since the events in between may be gone. */
  async #restoreNewer(): Promise<void> {
    if (!(await restoreNewest(this.fold, this.#options.log))) return
    const all = [...this.fold.budgets.keys()].map((budget) => ({ budget, value: undefined }))
    for (const session of this.#sessions) for (const change of all) session.note(change)
    this.#touched.push(...all)
    this.#options.onChange?.(all)
    this.#folded()
  }

  #foldedUpTo(position: number): Promise<void> {
    if (this.fold.position >= position || this.#over.signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      this.#waiting.push({ position, resolve })
      this.#waiting.sort((a, b) => a.position - b.position)
    })
  }

  #setProblem(problem: string | undefined): void {
    if (problem === this.#problem) return
    this.#problem = problem
    this.#options.onProblem(problem)
  }

  /** Appends events, and folds them. Returns false if another writer was faster. */
  async #append(events: readonly NewEvent[], expected?: number): Promise<boolean> {
    const encoded: AnyCloudEvent[] = events.map(([definition, name, data, id]) =>
      newEvent(definition, ledgerWriter, ledgerSubject(name), {
        id: id ?? `${this.#run}:${++this.#number}`,
        data,
      }),
    )
    const appended = await this.#options.log.append(
      encoded,
      expected === undefined ? {} : { expectedVersion: expected as Position },
    )
    if (appended.ok) {
      await this.#foldedUpTo(appended.value.at(-1) ?? 0)
      return true
    }
    const [problem] = appended.problems
    if (problem?.reason !== 'conflict') throw new Error(problem?.message ?? 'nothing was appended')
    await this.#foldedUpTo(problem.actual)
    return false
  }

  // Cycle -----------------------------------------------------------------------------------------

  #tick(): void {
    const { log, isSole } = this.#options
    // Reads what `sluice budgets adjust` has appended to the file. A server announces such events itself.
    if (isSole) log.lastPosition().catch(() => undefined)
    this.#wake()
  }

  #wake(): void {
    if (this.#isDue || this.#over.signal.aborted) return
    this.#isDue = true
    this.#cycling = this.#cycling.then(async () => {
      this.#isDue = false
      try {
        await this.#cycle()
        this.#setProblem(undefined)
      } catch (error) {
        this.#setProblem(`the ledger cannot be written: ${messageOf(error)}`)
      }
    })
  }

  async #cycle(): Promise<void> {
    if (this.#over.signal.aborted) return
    await this.#count()
    for (let attempt = 0; attempt < 10; attempt++) {
      const position = this.fold.position
      const due = this.#due()
      const touched = due.length === 0 ? this.#touched.splice(0) : []
      const events = due.length === 0 ? this.#wanted(touched) : due
      if (events.length === 0) break
      // What could not be decided now is looked at again.
      if (!(await this.#append(events, position))) this.#touched.push(...touched)
    }
    for (const session of this.#sessions) session.flush(this.fold)
    if (this.fold.position - this.#snapshotAt >= this.#snapshotEvery) await this.#saveSnapshot()
  }

  /** Appends the charges of reports, and that holders without charges still run. */
  async #count(): Promise<void> {
    const now = monotonicNow()
    const events: NewEvent[] = []
    const alive: HolderSession[] = []
    const taken: (readonly [HolderSession, HolderReport])[] = []
    for (const session of this.#sessions) {
      const { holder, pending } = session
      if (pending === undefined) continue
      taken.push([session, pending])
      const { sequence = 0 } = this.fold.holders.get(holder) ?? {}
      const charges = pending.sequence > sequence ? chargesOf(pending) : []
      if (pending.sequence <= sequence && now - session.aliveAt < aliveMs) continue
      const id = pending.sequence > sequence ? `${holder}:${pending.sequence}` : undefined
      events.push([budgetCharged, holder, { holder, sequence: pending.sequence, charges }, id])
      alive.push(session)
    }
    if (events.length > 0) await this.#append(events)
    for (const session of alive) session.aliveAt = now
    for (const [session, report] of taken) {
      session.answered = report.message
      // A report shows once that its holder runs. The connection may outlive the holder.
      if (session.pending === report) session.pending = undefined
    }
  }

  #scene(now: number): Scene {
    const { isSole } = this.#options
    const { fold } = this
    return { fold, sessions: this.#sessions, configured: this.#configured, isSole, now }
  }

  /** The present time, which never goes back. */
  get #now(): number {
    return Math.max(systemClock.now(), this.fold.time)
  }

  /** Decides what must come before grants: releases, definitions, windows and shares. One kind at a time. */
  #due(): NewEvent[] {
    const released = this.#silentHolders()
    if (released.length > 0) return released
    const now = this.#now
    const defined = newDefinitions(this.fold, this.#configured.values())
    if (defined.length > 0) {
      return defined.map(({ id, ...rest }) => [budgetDefined, id, { budget: id, ...rest }])
    }
    const scene = this.#scene(now)
    const opened = dueWindows(scene)
    return opened.length > 0 ? opened : missingShares(scene)
  }

  #wanted(touched: readonly LedgerChange[]): NewEvent[] {
    const scene = this.#scene(this.#now)
    return [...dueWarnings(scene, touched), ...wantedEvents(scene, touched, monotonicNow())]
  }

  #silentHolders(): NewEvent[] {
    const now = monotonicNow()
    const { isSole } = this.#options
    const connected = new Set([...this.#sessions].map(({ holder }) => holder))
    return liveHolders(this.fold).flatMap((holder): NewEvent[] => {
      const heardAt = this.#heardAt.get(holder)
      if (heardAt === undefined) this.#heardAt.set(holder, now)
      // The only holder that can exist is the connected one, so all others have ended.
      const isGone = isSole && connected.size > 0 && !connected.has(holder)
      const isSilent = heardAt !== undefined && now - heardAt > releaseMs
      return isGone || isSilent ? [[budgetReleased, holder, { holder }]] : []
    })
  }

  async #saveSnapshot(): Promise<void> {
    const { log } = this.#options
    const position = this.fold.position as Position
    if (position === 0) return
    const chunks = [Buffer.from(this.fold.snapshot())]
    await log.saveSnapshot({ position, foldVersion: ledgerVersion, chunks })
    this.#snapshotAt = position
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
