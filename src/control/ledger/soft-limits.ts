/** Soft limits: which parts of an amount are spent, and which warnings are due. */
import { budgetWarned } from '../../../events/index.ts'
import { accountKey } from '../../ground/model/budgets.ts'
import type { Balance } from '../actors/budget.machine.ts'
import { valueBalance } from './balances.ts'
import type { BudgetDefinition, BudgetState } from './budget-state.ts'
import { balanceOf } from './ledger-fold.ts'
import type { NewEvent, Scene } from './next-events.ts'
import { reachedLimits } from './reached-limits.ts'
import { lengthOfWindow } from './windows.ts'

/**
 * Warnings of soft limits that were reached and not warned about in this window. If the amount has grown since a
 * warning, the limit is another one. A rolling window has no end, so there is another warning after its length.
 */
export function dueWarnings(
  { fold, now }: Pick<Scene, 'fold' | 'now'>,
  touched: readonly { readonly budget: string; readonly value: string | undefined }[],
): NewEvent[] {
  const due = new Map<string, NewEvent[]>()
  for (const { budget: id, value } of touched) {
    const budget = fold.budgets.get(id)
    if (budget?.definition.softLimits === undefined) continue
    for (const each of value === undefined ? budget.balances.keys() : [value]) {
      const key = accountKey(id, each)
      if (!due.has(key)) due.set(key, warningsOf(budget, each, now))
    }
  }
  return [...due.values()].flat()
}

function warningsOf(budget: BudgetState, value: string, now: number): NewEvent[] {
  const { id, window, definition } = budget
  const { limit, spent } = valueBalance(budget, value, now)
  const { warned } = balanceOf(budget, value).context
  return reachedLimits(definition, limit, spent)
    .filter((percent) => isNew(warned[percent], definition, { limit, now }))
    .map((percent) => {
      const data = { budget: id, window, value, percent, spent: `${spent}`, limit: `${limit}` }
      return [budgetWarned, id, data]
    })
}

function isNew(
  before: Balance['warned'][number] | undefined,
  { window }: BudgetDefinition,
  { limit, now }: { readonly limit: bigint; readonly now: number },
): boolean {
  if (before === undefined || before.limit < limit) return true
  return window.type === 'Rolling' && now - before.at >= lengthOfWindow(window)
}
