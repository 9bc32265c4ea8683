/** What the budgets of a recorded request have decided. */
import type { RecordedDecision } from './record.ts'

interface RecordedBudget {
  /** `namespace/name`. */
  readonly budget: string
  /** Value of `each`. */
  readonly value?: string
  /** `admitted`, `over` (only counted, with Audit), or why the budget refused the request. */
  readonly verdict?: string
  /** With the unit, such as `0.5 USD`. */
  readonly reserved?: string
  readonly charged?: string
}

const prefix = 'budget.'

/** Whether a detail is a part of what a budget has decided. */
export const isOfBudget = (name: string): boolean => name.startsWith(prefix)

/** Reads details such as `budget.default/money.charged`, in the order of the budgets. */
export function budgetsOf({ details }: Pick<RecordedDecision, 'details'>): RecordedBudget[] {
  const found = new Map<string, Record<string, string>>()
  for (const [name, value] of Object.entries(details)) {
    if (!isOfBudget(name)) continue
    const end = name.lastIndexOf('.')
    const budget = name.slice(prefix.length, end)
    const fields = found.get(budget) ?? {}
    fields[name.slice(end + 1)] = `${value}`
    found.set(budget, fields)
  }
  return [...found].map(([budget, fields]) => ({ budget, ...fields }))
}
