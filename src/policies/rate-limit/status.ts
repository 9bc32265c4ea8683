import { type Exchange, type RespondVerdict, refuse } from '../../exchange/exchange.ts'
import type { RateBucket } from '../../exchange/rate-limits.ts'

/** Rate limit status that clients receive, of the limit with the fewest remaining units. */
export interface RateLimitStatus {
  readonly limit: number
  readonly remaining: number
  /** Whole seconds until the limit is reset. */
  readonly reset: number
}

const names = {
  limit: 'x-ratelimit-limit',
  remaining: 'x-ratelimit-remaining',
  reset: 'x-ratelimit-reset',
} as const

export function statusOf({ capacity, remaining, resetMs }: RateBucket): RateLimitStatus {
  const reset = Math.floor(resetMs / 1000)
  return { limit: capacity, remaining: Math.max(0, Math.floor(remaining)), reset }
}

/**
 * Refuses a request. `waitMs` is the time after which the next request would be allowed, `limit` the name of
 * the limit for the record.
 */
export function limited(status: RateLimitStatus, waitMs: number, limit: string): RespondVerdict {
  const retryAfter = Math.max(1, Math.ceil(Number.isFinite(waitMs) ? waitMs / 1000 : 1))
  return {
    ...refuse(429, 'RateLimit', 'rate limit exceeded', detailOf(status, waitMs, limit)),
    headers: [
      [names.limit, `${status.limit}`],
      [names.remaining, `${status.remaining}`],
      [names.reset, `${status.reset}`],
      ['retry-after', `${retryAfter}`],
    ],
  }
}

function detailOf({ remaining }: RateLimitStatus, waitMs: number, limit: string): string {
  const wait = Number.isFinite(waitMs) ? `, admits again in ${Math.ceil(waitMs)} ms` : ''
  return `${limit}, ${remaining} left${wait}`
}

/** Sets the status on a response. It replaces a status that the upstream has set for its own limits. */
export function writeStatus({ response }: Exchange, status: RateLimitStatus): void {
  if (response === undefined) return
  response.headers.set(names.limit, `${status.limit}`)
  response.headers.set(names.remaining, `${status.remaining}`)
  response.headers.set(names.reset, `${status.reset}`)
}
