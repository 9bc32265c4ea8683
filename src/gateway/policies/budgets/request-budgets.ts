/** The budgets of one request: which apply, what they have reserved, and what they are charged. */
import { errorText, isCelError } from '../../../engines/cel/index.ts'
import type { Clock } from '../../../ground/base/clock.ts'
import type {
  BudgetAccount,
  BudgetHost,
  BudgetReservation,
  RequestBudgets,
  Spend,
} from '../../../ground/exchange/budgets.ts'
import type { Exchange, RespondVerdict } from '../../../ground/exchange/exchange.ts'
import type { BudgetConfig } from '../../../ground/model/budgets.ts'
import type { LimitExpression } from '../limit-expression.ts'
import { budgetRefusal, failedBudget, unpricedRefusal } from './refusal.ts'

export interface BoundBudget {
  readonly config: BudgetConfig
  readonly when: LimitExpression | undefined
  readonly each: LimitExpression | undefined
  readonly overdraft: bigint | undefined
  readonly unpriced: bigint | undefined
}

/** Budgets that apply to the same requests. */
export interface BoundBudgets {
  /** Budgets of requests that are reserved before the backend is asked. */
  readonly early: readonly BoundBudget[]
  /** The others, which the AI backend reserves once it has read the request. */
  readonly late: readonly BoundBudget[]
}

/** What one budget has reserved. */
interface Hold {
  readonly budget: BoundBudget
  readonly account: BudgetAccount
  readonly reservation: BudgetReservation
  readonly reserved: bigint
  /** What was charged while the request went on. */
  charged: bigint
}

export class Budgets implements RequestBudgets {
  readonly #bound: BoundBudgets
  readonly #host: BudgetHost
  readonly #clock: Clock
  readonly #holds: Hold[] = []
  /** Whether the budgets of requests were reserved. */
  #hasCounted = false
  #hasReserved = false
  /** Undefined if it is not known, null if nothing was billed. */
  #spend: Spend | null | undefined
  #isOver = false

  constructor(bound: BoundBudgets, host: BudgetHost, clock: Clock) {
    this.#bound = bound
    this.#host = host
    this.#clock = clock
  }

  note(exchange: Exchange): void {
    this.#note(exchange, false)
  }

  #note(exchange: Exchange, isLate: boolean): void {
    for (const { when, each } of this.#bound.late) {
      if (when?.isLate === isLate) when.note(exchange)
      if (each?.isLate === isLate) each.note(exchange)
    }
  }

  /** Reserves the budgets of requests, which need no estimate. */
  count(exchange: Exchange): RespondVerdict | undefined | Promise<RespondVerdict | undefined> {
    if (this.#hasCounted) return undefined
    this.#hasCounted = true
    return this.#reserveAll(exchange, this.#bound.early, undefined, 0)
  }

  reserve(
    exchange: Exchange,
    estimate: Spend | undefined,
  ): RespondVerdict | undefined | Promise<RespondVerdict | undefined> {
    // Further attempts of a request use what the first one has reserved.
    if (this.#hasReserved) return undefined
    this.#hasReserved = true
    this.#note(exchange, true)
    return this.#reserveAll(exchange, this.#bound.late, estimate, 0)
  }

  #reserveAll(
    exchange: Exchange,
    due: readonly BoundBudget[],
    estimate: Spend | undefined,
    from: number,
  ): RespondVerdict | undefined | Promise<RespondVerdict | undefined> {
    for (let at = from; at < due.length; at++) {
      const budget = due[at]
      if (budget === undefined || !applies(budget, exchange)) continue
      const value = valueFor(budget, exchange)
      if (typeof value === 'object') return value
      const amount = amountOf(budget, estimate)
      if (amount === undefined && budget.config.onExceeded === 'Block') {
        return unpricedRefusal(budget.config)
      }
      const account = this.#host.account(budget.config, value)
      if (account instanceof Promise) {
        return account.then((found) => {
          if (exchange.isOver || this.#isOver) return undefined
          const refused = this.#hold(budget, found, value, amount ?? 0n)
          return refused ?? this.#reserveAll(exchange, due, estimate, at + 1)
        })
      }
      const refused = this.#hold(budget, account, value, amount ?? 0n)
      if (refused !== undefined) return refused
    }
    return undefined
  }

  /** Reserves an amount. If that fails, what other budgets have reserved is freed. */
  #hold(
    budget: BoundBudget,
    account: BudgetAccount,
    value: string,
    amount: bigint,
  ): RespondVerdict | undefined {
    const { config, overdraft } = budget
    let found = account.reserve(amount, overdraft)
    if (typeof found !== 'object' && config.onExceeded === 'Audit') found = account.force(amount)
    if (typeof found === 'object') {
      this.#holds.push({ budget, account, reservation: found, reserved: amount, charged: 0n })
      return undefined
    }
    for (const { reservation } of this.#holds.splice(0)) reservation.settle(0n)
    const times = { endsAt: account.endsAt, now: this.#clock.now() }
    return budgetRefusal(config, value, found, times)
  }

  charge(spend: Spend): void {
    for (const hold of this.#holds) {
      const { config } = hold.budget
      if (config.unit === 'Requests') continue
      const amount = actualOf(hold, spend)
      hold.charged += amount
      hold.account.force(0n).settle(amount)
    }
  }

  used(spend: Spend | undefined): void {
    this.#spend = spend ?? null
  }

  end(wasServed: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const hold of this.#holds) {
      const { reservation, charged, budget } = hold
      const spend = this.#spend
      if (budget.config.unit === 'Requests') reservation.settle(wasServed ? 1n : 0n)
      else if (charged > 0n || spend === null) reservation.settle(0n)
      else if (spend !== undefined) reservation.settle(actualOf(hold, spend))
      else reservation.settle(wasServed ? hold.reserved : 0n)
    }
  }
}

/** If the condition fails, the budget applies: a client could otherwise evade it. */
function applies({ when }: BoundBudget, exchange: Exchange): boolean {
  if (when === undefined) return true
  const result = when.resultFor(exchange)
  if (isCelError(result)) return result.kind !== 'missing'
  return result === true
}

function valueFor({ each, config }: BoundBudget, exchange: Exchange): string | RespondVerdict {
  if (each === undefined) return ''
  const text = each.textFor(exchange)
  return isCelError(text) ? failedBudget(config, errorText(text)) : (text ?? '')
}

/** What to reserve; undefined if that is not known. */
function amountOf({ config, unpriced }: BoundBudget, estimate: Spend | undefined) {
  if (config.unit === 'Requests') return 1n
  return (config.unit === 'Tokens' ? estimate?.tokens : estimate?.usd()) ?? unpriced
}

/** What to charge. If the cost turns out to be unknown, the request is charged what was reserved for it. */
function actualOf({ budget: { config, unpriced }, reserved }: Hold, spend: Spend): bigint {
  const amount = config.unit === 'Tokens' ? spend.tokens : spend.usd()
  return amount ?? unpriced ?? reserved
}
