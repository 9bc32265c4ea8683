/** Reads the budget of `sluice ai`, such as `5USD/day`. */
import { UsageError } from '../shared/output.ts'

export interface Budget {
  readonly unit: string
  readonly amount: string
  readonly window: string
}

const units = new Map([
  ['usd', 'USD'],
  ['tokens', 'Tokens'],
  ['requests', 'Requests'],
])
const windows = new Map(
  ['Minute', 'Hour', 'Day', 'Week', 'Month'].map((unit) => [unit.toLowerCase(), unit]),
)

/** @throws UsageError */
export function budgetOf(text: string): Budget {
  const [, dollar, amount = '', unit = '', window = ''] =
    /^(\$)?(\d{1,15}(?:\.\d{1,6})?) ?([a-z]*)\/([a-z]+)$/i.exec(text.trim()) ?? []
  const found = {
    unit: dollar === undefined ? units.get(unit.toLowerCase()) : unit === '' ? 'USD' : undefined,
    window: windows.get(window.toLowerCase()),
  }
  const isCounted = found.unit !== 'USD' && amount.includes('.')
  if (found.unit === undefined || found.window === undefined || isCounted) {
    throw new UsageError(
      `--budget ${text}: expected an amount in USD, tokens or requests for a minute, hour, day, week or month, such as 5USD/day or 200000tokens/hour`,
    )
  }
  return { unit: found.unit, amount, window: found.window }
}
