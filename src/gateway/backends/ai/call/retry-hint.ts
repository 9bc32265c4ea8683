/** Reads from the headers of a response when the provider accepts the next request. */
import type { HeaderFields, ResponseHead } from '../../../../ground/exchange/exchange.ts'
import { decimal, retryAfterMs } from '../../../proxy/request/retry-after.ts'

/** Larger numbers in `x-ratelimit-reset` are seconds since the epoch, not durations. */
const maxRelativeSeconds = 30 * 24 * 3600

/** What vendors limit, as their headers `x-ratelimit-reset-NAME` and `x-ratelimit-remaining-NAME` name it. */
const limits = ['requests', 'tokens', 'requests-day', 'tokens-minute'].map((name) => ({
  reset: `x-ratelimit-reset-${name}`,
  remaining: `x-ratelimit-remaining-${name}`,
}))

/** Returns the time to wait in milliseconds; 0 if the response has no hint. */
export function retryHintMs({ status, headers }: ResponseHead, now: number): number {
  const asked =
    retryAfterMs(headers.get('retry-after'), now) ?? decimal(headers.get('retry-after-ms'))
  if (asked !== undefined) return asked
  // Vendors send their limits with every response; only a 429 says that one of them is the cause.
  const isLimit = status === 429
  return (
    (isLimit ? reset(headers.get('x-ratelimit-reset'), now) : undefined) ??
    limitReset(headers, isLimit) ??
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

/**
 * Returns when the last exhausted limit resets. If none is known to be exhausted, returns when the first one
 * does if a limit was the cause, and otherwise undefined.
 */
function limitReset(headers: HeaderFields, isLimit: boolean): number | undefined {
  const known = limits.flatMap(({ reset: name, remaining }) => {
    const time = duration(headers.get(name))
    const left = decimal(headers.get(remaining))
    return time === undefined ? [] : [{ time, isExhausted: left === 0 }]
  })
  const exhausted = known.filter((one) => one.isExhausted).map(({ time }) => time)
  if (exhausted.length > 0) return Math.max(...exhausted)
  return known.length === 0 || !isLimit ? undefined : Math.min(...known.map(({ time }) => time))
}
