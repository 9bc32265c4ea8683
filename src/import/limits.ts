/** Converts rates to local limits. */
import type { Fields } from './conversion.ts'

const periods: Readonly<Record<number, string>> = { 1: 'Seconds', 60: 'Minutes', 3600: 'Hours' }

/**
 * A local limit of so many requests or tokens in a period. Longer periods than an hour are divided, so that
 * the limit is never exceeded; undefined if that would leave less than one an hour, or for other periods.
 */
export function limitOf(
  amount: number,
  seconds: number,
  unit: 'requests' | 'tokens' = 'requests',
): Fields | undefined {
  const period = periods[seconds]
  if (amount < 1) return undefined
  if (period !== undefined) return { [unit]: Math.floor(amount), unit: period }
  const hourly = Math.floor(amount / (seconds / 3600))
  return seconds > 3600 && hourly >= 1 ? { [unit]: hourly, unit: 'Hours' } : undefined
}
