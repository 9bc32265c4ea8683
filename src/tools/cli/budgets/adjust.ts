/** `sluice budgets adjust` changes the amount of a value for the current window. */
import { budgetAmount, valueBalance } from '../../../control/ledger/balances.ts'
import type { BudgetState } from '../../../control/ledger/budget-state.ts'
import { balanceOf } from '../../../control/ledger/ledger-fold.ts'
import { adjustBudget } from '../../../control/ledger/read-ledger.ts'
import { readUsd } from '../../../engines/messages/cost/money.ts'
import { limitOf, maxUsd } from '../../../ground/model/budgets.ts'
import { defaultAuthor } from '../recording/operator-change.ts'
import { type CommandResult, type Output, UsageError } from '../shared/output.ts'
import { budgetNamed, type LedgerSource, valueNamed, withLedger } from './ledger.ts'

export interface AdjustOptions extends LedgerSource {
  readonly value?: string
  readonly by: string
  readonly reason: string
  readonly author?: string
}

/** Reads an amount with a sign. @throws UsageError */
function readAmount(text: string, unit: string): bigint {
  const [, sign, digits = ''] = /^([+-]?)(.*)$/.exec(text) ?? []
  const isWhole = /^\d{1,18}$/.test(digits)
  const amount = unit === 'USD' ? readUsd(digits) : isWhole ? BigInt(digits) : undefined
  const form = unit === 'USD' ? 'dollars such as 12.50 or -5' : `a whole number of ${unit}`
  if (amount === undefined) throw new UsageError(`--by ${text} is not ${form}`)
  if (amount === 0n) throw new UsageError('--by 0 changes nothing')
  return sign === '-' ? -amount : amount
}

/** @throws UsageError */
function assertHoldable(state: BudgetState, value: string, amount: bigint): void {
  const { definition } = state
  if (definition.unit !== 'USD' || amount < 0n) return
  const { adjusted } = balanceOf(state, value).context
  if (limitOf(definition, value) + adjusted + amount <= (readUsd(`${maxUsd}`) ?? 0n)) return
  throw new UsageError(`the amount of a window can be at most ${maxUsd} USD`)
}

export async function adjust(
  name: string,
  options: AdjustOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const { by, reason, author = defaultAuthor() } = options
  return withLedger(
    options,
    report,
    async (ledger) => {
      const { log, fold } = ledger
      const budget = budgetNamed(ledger, name)
      const value = valueNamed(budget, options.value)
      const { unit } = budget.state.definition
      const amount = readAmount(by, unit)
      assertHoldable(budget.state, value, amount)
      if (budget.spec.each !== undefined && !budget.state.balances.has(value)) {
        report(`${JSON.stringify(value)} has not spent anything in this window`)
      }
      const adjustment = { budget: budget.uid, value, amount, reason, author }
      await adjustBudget(log, fold, adjustment, ({ endsAt }) => {
        if (endsAt === undefined || endsAt > Date.now()) return
        throw new UsageError(
          `the window of ${budget.name} ended at ${new Date(endsAt).toISOString()}; start a gateway, which begins the next one`,
        )
      })
      const state = fold.budgets.get(budget.uid) ?? budget.state
      const { limit, spent, remaining } = valueBalance(
        state,
        value,
        Math.max(Date.now(), fold.time),
      )
      const written = (of: bigint) => `${budgetAmount(unit, of)} ${unit}`
      const of = budget.spec.each === undefined ? '' : ` for ${JSON.stringify(value)}`
      return {
        text: () => [
          `${budget.name}${of}: the amount of this window is ${written(limit)}; ${written(spent)} are spent, ${written(remaining)} remain`,
        ],
        json: {
          budget: budget.name,
          value,
          unit,
          by: budgetAmount(unit, amount),
          reason,
          author,
          limit: budgetAmount(unit, limit),
          spent: budgetAmount(unit, spent),
          remaining: budgetAmount(unit, remaining),
        },
      }
    },
    'append',
  )
}
