/** Parses a decimal number of seconds. Returns undefined for other texts. */
export function decimal(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,12}(\.\d{1,9})?$/.test(text.trim()) ? Number(text) : undefined
}

/**
 * Parses Retry-After: seconds, possibly with a fraction, or a date (RFC 9110 10.2.3). Returns the
 * milliseconds from `now` (wall clock), or undefined if the text is neither.
 */
export function retryAfterMs(text: string | undefined, now: number): number | undefined {
  const seconds = decimal(text)
  if (seconds !== undefined) return seconds * 1_000
  const date = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
