/**
 * Gateway API durations (GEP-2257): one to four parts of digits and a unit, such as `1h30m`,
 * `15s` or `500ms`. No days, no fractions, no signs, at most 99999 of a unit.
 */
const durationPattern = /^([0-9]{1,5}(h|m|s|ms)){1,4}$/

const unitMs = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const

/** Returns milliseconds, or undefined if the text is not set or is not a Gateway API duration. */
export function parseDurationMs(text: string | undefined): number | undefined {
  if (text === undefined || !durationPattern.test(text)) return undefined
  let total = 0
  for (const [, digits, unit] of text.matchAll(/([0-9]+)(h|ms|m|s)/g)) {
    total += Number(digits) * unitMs[unit as keyof typeof unitMs]
  }
  return total
}
