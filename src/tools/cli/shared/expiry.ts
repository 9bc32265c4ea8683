/** Times in the future, as options have them. */
import { timeOfRfc3339 } from '../../../ground/secrets/api-key-entry.ts'
import { UsageError } from './output.ts'

const unitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Reads `90d`, `24h`, `30m` from now on, or a time of RFC 3339. */
export function timeAfter(text: string, option: string): string {
  const [, count, unit = ''] = /^(\d{1,5})([mhd])$/.exec(text) ?? []
  // Without an offset, a time would mean another one on each machine.
  const isTime = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/.test(text)
  const time =
    count === undefined
      ? isTime && timeOfRfc3339(text)
      : Date.now() + Number(count) * (unitMs[unit] ?? 0)
  if (typeof time !== 'number') {
    throw new UsageError(
      `${option} ${text}: expected 90d, 24h, 30m or a time such as 2027-01-31T00:00:00Z`,
    )
  }
  return new Date(time).toISOString()
}
