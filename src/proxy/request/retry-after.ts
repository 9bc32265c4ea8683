/** Seconds as a decimal number; undefined where the text is none. */
export function decimal(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,12}(\.\d{1,9})?$/.test(text.trim()) ? Number(text) : undefined
}

/**
 * What Retry-After says: seconds (with a fraction, as some servers send them) or a date (RFC 9110
 * 10.2.3), as milliseconds from `now`, which is in milliseconds of the wall clock. Undefined where it
 * is neither.
 */
export function retryAfterMs(text: string | undefined, now: number): number | undefined {
  const seconds = decimal(text)
  if (seconds !== undefined) return seconds * 1_000
  const date = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
