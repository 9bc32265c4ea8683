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

/** Units of durations for people: name, milliseconds, and the step to which such durations are rounded up. */
const shownUnits = [
  ['d', 86_400_000, 3_600_000],
  ['h', 3_600_000, 60_000],
  ['min', 60_000, 1_000],
  ['s', 1_000, 1_000],
  ['ms', 1, 1],
] as const

/** Writes milliseconds for people, rounded up, in at most two units: `250 ms`, `30 s` or `2 h 48 min`. */
export function durationText(ms: number): string {
  const [, , step] = shownUnits.find(([, size]) => ms >= size) ?? ['ms', 1, 1]
  let rest = Math.ceil(ms / step) * step
  const parts: string[] = []
  for (const [unit, size] of shownUnits) {
    const count = Math.floor(rest / size)
    rest -= count * size
    if (count > 0) parts.push(`${count} ${unit}`)
  }
  return parts.join(' ') || '0 ms'
}

/** Parses the output of `durationText`. Returns milliseconds. */
export function readDurationText(text: string): number {
  const sizes = new Map<string, number>(shownUnits.map(([unit, size]) => [unit, size]))
  return [...text.matchAll(/([0-9]+) ([a-z]+)/g)].reduce(
    (sum, [, count, unit = '']) => sum + Number(count) * (sizes.get(unit) ?? 0),
    0,
  )
}
