/** Converts rates to local limits. */
import { limitPeriodMs } from '../../ground/base/limit-periods.ts'
import type { Fields } from './conversion.ts'
import type { SourceField } from './field.ts'

const periods: ReadonlyMap<number, string> = new Map(
  Object.entries(limitPeriodMs).map(([name, milliseconds]) => [milliseconds / 1_000, name]),
)

/** A limit of a source. */
interface SourceLimit {
  readonly amount: number
  /** Length of the period. */
  readonly seconds: number
  readonly unit?: 'requests' | 'tokens'
  /** Expression whose values have a limit each; omitted if all requests share one. */
  readonly key?: string | undefined
}

/** The key of limits that count each address of clients. */
export const byAddress = 'source.address'

/** Returns the key of limits that count each value of a header; requests without it are counted by their address. */
export function byHeader(name: string): string {
  const quoted = JSON.stringify(name.toLowerCase())
  return `${quoted} in request.headers ? request.headers[${quoted}] : ${byAddress}`
}

/**
 * Returns a local limit. Another period of more than an hour becomes a day or an hour, with a limit that never
 * exceeds that of the source, and is reported as stricter. Returns undefined if less than 1 would remain, or for
 * other periods; the caller reports that.
 */
export function limitOf(
  { amount, seconds, unit = 'requests', key }: SourceLimit,
  field: SourceField,
): Fields | undefined {
  const period = periods.get(seconds)
  if (!(amount >= 1)) return undefined
  const keyed = key !== undefined && { key }
  if (period !== undefined) return { [unit]: Math.floor(amount), unit: period, ...keyed }
  const { length, name, each } = seconds > day.length ? day : hour
  const part = Math.floor(amount / (seconds / length))
  if (!(seconds > hour.length) || part < 1) return undefined
  field.report('stricter', `${amount} ${unit} in ${spanText(seconds)} become ${part} ${each}`)
  return { [unit]: part, unit: name, ...keyed }
}

const hour = { length: 3_600, name: 'Hours', each: 'an hour' } as const
const day = { length: 86_400, name: 'Days', each: 'a day' } as const

const spanText = (seconds: number): string =>
  seconds > day.length
    ? `${Number((seconds / day.length).toFixed(2))} days`
    : `${Number((seconds / hour.length).toFixed(2))} hours`

/** Reports that requests share a limit which the source counts separately. */
export function reportShared(field: SourceField, counted: string): void {
  field.report(
    'stricter',
    `requests share the limit, which ${counted}; use its \`key\` to count separately`,
  )
}
