/** One holder that is connected to this replica: its report, what it misses, and what it was sent. */
import {
  type AccountUpdate,
  accountKey,
  type HolderReport,
  type HolderUpdate,
  limitOf,
  type WindowUpdate,
} from '../../ground/model/budgets.ts'
import type { BudgetState } from './budget-state.ts'
import { balanceOf, type LedgerChange, type LedgerFold, shareOf, spentOf } from './ledger-fold.ts'
import { reachedLimits } from './reached-limits.ts'

/** An allowance that the holder misses. */
interface Want {
  readonly budget: string
  readonly value: string
  readonly want: bigint
  /** Monotonic time at which the want is forgotten, unless it is reported again. */
  readonly until: number
}

/** A value of a budget. */
type Account = Pick<Want, 'budget' | 'value'>

const keyOf = ({ budget, value }: Account): string => accountKey(budget, value)

export class HolderSession {
  readonly holder: string
  readonly #receive: (update: HolderUpdate) => void
  /** The report that is not counted yet. */
  pending: HolderReport | undefined
  readonly wants = new Map<string, Want>()
  /** Wants for which nothing is left. */
  readonly #exhausted = new Set<string>()
  /** Budgets of which all may have changed, by id, and single values. */
  readonly #changedBudgets = new Set<string>()
  readonly #changed = new Map<string, Account>()
  readonly #sentAccounts = new Map<string, string>()
  readonly #sentWindows = new Map<string, string>()
  /** Monotonic time at which an event of the holder was last appended here. */
  aliveAt = Number.NEGATIVE_INFINITY
  /** Whether the holder waits for an answer. */
  isReplyDue = true
  /** The last message of the holder that was taken: its charges are counted, and that it runs is in the log. */
  answered = 0
  isClosed = false
  /** Whether the holder gives everything back, so that it is granted nothing more. */
  isLeaving = false

  constructor(holder: string, receive: (update: HolderUpdate) => void) {
    this.holder = holder
    this.#receive = receive
  }

  note({ budget, value }: LedgerChange): void {
    if (value === undefined) this.#changedBudgets.add(budget)
    else this.#changed.set(accountKey(budget, value), { budget, value })
  }

  setExhausted(account: Account, isExhausted: boolean): void {
    const key = keyOf(account)
    if (isExhausted === this.#exhausted.has(key)) return
    if (isExhausted) this.#exhausted.add(key)
    else this.#exhausted.delete(key)
    this.note(account)
  }

  want(want: Want): void {
    this.wants.set(keyOf(want), want)
  }

  forgetWants(now: number): void {
    for (const [key, { until }] of this.wants) if (until < now) this.wants.delete(key)
  }

  /** Sends what has changed. */
  flush(fold: LedgerFold): void {
    const holder = fold.holders.get(this.holder)
    const windows: WindowUpdate[] = []
    const accounts: AccountUpdate[] = []
    for (const id of this.#changedBudgets) {
      const budget = fold.budgets.get(id)
      if (budget === undefined) continue
      windows.push(...this.#windowOf(budget))
      for (const value of budget.balances.keys())
        this.#changed.set(accountKey(id, value), { budget: id, value })
    }
    for (const { budget: id, value } of this.#changed.values()) {
      const budget = fold.budgets.get(id)
      if (budget !== undefined) accounts.push(...this.#accountOf(budget, value, fold))
    }
    this.#changedBudgets.clear()
    this.#changed.clear()
    if (!this.isReplyDue && windows.length === 0 && accounts.length === 0) return
    this.isReplyDue = false
    this.#receive({
      counted: holder?.sequence ?? 0,
      answered: this.answered,
      isReleased: holder?.isReleased ?? false,
      windows,
      accounts,
    })
  }

  #windowOf(budget: BudgetState): WindowUpdate[] {
    const { id, window, endsAt, definition } = budget
    if (window === 0) return []
    const { generation } = definition
    const share = budget.shares
      .get(this.holder)
      ?.findLast((one) => one.generation === generation)?.share
    const text = `${window} ${generation} ${share}`
    if (this.#sentWindows.get(id) === text) return []
    this.#sentWindows.set(id, text)
    return [{ budget: id, window, endsAt, generation, share: share ?? 0 }]
  }

  #accountOf(budget: BudgetState, value: string, { time }: LedgerFold): AccountUpdate[] {
    const { value: state, context } = balanceOf(budget, value)
    const granted = context.holdings.get(this.holder)?.granted ?? 0n
    const key = keyOf({ budget: budget.id, value })
    const isRecalled = state !== 'granted'
    const isExhausted = this.#exhausted.has(key)
    // The holder has opened the account with its share itself, unless there are shares of several generations.
    const isShare = budget.shares.get(this.holder)?.length === 1
    const isOwn = isShare && granted === shareOf(budget, this.holder, value)
    const limit = limitOf(budget.definition, value) + context.adjusted
    const spent = spentOf(budget, context, time)
    const softLimit = reachedLimits(budget.definition, limit, spent).at(-1) ?? 0
    const isPlain = !isRecalled && !isExhausted && isOwn && softLimit === 0
    const sent = this.#sentAccounts.get(key)
    if (isPlain && sent === undefined) return []
    const text = `${budget.window} ${granted} ${isRecalled} ${isExhausted} ${softLimit}`
    if (sent === text) return []
    this.#sentAccounts.set(key, text)
    const account = { budget: budget.id, value, window: budget.window }
    return [{ ...account, granted, limit, spent, isRecalled, isExhausted, softLimit }]
  }
}
