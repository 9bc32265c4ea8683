/** The budgets of one worker: finds accounts, and reserves and settles amounts. */
import type {
  BudgetAccount,
  BudgetHost,
  BudgetRefusal,
  BudgetReservation,
  Shortage,
} from '../../../ground/exchange/budgets.ts'
import { accountKey, type BudgetConfig, limitOf } from '../../../ground/model/budgets.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'
import { timedCounters } from '../telemetry/timed-counters.ts'
import { type BudgetMemory, type ReservationMemory, SharedAccounts } from './memory.ts'

/** Asks the main thread for the account of a value. */
export interface AccountQuestion {
  readonly budget: string
  readonly value: string
  readonly generation: number
  /** The amount of the value in this generation. */
  readonly limit: bigint
}

/** The reply. Without an account, there is no room for another value. */
export interface AccountReply {
  readonly budget: string
  readonly value: string
  readonly account?: number
  readonly endsAt?: number
}

/** Messages of workers to the main thread. */
export type BudgetQuestion =
  /** A budget is configured, so the worker needs the memory. */
  | { readonly type: 'budgets' }
  | { readonly type: 'budget-account'; readonly question: AccountQuestion }

/** Messages of the main thread to workers. */
export type BudgetMessage =
  | {
      readonly type: 'budgets'
      readonly memory: BudgetMemory
      readonly reservations: ReservationMemory
    }
  | { readonly type: 'budget-account'; readonly reply: AccountReply }
  /** Another window of a budget has begun, or of all budgets. */
  | { readonly type: 'budget-window'; readonly budget: string | undefined }

/** Reservations of this thread, so that the main thread can free them if the thread dies. */
class Journal {
  readonly #memory: ReservationMemory
  readonly #free: number[] = []
  #next = 0

  constructor(memory: ReservationMemory) {
    this.#memory = memory
  }

  /** Returns -1 if there is no room: the reservation then does not survive this thread. */
  add(account: number, amount: bigint): number {
    const { accounts, amounts } = this.#memory
    const at = this.#free.pop() ?? (this.#next < accounts.length ? this.#next++ : -1)
    if (at < 0) return at
    amounts[at] = amount
    Atomics.store(accounts, at, account + 1)
    return at
  }

  remove(at: number): void {
    if (at < 0) return
    Atomics.store(this.#memory.accounts, at, 0)
    this.#free.push(at)
  }
}

class Reservation implements BudgetReservation {
  readonly #accounts: SharedAccounts
  readonly #journal: Journal
  readonly #account: number
  readonly #amount: bigint
  #entry: number | undefined

  constructor(accounts: SharedAccounts, journal: Journal, account: number, amount: bigint) {
    this.#accounts = accounts
    this.#journal = journal
    this.#account = account
    this.#amount = amount
    this.#entry = journal.add(account, amount)
  }

  settle(actual: bigint): void {
    const entry = this.#entry
    if (entry === undefined) return
    this.#entry = undefined
    this.#accounts.settle(this.#account, this.#amount, actual, actual !== 0n)
    this.#journal.remove(entry)
  }
}

/** So small that all requests under way fit into a word. */
const maxForced = 2n ** 44n

class OpenAccount implements BudgetAccount {
  readonly endsAt: number | undefined
  readonly #accounts: SharedAccounts
  readonly #journal: Journal
  readonly #number: number

  constructor(
    accounts: SharedAccounts,
    journal: Journal,
    account: number,
    endsAt: number | undefined,
  ) {
    this.#accounts = accounts
    this.#journal = journal
    this.#number = account
    this.endsAt = endsAt
  }

  reserve(amount: bigint, overdraft: bigint | undefined): BudgetReservation | Shortage {
    const accounts = this.#accounts
    const { isUnreachable } = accounts
    if (isUnreachable && overdraft === undefined) return 'unreachable'
    if (accounts.reserve(this.#number, amount, isUnreachable ? (overdraft ?? 0n) : 0n)) {
      return new Reservation(accounts, this.#journal, this.#number, amount)
    }
    if (isUnreachable) return 'unreachable'
    return accounts.isExhausted(this.#number) ? 'exhausted' : 'pending'
  }

  get softLimit(): number {
    return this.#accounts.softLimit(this.#number)
  }

  force(amount: bigint): BudgetReservation {
    // Nothing is refused for want of it, so a smaller amount than an absurd one will do.
    const held = amount < maxForced ? amount : maxForced
    this.#accounts.add(this.#number, -held)
    return new Reservation(this.#accounts, this.#journal, this.#number, held)
  }
}

const noAccount: BudgetAccount = {
  endsAt: undefined,
  softLimit: 0,
  reserve: () => 'full',
  force: () => ({ settle: () => undefined }),
}

export class WorkerBudgets implements BudgetHost {
  readonly #refusals = timedCounters('budget_refusals_total')
  readonly #unpriced = timedCounters('budget_unpriced_requests_total')
  readonly #send: (message: BudgetQuestion) => void
  #accounts: SharedAccounts | undefined
  #journal: Journal | undefined
  #hasBegun = false
  /** Accounts of the current windows, by budget and value. */
  readonly #known = new Map<string, Map<string, BudgetAccount>>()
  readonly #asked = new Map<string, PromiseWithResolvers<BudgetAccount>>()

  constructor(send: (message: BudgetQuestion) => void) {
    this.#send = send
  }

  begin(): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    this.#send({ type: 'budgets' })
  }

  refused(budget: string, reason: BudgetRefusal): void {
    this.#refusals.record([budget, reason], 0, 0)
  }

  unpriced(budget: string, action: 'refused' | 'counted'): void {
    this.#unpriced.record([budget, action], 0, 0)
  }

  metrics(): MetricsSnapshot {
    return {
      budget_refusals_total: this.#refusals.counts(),
      budget_unpriced_requests_total: this.#unpriced.counts(),
    }
  }

  account(config: BudgetConfig, value: string): BudgetAccount | Promise<BudgetAccount> {
    return this.#known.get(config.id)?.get(value) ?? this.#find(config, value)
  }

  #find(config: BudgetConfig, value: string): Promise<BudgetAccount> {
    const { id, generation } = config
    const key = accountKey(id, value)
    const asked = this.#asked.get(key)
    if (asked !== undefined) return asked.promise
    const pending = Promise.withResolvers<BudgetAccount>()
    this.#asked.set(key, pending)
    const question = { budget: id, value, generation, limit: limitOf(config, value) }
    this.#send({ type: 'budget-account', question })
    return pending.promise
  }

  /** Takes a message of the main thread. */
  receive(message: BudgetMessage): void {
    switch (message.type) {
      case 'budgets':
        this.#accounts = new SharedAccounts(message.memory)
        this.#journal = new Journal(message.reservations)
        break
      case 'budget-account':
        this.#open(message.reply)
        break
      case 'budget-window':
        if (message.budget === undefined) this.#known.clear()
        else this.#known.delete(message.budget)
        break
    }
  }

  #open({ budget, value, account: number, endsAt }: AccountReply): void {
    const key = accountKey(budget, value)
    const asked = this.#asked.get(key)
    this.#asked.delete(key)
    if (number === undefined || this.#accounts === undefined || this.#journal === undefined) {
      asked?.resolve(noAccount)
      return
    }
    const account = new OpenAccount(this.#accounts, this.#journal, number, endsAt)
    const known = this.#known.get(budget) ?? new Map<string, BudgetAccount>()
    this.#known.set(budget, known.set(value, account))
    asked?.resolve(account)
  }
}
