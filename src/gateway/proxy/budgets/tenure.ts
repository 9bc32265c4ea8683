/**
 * The allowances of this proxy under one name: its accounts in shared memory, its reports, and what it got from the
 * ledger. If the ledger has released the name, another tenure begins, and this one only reports what is left.
 */
import {
  type AccountUpdate,
  accountKey,
  type ConnectLedger,
  type HolderReport,
  type HolderUpdate,
  isCounted,
  type LedgerConnection,
  millionths,
  type ReportEntry,
  type WindowUpdate,
} from '../../../ground/model/budgets.ts'
import type { SharedAccounts } from './memory.ts'
import type { AccountQuestion, AccountReply } from './worker-budgets.ts'

/** An account in shared memory, and what the ledger knows of it. */
interface Slot {
  readonly account: number
  readonly budget: string
  readonly value: string
  readonly window: number
  granted: bigint
  /** What was given back, and of that what the ledger has counted. */
  returned: bigint
  countedReturned: bigint
  countedCharged: bigint
  countedRequests: number
  /** If less than this is available, the holder asks for more. */
  lowMark: bigint
  isRecalled: boolean
  /** Whether the ledger knows that nothing is left to give back. */
  isDrained: boolean
  /** When its window ended; undefined while it lasts. */
  endedAt: number | undefined
}

interface KnownWindow {
  readonly window: number
  readonly endsAt: number | undefined
  readonly shares: Map<number, number>
}

interface TenureOptions {
  readonly holder: string
  readonly connect: ConnectLedger
  readonly accounts: SharedAccounts
  /** Takes an account that is free; undefined if there is none. */
  readonly take: () => number | undefined
  readonly free: (account: number) => void
  /** Whether no other proxy can have an allowance, so that a shortage is final at once. */
  readonly isSole: boolean
  /** Called when another window of a budget has begun. */
  readonly onWindow: (budget: string) => void
  readonly onReleased: () => void
}

/** A report is sent again if it was not answered in this time. */
const repeatMs = 1_000
/** An idle holder reports this often. */
const idleReportMs = 5_000
/** Accounts of past windows are reused after this time. */
const reuseMs = 10_000

export class Tenure {
  readonly #options: TenureOptions
  readonly #connection: LedgerConnection
  readonly #windows = new Map<string, KnownWindow>()
  /** Accounts of the current windows, by budget and value. */
  readonly #slots = new Map<string, Slot>()
  /** All accounts, with those of past windows. */
  readonly #all = new Set<Slot>()
  #report: HolderReport | undefined
  #reported: (readonly [Slot, ReportEntry])[] = []
  #sequence = 0
  #message = 0
  #sentAt = Number.NEGATIVE_INFINITY
  /** When the messages that were not answered yet were sent. */
  readonly #sent = new Map<number, number>()
  /** When the last message was sent that the ledger has answered. */
  answeredAt = performance.now()
  #activity = -1
  #isOver = false

  constructor(options: TenureOptions) {
    this.#options = options
    this.#connection = options.connect(options.holder, (update) => this.#receive(update))
  }

  /** Whether the ledger has counted everything. */
  get isSettled(): boolean {
    return this.#report === undefined && [...this.#all].every((slot) => this.#isSettled(slot))
  }

  knows(budget: string): boolean {
    return this.#windows.has(budget)
  }

  /** Finds or opens the account of a value. Returns a reply without one if there is no room. */
  find({ budget, value, generation, limit }: AccountQuestion): AccountReply {
    const known = this.#windows.get(budget)
    let slot = this.#slots.get(accountKey(budget, value))
    if (slot === undefined) {
      const share = known?.shares.get(generation) ?? 0
      slot = this.#open({ budget, value, window: known?.window ?? 0 }, millionths(limit, share))
    }
    const endsAt = known?.endsAt
    return {
      budget,
      value,
      ...(slot !== undefined && { account: slot.account }),
      ...(endsAt !== undefined && { endsAt }),
    }
  }

  #open(
    { budget, value, window }: Pick<Slot, 'budget' | 'value' | 'window'>,
    granted: bigint,
  ): Slot | undefined {
    const { accounts, take, isSole } = this.#options
    const account = take()
    if (account === undefined) return undefined
    accounts.open(account, granted)
    accounts.setFlags(account, isSole, 0)
    const counted = { countedReturned: 0n, countedCharged: 0n, countedRequests: 0 }
    const flags = { lowMark: granted / 2n, isRecalled: false, isDrained: false, endedAt: undefined }
    const slot: Slot = {
      account,
      budget,
      value,
      window,
      granted,
      returned: 0n,
      ...counted,
      ...flags,
    }
    this.#slots.set(accountKey(budget, value), slot)
    this.#all.add(slot)
    return slot
  }

  // Ledger ----------------------------------------------------------------------------------------

  #receive({ counted, answered, isReleased, windows, accounts }: HolderUpdate): void {
    if (this.#isOver) return
    for (const window of windows) this.#setWindow(window)
    for (const account of accounts) this.#setAccount(account)
    const sentAt = this.#sent.get(answered)
    if (sentAt !== undefined) {
      this.answeredAt = sentAt
      for (const message of this.#sent.keys()) if (message <= answered) this.#sent.delete(message)
      if (this.#report !== undefined && counted >= this.#report.sequence) this.#counted()
    }
    if (isReleased) {
      this.#drop()
      this.#options.onReleased()
    }
  }

  #counted(): void {
    for (const [slot, entry] of this.#reported) {
      slot.countedCharged += entry.charged
      slot.countedReturned += entry.returned
      slot.countedRequests += entry.requests
      if (entry.isDrained && slot.granted === entry.granted) slot.isDrained = true
    }
    this.#reported = []
    this.#report = undefined
  }

  #setWindow({ budget, window, endsAt, share, generation }: WindowUpdate): void {
    const known = this.#windows.get(budget)
    if (known !== undefined && known.window > window) return
    if (known?.window === window) {
      known.shares.set(generation, share)
      return
    }
    this.#windows.set(budget, { window, endsAt, shares: new Map([[generation, share]]) })
    const endedAt = performance.now()
    for (const [key, slot] of this.#slots) {
      if (slot.budget !== budget) continue
      slot.endedAt = endedAt
      this.#slots.delete(key)
    }
    this.#options.onWindow(budget)
  }

  #setAccount(update: AccountUpdate): void {
    const { accounts, isSole } = this.#options
    const { budget, value, window, granted, isRecalled, isExhausted, softLimit } = update
    if (this.#windows.get(budget)?.window !== window) return
    const slot = this.#slots.get(accountKey(budget, value)) ?? this.#open(update, 0n)
    if (slot === undefined) return
    if (granted > slot.granted) {
      accounts.add(slot.account, granted - slot.granted)
      slot.lowMark = (granted - slot.granted) / 2n
      slot.granted = granted
      slot.isDrained = false
    }
    if (isRecalled && !slot.isRecalled) slot.isDrained = false
    slot.isRecalled = isRecalled
    accounts.setFlags(slot.account, isSole || isExhausted, softLimit)
  }

  /** Gives up all allowances, because the ledger has released them. */
  #drop(): void {
    for (const slot of this.#slots.values()) {
      slot.endedAt = performance.now()
      slot.returned += this.#options.accounts.takeAll(slot.account)
    }
    this.#slots.clear()
    this.#windows.clear()
  }

  // Reports ---------------------------------------------------------------------------------------

  /** Reports what has changed. Called often. `isLast` gives back everything. */
  tick(isLast = false): void {
    const now = performance.now()
    if (this.#report !== undefined) {
      if (now - this.#sentAt < repeatMs) return
      this.#send(this.#report, now)
      return
    }
    const { activity } = this.#options.accounts
    const isIdle = activity === this.#activity && !isLast
    this.#activity = activity
    this.#reuse(now)
    const entries = this.#collect(isIdle, isLast)
    if (entries.length === 0 && now - this.#sentAt < idleReportMs) return
    this.#reported = entries
    const { holder } = this.#options
    // What only asks for more need not be counted once.
    if (entries.some(([, entry]) => isCounted(entry))) this.#sequence++
    const sums = { sequence: this.#sequence, entries: entries.map(([, entry]) => entry) }
    this.#send({ holder, message: 0, ...sums, ...(isLast && { isLeaving: true }) }, now)
  }

  #send(report: HolderReport, now: number): void {
    this.#report = { ...report, message: ++this.#message }
    this.#sentAt = now
    this.#sent.set(this.#message, now)
    this.#connection.report(this.#report)
  }

  #collect(isIdle: boolean, isLast: boolean): (readonly [Slot, ReportEntry])[] {
    const found: (readonly [Slot, ReportEntry])[] = []
    for (const slot of this.#all) {
      const isOwed = isLast || slot.endedAt !== undefined || slot.isRecalled
      if (isIdle && !isOwed) continue
      const entry = this.#entryOf(slot, isOwed)
      if (entry !== undefined) found.push([slot, entry])
    }
    return found
  }

  #entryOf(slot: Slot, isOwed: boolean): ReportEntry | undefined {
    const { accounts, isSole } = this.#options
    const { account, budget, value, window } = slot
    if (isOwed) slot.returned += accounts.takeAll(account)
    const use = accounts.use(account)
    const charged = use.charged - slot.countedCharged
    const returned = slot.returned - slot.countedReturned
    const requests = use.requests - slot.countedRequests
    const missing = accounts.takeWant(account)
    const isLow = !isSole && !isOwed && use.available < slot.lowMark
    const want = missing > 0n ? missing - max(use.available, 0n) : isLow && charged > 0n ? 1n : 0n
    const hasNews = isOwed && !slot.isDrained
    const hasChanged = charged !== 0n || returned !== 0n || requests !== 0
    if (!hasChanged && want <= 0n && !hasNews) return undefined
    const isDrained = isOwed && (hasChanged || hasNews)
    const report = { charged, returned, requests, want: max(want, 0n), isDrained }
    return { budget, value, window, ...report, granted: slot.granted }
  }

  /** Whether nothing is reserved, and the ledger has counted all that was spent and given back. */
  #isSettled({ account, granted, returned, ...counted }: Slot): boolean {
    const { available, charged, requests } = this.#options.accounts.use(account)
    return (
      charged === counted.countedCharged &&
      requests === counted.countedRequests &&
      returned === counted.countedReturned &&
      granted === available + charged + returned
    )
  }

  /** Frees accounts of past windows that nothing uses any more. */
  #reuse(now: number): void {
    for (const slot of this.#all) {
      if (slot.endedAt === undefined || now - slot.endedAt < reuseMs) continue
      if (!this.#isSettled(slot)) continue
      this.#all.delete(slot)
      this.#options.free(slot.account)
    }
  }

  close(): void {
    this.#isOver = true
    this.#connection.close()
  }
}

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)
