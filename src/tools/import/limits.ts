/** Converts rates to local limits. */
import type { Fields } from './conversion.ts'
import type { SourceField } from './field.ts'

const periods: Readonly<Record<number, string>> = { 1: 'Seconds', 60: 'Minutes', 3600: 'Hours' }

/** A limit of a source. */
interface SourceLimit {
  readonly amount: number
  /** Length of the period. */
  readonly seconds: number
  readonly unit?: 'requests' | 'tokens'
}

/**
 * Returns a local limit. A period of more than an hour becomes an hour, with a limit that never
 * exceeds that of the source, and is reported as stricter. Returns undefined if less than 1 per
 * hour would remain, or for other periods; the caller reports that.
 */
export function limitOf(
  { amount, seconds, unit = 'requests' }: SourceLimit,
  field: SourceField,
): Fields | undefined {
  const period = periods[seconds]
  if (!(amount >= 1)) return undefined
  if (period !== undefined) return { [unit]: Math.floor(amount), unit: period }
  const hourly = Math.floor(amount / (seconds / 3600))
  if (!(seconds > 3600) || hourly < 1) return undefined
  const reason = `${amount} ${unit} in ${hoursText(seconds)} become ${hourly} an hour`
  field.report('stricter', reason)
  return { [unit]: hourly, unit: 'Hours' }
}

const hoursText = (seconds: number): string => `${Number((seconds / 3600).toFixed(2))} hours`

/** Reports that all clients share a limit which the source counts for each of them. */
export function reportShared(field: SourceField, counted: string): void {
  const reason = `all clients share the limit, which ${counted}; use rateLimit.global to count separately`
  field.report('stricter', reason)
}
