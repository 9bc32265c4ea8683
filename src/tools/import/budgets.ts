/** Converts budgets of money, which their sources renew after a period. */
import { decimalOf } from '../catalog/decimal.ts'
import type { Fields } from './conversion.ts'

/** Lengths of calendar units in seconds, as sources write them. */
const units: ReadonlyMap<number, string> = new Map([
  [60, 'Minute'],
  [3_600, 'Hour'],
  [86_400, 'Day'],
  [604_800, 'Week'],
  [2_592_000, 'Month'],
])

const secondsOf: ReadonlyMap<string, number> = new Map([
  ['s', 1],
  ['m', 60],
  ['h', 3_600],
  ['d', 86_400],
  ['w', 604_800],
  ['mo', 2_592_000],
])

/** Returns the unit of the calendar with this length. */
export const unitOfSeconds = (seconds: number): string | undefined => units.get(seconds)

/** Returns the unit of the calendar with which a budget is renewed, for a duration such as `24h`, `30d` or `1mo`. */
export function unitOf(duration: string): string | undefined {
  const [, count = '', unit = ''] = /^(\d{1,9})(s|m|h|d|w|mo)$/.exec(duration) ?? []
  const seconds = Number(count) * (secondsOf.get(unit) ?? Number.NaN)
  return units.get(seconds)
}

/** A budget in USD that is renewed when a unit of the calendar begins in UTC. */
export interface ConvertedBudget {
  readonly amount: string
  readonly unit: string
}

/** Returns the counterpart of a budget of LiteLLM; a text says why there is none. */
export function budgetOf(amount: unknown, duration: unknown): ConvertedBudget | string {
  const usd = decimalOf(amount)
  if (usd === undefined) return 'is no amount of at most six decimals'
  if (typeof duration !== 'string') return 'is never renewed; choose a period'
  const found = unitOf(duration)
  if (found === undefined)
    return `is renewed after ${duration}; choose a minute, an hour, a day, a week or a month`
  return { amount: usd, unit: found }
}

/** How a budget differs from that of the source, for the report. */
export const differsInSpend = 'begins with nothing spent; models without a price are charged 0'

/** Fields of a GatewayBudget. The sources charge nothing for models whose price they do not know. */
export const budgetFields = ({ amount, unit }: ConvertedBudget, counted = 'USD'): Fields => ({
  limit: { unit: counted, amount },
  window: { type: 'Calendar', unit },
  unpriced: 'CountAs',
  unpricedAmount: '0',
})
