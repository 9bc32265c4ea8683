/** Budgets as policies see them. The data plane keeps the accounts. */
import type { BudgetConfig } from '../model/budgets.ts'
import type { Exchange, HeaderFields, RespondVerdict } from './exchange.ts'

/** Why an account does not admit a request. */
export type Shortage =
  /** The amount is used up, or reserved by requests under way. */
  | 'exhausted'
  /** This proxy must get another allowance first. */
  | 'pending'
  /** The ledger is out of reach. */
  | 'unreachable'
  /** There is no room for another value. */
  | 'full'

/** A value of a budget in one window. */
export interface BudgetAccount {
  /** Milliseconds of the epoch; undefined for rolling windows. */
  readonly endsAt: number | undefined
  /** The highest soft limit that is reached, in percent; 0 if none is. The ledger decides it. */
  readonly softLimit: number
  /**
   * Reserves an amount. Returns the reservation, or why there is none. While the ledger is out of reach, the account
   * admits nothing, or is overdrawn by up to `overdraft`.
   */
  reserve(amount: bigint, overdraft: bigint | undefined): BudgetReservation | Shortage
  /** Reserves an amount whether or not there is that much. */
  force(amount: bigint): BudgetReservation
}

export interface BudgetReservation {
  /** Charges what the request has cost, and frees the rest. Only the first call has an effect. */
  settle(actual: bigint): void
}

/** What the proxy provides for budgets. */
export interface BudgetHost {
  /** Called when a budget is configured. */
  begin(): void
  /** Returns the account of a value, or a promise if this thread has not used it in this window. */
  account(config: BudgetConfig, value: string): BudgetAccount | Promise<BudgetAccount>
  /** Counts a refusal. */
  refused(budget: string, reason: BudgetRefusal): void
  /** Counts a request whose cost is not known. */
  unpriced(budget: string, action: 'refused' | 'counted'): void
}

/** Why a budget refuses a request: a shortage, an unknown cost, or an expression that fails. */
export type BudgetRefusal = Shortage | 'unpriced' | 'failed'

/** What a request uses, or probably will. */
export interface Spend {
  readonly tokens: bigint
  /** Cost in 10⁻¹² USD; undefined if it is not known. */
  usd(): bigint | undefined
}

/** The budgets of one call of a tool. */
export interface CallBudgets {
  /** Reserves the call. Returns a refusal if a budget has too little. Expressions read `exchange`. */
  count(exchange: Exchange): RespondVerdict | undefined | Promise<RespondVerdict | undefined>
  /** Charges the call, or frees what it has reserved. Only the first call has an effect. */
  end(wasServed: boolean): void
}

/** The budgets of a request. The AI backend calls them like token limits; see `TokenLimits`. */
export interface RequestBudgets {
  /** The step of the policy, if one of its budgets has refused the request. */
  readonly refusedBy: object | undefined
  /** Evaluates expressions on the request as the client sent it. */
  note(exchange: Exchange): void
  /** Reserves the estimate; undefined if it is not known. Returns a refusal if a budget has too little. */
  reserve(
    exchange: Exchange,
    estimate: Spend | undefined,
  ): RespondVerdict | undefined | Promise<RespondVerdict | undefined>
  /** Whether there are budgets of calls of tools. */
  readonly countsCalls: boolean
  /** Returns the budgets for one call of a tool; undefined if there are none. */
  forCall(): CallBudgets | undefined
  /** Charges a part of a request that goes on, such as a realtime session. */
  charge(spend: Spend): void
  /** Sets what the request has used; undefined if nothing was billed. It is charged when the exchange ends. */
  used(spend: Spend | undefined): void
  /** Charges the request, or frees what it has reserved. Only the first call has an effect. */
  end(wasServed: boolean): void
  /** Adds the headers of soft limits that are reached. */
  warn(headers: Pick<HeaderFields, 'add'>): void
  /** Visits what each budget has decided and charged, for the decision record: `budget.NAME.FIELD`. */
  eachField(visit: (name: string, value: string | undefined) => void): void
}

const budgetsExtension = 'budgets'

/** Stores the budgets of a request for the AI backend. */
export function storeBudgets({ extensions }: Exchange, budgets: RequestBudgets): void {
  extensions.set(budgetsExtension, budgets)
}

/** Returns the budgets that apply to a request; undefined if none does. */
export const budgetsOf = ({ extensions }: Exchange): RequestBudgets | undefined =>
  extensions.size === 0
    ? undefined
    : (extensions.get(budgetsExtension) as RequestBudgets | undefined)
