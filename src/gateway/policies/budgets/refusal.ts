/** Responses to requests that a budget refuses. */
import { usdText } from '../../../engines/messages/cost/money.ts'
import type { Shortage } from '../../../ground/exchange/budgets.ts'
import { type RespondVerdict, refuse } from '../../../ground/exchange/exchange.ts'
import { type BudgetConfig, limitOf } from '../../../ground/model/budgets.ts'

/** When the window ends, if it does, and the present time, in milliseconds of the epoch. */
interface WindowTimes {
  readonly endsAt: number | undefined
  readonly now: number
}

/** When a proxy should have another allowance. */
const pendingSeconds = 1

/** The name of a budget for clients. It does not contain the value of `each`, which may identify another client. */
const shownOf = (config: BudgetConfig, value: string): string =>
  `budget ${config.name} of ${amountText(config, limitOf(config, value))} per ${config.window.unit.toLowerCase()}`

/** Writes an amount, such as `12.5 USD` or `10 requests`. */
export function amountText({ unit }: Pick<BudgetConfig, 'unit'>, amount: bigint): string {
  return unit === 'USD' ? `${usdText(amount)} USD` : `${amount} ${unit.toLowerCase()}`
}

/** Refuses a request because of a budget. */
export function budgetRefusal(
  config: BudgetConfig,
  value: string,
  shortage: Shortage,
  { endsAt, now }: WindowTimes,
): RespondVerdict {
  const of = config.each === undefined ? '' : ` for ${config.each} = ${JSON.stringify(value)}`
  const detail = `${shownOf(config, value)}${of}: ${shortage}`
  if (shortage === 'exhausted') return exhausted(config, value, { endsAt, now }, detail)
  const headers = [['retry-after', `${pendingSeconds}`]] as const
  const text =
    shortage === 'pending'
      ? `${shownOf(config, value)}: this proxy needs another allowance; try again`
      : `${shownOf(config, value)} cannot be checked now`
  return { ...refuse(shortage === 'pending' ? 429 : 503, 'Budget', text, detail), headers }
}

function exhausted(
  config: BudgetConfig,
  value: string,
  { endsAt, now }: WindowTimes,
  detail: string,
): RespondVerdict {
  // A rolling window frees a part of its amount with every slice.
  const waitMs = endsAt === undefined ? 60_000 : Math.max(1_000, endsAt - now)
  const until = endsAt === undefined ? '' : `; it is renewed at ${new Date(endsAt).toISOString()}`
  const message = `${shownOf(config, value)} is exhausted${until}`
  return {
    ...refuse(429, 'Budget', 'budget exhausted', detail),
    body: message,
    limit: { message, waitMs },
    headers: [['retry-after', `${Math.ceil(waitMs / 1_000)}`]],
  }
}

/** Refuses a request whose cost cannot be known. */
export function unpricedRefusal(config: BudgetConfig): RespondVerdict {
  const what = config.unit === 'USD' ? 'cost' : 'number of tokens'
  const text = `the ${what} of this request is not known, and budget ${config.name} does not admit such requests`
  return refuse(403, 'Budget', text, `budget ${config.name}: unpriced`)
}

/** Refuses a request for which the value of `each` cannot be computed. */
export const failedBudget = (config: BudgetConfig, why: string): RespondVerdict =>
  refuse(
    500,
    'Budget',
    'budget failed',
    `budget ${config.name}: each ${config.each} failed: ${why}`,
  )
