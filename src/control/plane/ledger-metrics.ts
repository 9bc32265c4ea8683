/** Metrics of the balances of all budgets in their current windows. */
import type { LedgerMetric, Series } from '../../gateway/proxy/telemetry/metric-definitions.ts'
import type { BudgetConfig } from '../../ground/model/budgets.ts'
import { type ValueBalance, valueBalance, valuesOf } from '../ledger/balances.ts'
import type { BudgetState } from '../ledger/budget-state.ts'
import type { LedgerFold } from '../ledger/ledger-fold.ts'
import { reachedLimits } from '../ledger/reached-limits.ts'

/** Maximum number of values of a budget that have separate series, and the length of their labels. */
const maxValues = 100
const maxLength = 128
/** Label of all further values. */
const others = '_OTHER'

/** Amounts of money are in 10⁻¹² USD. */
const usd = 1e12

type Snapshot = Record<Exclude<LedgerMetric, 'budget_warnings_total'>, Series[]>
type Sums = Pick<ValueBalance, 'limit' | 'spent' | 'reserved' | 'remaining'>

export function ledgerSnapshot(
  { budgets, time }: LedgerFold,
  shown: ReadonlyMap<string, Pick<BudgetConfig, 'id' | 'each'>>,
  now: number,
): Snapshot {
  const snapshot: Snapshot = {
    budget_limit: [],
    budget_spent: [],
    budget_reserved: [],
    budget_remaining: [],
    budget_values_over_soft_limit: [],
  }
  for (const { id, each } of shown.values()) {
    const budget = budgets.get(id)
    if (budget !== undefined && budget.window > 0) {
      addBudget(snapshot, budget, each, Math.max(time, now))
    }
  }
  return snapshot
}

function addBudget(
  snapshot: Snapshot,
  budget: BudgetState,
  each: string | undefined,
  time: number,
): void {
  const { name, softLimits = [] } = budget.definition
  const over = new Map(softLimits.map((percent) => [percent, 0]))
  let further: Sums | undefined
  for (const [index, value] of valuesOf(budget, each).entries()) {
    const balance = valueBalance(budget, value, time)
    for (const percent of reachedLimits(budget.definition, balance.limit, balance.spent)) {
      over.set(percent, (over.get(percent) ?? 0) + 1)
    }
    if (index < maxValues && value.length <= maxLength) addSeries(snapshot, budget, value, balance)
    else further = sumOf(further, balance)
  }
  if (further !== undefined) addSeries(snapshot, budget, others, further)
  for (const [percent, count] of over) {
    const labels = [name, `${percent}`]
    snapshot.budget_values_over_soft_limit.push({ labels, values: [count] })
  }
}

function addSeries(
  snapshot: Snapshot,
  { definition: { name, unit } }: BudgetState,
  value: string,
  { limit, spent, reserved, remaining }: Sums,
): void {
  const labels = [name, unit, value]
  const of = (amount: bigint): Series => ({
    labels,
    values: [unit === 'USD' ? Number(amount) / usd : Number(amount)],
  })
  snapshot.budget_limit.push(of(limit))
  snapshot.budget_spent.push(of(spent))
  snapshot.budget_reserved.push(of(reserved))
  snapshot.budget_remaining.push(of(remaining))
}

const sumOf = (sums: Sums | undefined, one: Sums): Sums => ({
  limit: (sums?.limit ?? 0n) + one.limit,
  spent: (sums?.spent ?? 0n) + one.spent,
  reserved: (sums?.reserved ?? 0n) + one.reserved,
  remaining: (sums?.remaining ?? 0n) + one.remaining,
})
