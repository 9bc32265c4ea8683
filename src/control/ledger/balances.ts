/** What is spent of a budget, as statuses and commands show it. */
import { usdText } from '../../engines/messages/cost/money.ts'
import { type BudgetConfig, limitOf } from '../../ground/model/budgets.ts'
import type { BudgetState } from './budget-state.ts'
import { balanceOf, spentOf } from './ledger-fold.ts'
import { reachedLimits } from './reached-limits.ts'

/** The balance of one value of a budget in its current window. */
export interface ValueBalance {
  readonly value: string
  /** The amount of the window, with adjustments. */
  readonly limit: bigint
  readonly spent: bigint
  /** What proxies hold as allowances. It is a part of what remains. */
  readonly reserved: bigint
  /** The limit minus what is spent; 0 if more is spent. */
  readonly remaining: bigint
  readonly requests: number
}

export function valueBalance(budget: BudgetState, value: string, time: number): ValueBalance {
  const { context } = balanceOf(budget, value)
  const limit = limitOf(budget.definition, value) + context.adjusted
  const spent = spentOf(budget, context, time)
  const reserved = context.holdings.outstanding
  const remaining = limit > spent ? limit - spent : 0n
  return { value, limit, spent, reserved, remaining, requests: context.requests }
}

/** The values that have a balance. A budget without `each` always has one, the empty value. */
export const valuesOf = ({ balances }: BudgetState, each: string | undefined): string[] =>
  each === undefined ? [''] : [...balances.keys()]

/** Writes an amount of a budget: dollars, tokens or requests. */
export const budgetAmount = (unit: BudgetConfig['unit'], amount: bigint): string =>
  unit === 'USD' ? usdText(amount) : `${amount}`

/** When the current window ends; undefined for a rolling window, and before the first one. */
export const resetTime = ({ endsAt }: BudgetState): string | undefined =>
  endsAt === undefined ? undefined : new Date(endsAt).toISOString().replace('.000Z', 'Z')

/** Whether more of the amount of `a` is spent than of that of `b`. */
function isCloserToLimit(a: ValueBalance, b: ValueBalance): boolean {
  const [left, right] = [a.spent * b.limit, b.spent * a.limit]
  return left === right ? a.spent > b.spent : left > right
}

/** Maximum number of values that a status lists. */
const maxHighest = 5

/** Longest value that a status has as a whole. */
const maxShown = 256

/** All values of a budget in one. */
interface BudgetTotals {
  readonly spent: bigint
  readonly reserved: bigint
  readonly values: number
  /** Number of values of which nothing remains. */
  readonly exhausted: number
  /** Number of values of which a soft limit is reached. */
  readonly over: number
  /** The values of which the greatest part is spent, the highest first. */
  readonly highest: readonly ValueBalance[]
}

export function budgetTotals(
  budget: BudgetState,
  values: readonly string[],
  time: number,
): BudgetTotals {
  let [spent, reserved, exhausted, over] = [0n, 0n, 0, 0]
  const highest: ValueBalance[] = []
  for (const value of values) {
    const one = valueBalance(budget, value, time)
    spent += one.spent
    reserved += one.reserved
    if (one.remaining === 0n) exhausted++
    if (reachedLimits(budget.definition, one.limit, one.spent).length > 0) over++
    const at = highest.findIndex((other) => isCloserToLimit(one, other))
    if (at >= 0) highest.splice(at, 0, one)
    else highest.push(one)
    if (highest.length > maxHighest) highest.pop()
  }
  return { spent, reserved, values: values.length, exhausted, over, highest }
}

/** The fields of a status that say what is spent. */
interface SpendStatus {
  /** The condition `SoftLimitReached`. */
  readonly softLimit?: object
  readonly spent: string
  readonly [field: string]: unknown
}

/** Returns undefined for a budget without soft limits. */
function softLimitCondition(
  { definition, window }: BudgetState,
  { highest, over }: BudgetTotals,
  time: number,
): object | undefined {
  if (definition.softLimits === undefined || window === 0) return undefined
  const { unit, generation } = definition
  const shown = highest.slice(0, over).map(({ value, spent, limit }) => {
    const of = value === '' ? '' : `${JSON.stringify(value.slice(0, maxShown).toWellFormed())}: `
    const percent = reachedLimits(definition, limit, spent).at(-1)
    return `${of}${percent} % is reached, ${budgetAmount(unit, spent)} of ${budgetAmount(unit, limit)} ${unit} are spent`
  })
  const more = over > shown.length ? `; and ${over - shown.length} more values` : ''
  return {
    type: 'SoftLimitReached',
    status: over > 0 ? 'True' : 'False',
    reason: over > 0 ? 'SoftLimitReached' : 'BelowSoftLimits',
    message: `${shown.join('; ')}${more}`,
    observedGeneration: generation,
    lastTransitionTime: new Date(time).toISOString(),
  }
}

/** Fields of the status of a GatewayBudget, and its condition about soft limits. A field that is null is removed from the object. */
export function spendStatus(
  budget: BudgetState,
  each: string | undefined,
  time: number,
): SpendStatus {
  const totals = budgetTotals(budget, valuesOf(budget, each), time)
  const amount = (of: bigint) => budgetAmount(budget.definition.unit, of)
  const [only] = totals.highest
  const softLimit = softLimitCondition(budget, totals, time)
  return {
    ...(softLimit !== undefined && { softLimit }),
    spent: amount(totals.spent),
    reserved: amount(totals.reserved),
    remaining: each === undefined && only !== undefined ? amount(only.remaining) : null,
    resetsAt: resetTime(budget) ?? null,
    values: each === undefined ? null : totals.values,
    exhausted: each === undefined ? null : totals.exhausted,
    highest:
      each === undefined
        ? null
        : totals.highest.map(({ value, limit, spent, remaining }) => ({
            value:
              value.length > maxShown ? `${value.slice(0, maxShown - 1).toWellFormed()}…` : value,
            limit: amount(limit),
            spent: amount(spent),
            remaining: amount(remaining),
          })),
  }
}

/** Adds what is spent to the decided status of a GatewayBudget. */
export function withSpend(
  status: Readonly<Record<string, unknown>>,
  { softLimit, ...spend }: SpendStatus,
): Readonly<Record<string, unknown>> {
  const { conditions = [] } = status as { readonly conditions?: readonly unknown[] }
  const all = softLimit === undefined ? conditions : [...conditions, softLimit]
  return { ...status, ...spend, ...(all.length > 0 && { conditions: all }) }
}
