/** The budgets of one request: which apply, what they have reserved, and what they are charged. */
import { errorText, isCelError } from '../../../engines/cel/index.ts'
import type { Clock } from '../../../ground/base/clock.ts'
import type {
  BudgetAccount,
  BudgetHost,
  BudgetRefusal,
  BudgetReservation,
  CallBudgets,
  RequestBudgets,
  Spend,
} from '../../../ground/exchange/budgets.ts'
import type { Exchange, HeaderFields, RespondVerdict } from '../../../ground/exchange/exchange.ts'
import type { BudgetConfig } from '../../../ground/model/budgets.ts'
import type { LimitExpression } from '../limit-expression.ts'
import { amountText, budgetRefusal, failedBudget, unpricedRefusal } from './refusal.ts'

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
  /** Budgets of calls of tools, which MCP backends reserve for each call. */
  readonly calls: readonly BoundBudget[]
  /** The step of the policy. */
  readonly step: object
}

/** Maximum number of calls of one exchange whose budgets are recorded: as many as a batch may have. */
const maxRecordedCalls = 100

/** What one budget has reserved. */
interface Hold {
  readonly budget: BoundBudget
  readonly account: BudgetAccount
  readonly value: string
  readonly reservation: BudgetReservation
  readonly reserved: bigint
  /** Whether the request was only admitted because the budget refuses nothing. */
  readonly isOver: boolean
  /** What was charged so far. */
  charged: bigint
}

/** The budget that has refused the request. */
interface Refused {
  readonly config: BudgetConfig
  readonly value: string
  readonly reason: BudgetRefusal
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
  /** The latest calls. */
  readonly #calls: Budgets[] = []
  #refused: Refused | undefined

  constructor(bound: BoundBudgets, host: BudgetHost, clock: Clock) {
    this.#bound = bound
    this.#host = host
    this.#clock = clock
  }

  get refusedBy(): object | undefined {
    return this.#refused && this.#bound.step
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
      if (typeof value === 'object') {
        this.#refuse(budget.config, '', 'failed')
        return value
      }
      const amount = this.#amountOf(budget, estimate)
      if (amount === undefined && budget.config.onExceeded === 'Block') {
        this.#refuse(budget.config, value, 'unpriced')
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

  /** What to reserve; undefined if that is not known. */
  #amountOf({ config, unpriced }: BoundBudget, estimate: Spend | undefined): bigint | undefined {
    if (config.unit === 'Requests') return 1n
    const amount = config.unit === 'Tokens' ? estimate?.tokens : estimate?.usd()
    if (amount !== undefined) return amount
    const isRefused = unpriced === undefined && config.onExceeded === 'Block'
    this.#host.unpriced(config.name, isRefused ? 'refused' : 'counted')
    return unpriced
  }

  /** Notes a refusal, and frees what other budgets have reserved. */
  #refuse(config: BudgetConfig, value: string, reason: BudgetRefusal): void {
    this.#refused = { config, value, reason }
    this.#host.refused(config.name, reason)
    for (const { reservation } of this.#holds) reservation.settle(0n)
    this.#isOver = true
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
    const isOver = typeof found !== 'object' && config.onExceeded === 'Audit'
    if (isOver) found = account.force(amount)
    if (typeof found === 'object') {
      const reserved = { reservation: found, reserved: amount, isOver, charged: 0n }
      this.#holds.push({ budget, account, value, ...reserved })
      return undefined
    }
    this.#refuse(config, value, found)
    const times = { endsAt: account.endsAt, now: this.#clock.now() }
    return budgetRefusal(config, value, found, times)
  }

  get countsCalls(): boolean {
    return this.#bound.calls.length > 0
  }

  forCall(): CallBudgets | undefined {
    const { calls, step } = this.#bound
    if (calls.length === 0) return undefined
    const call = new Budgets({ early: calls, late: [], calls: [], step }, this.#host, this.#clock)
    this.#calls.push(call)
    if (this.#calls.length > maxRecordedCalls) this.#calls.shift()
    return call
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
      const rest = restOf(hold, this.#spend, wasServed)
      hold.charged += rest
      hold.reservation.settle(rest)
    }
  }

  warn(headers: Pick<HeaderFields, 'add'>): void {
    if (this.#refused !== undefined) return
    for (const call of this.#calls) call.warn(headers)
    for (const { budget, account } of this.#holds) {
      const { name, softLimits } = budget.config
      const { softLimit } = account
      if (softLimits === undefined || softLimit === 0) continue
      const reached = softLimits.findLast((one) => one.header && one.percent <= softLimit)
      // A list of strings with parameters (RFC 9651).
      if (reached?.header) headers.add(reached.header, `"${name}";percent=${reached.percent}`)
    }
  }

  eachField(visit: (name: string, value: string | undefined) => void): void {
    for (const call of this.#calls) call.eachField(visit)
    for (const { budget, value, reserved, charged, isOver } of this.#holds) {
      const { config } = budget
      visit(`budget.${config.name}.verdict`, isOver ? 'over' : 'admitted')
      visit(`budget.${config.name}.value`, value)
      visit(`budget.${config.name}.reserved`, amountText(config, reserved))
      visit(`budget.${config.name}.charged`, amountText(config, charged))
    }
    if (this.#refused === undefined) return
    const { config, value, reason } = this.#refused
    visit(`budget.${config.name}.verdict`, reason)
    visit(`budget.${config.name}.value`, value)
  }
}

/** What to charge at the end of a request. */
function restOf(hold: Hold, spend: Spend | null | undefined, wasServed: boolean): bigint {
  if (hold.budget.config.unit === 'Requests') return wasServed ? 1n : 0n
  if (hold.charged > 0n || spend === null) return 0n
  if (spend !== undefined) return actualOf(hold, spend)
  return wasServed ? hold.reserved : 0n
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

/** What to charge. If the cost turns out to be unknown, the request is charged what was reserved for it. */
function actualOf({ budget: { config, unpriced }, reserved }: Hold, spend: Spend): bigint {
  const amount = config.unit === 'Tokens' ? spend.tokens : spend.usd()
  return amount ?? unpriced ?? reserved
}
