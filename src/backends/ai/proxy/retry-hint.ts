/** Reads from the headers of a response when the provider accepts the next request. */
import type { HeaderFields } from '../../../exchange/exchange.ts'
import { decimal, retryAfterMs } from '../../../proxy/request/retry-after.ts'

/** Larger numbers in `x-ratelimit-reset` are seconds since the epoch, not durations. */
const maxRelativeSeconds = 30 * 24 * 3600

const resetHeaders = [
  'x-ratelimit-reset-requests',
  'x-ratelimit-reset-tokens',
  'x-ratelimit-reset-requests-day',
  'x-ratelimit-reset-tokens-minute',
] as const

/** Returns the time to wait in milliseconds; 0 if the response has no hint. */
export function retryHintMs(headers: HeaderFields, now: number): number {
  return (
    retryAfterMs(headers.get('retry-after'), now) ??
    decimal(headers.get('retry-after-ms')) ??
    reset(headers.get('x-ratelimit-reset'), now) ??
    smallest(resetHeaders.map((name) => duration(headers.get(name)))) ??
    0
  )
}

function reset(text: string | undefined, now: number): number | undefined {
  const value = decimal(text)
  if (value === undefined) return undefined
  return value < maxRelativeSeconds ? value * 1_000 : Math.max(0, value * 1_000 - now)
}

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** Parses durations such as `6m0s`, `20ms` and `1.5s` to milliseconds; a bare number is in seconds. */
function duration(text: string | undefined): number | undefined {
  const plain = decimal(text)
  if (plain !== undefined) return plain * 1_000
  if (text === undefined || !/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) return undefined
  return [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)].reduce(
    (sum, [, value, unit = 's']) => sum + Number(value) * (unitMs[unit] ?? 0),
    0,
  )
}

function smallest(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}
