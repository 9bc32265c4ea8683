import { durationText } from '../../../ground/base/duration.ts'
import { type Exchange, type RespondVerdict, refuse } from '../../../ground/exchange/exchange.ts'
import type { RateBucket } from '../../../ground/exchange/rate-limits.ts'

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

/** How a limit is named in records, which only operators see, and in errors of clients. */
export interface LimitNames {
  readonly recorded: string
  /** Such as `10 tokens per hour`; undefined if only its server knows it. */
  readonly shown: string | undefined
}

const exceeded = 'rate limit exceeded'

/** Refuses a request because a limit cannot be decided. */
export const failedLimit = (detail: string): RespondVerdict =>
  refuse(500, 'RateLimit', 'rate limit failed', detail)

/** Refuses a request. `waitMs` is the time after which the next request would be allowed. */
export function limited(
  status: RateLimitStatus,
  waitMs: number,
  { recorded, shown }: LimitNames,
): RespondVerdict {
  const message = `${exceeded}${shown === undefined ? '' : `: ${shown} are used up`}`
  const free = Number.isFinite(waitMs)
    ? `; the next request is allowed in ${durationText(Math.max(1_000, waitMs))}`
    : ''
  const retryAfter = Math.max(1, Math.ceil(Number.isFinite(waitMs) ? waitMs / 1000 : 1))
  return {
    ...refuse(429, 'RateLimit', exceeded, detailOf(status, waitMs, recorded)),
    limit: { message: message + free, waitMs },
    headers: [
      [names.limit, `${status.limit}`],
      [names.remaining, `${status.remaining}`],
      [names.reset, `${status.reset}`],
      ['retry-after', `${retryAfter}`],
    ],
  }
}

function detailOf({ remaining }: RateLimitStatus, waitMs: number, limit: string): string {
  const wait = Number.isFinite(waitMs) ? `, admits again in ${durationText(waitMs)}` : ''
  return `${limit}, ${remaining} left${wait}`
}

/** Sets the status on a response. It replaces a status that the upstream has set for its own limits. */
export function writeStatus({ response }: Exchange, status: RateLimitStatus): void {
  if (response === undefined) return
  response.headers.set(names.limit, `${status.limit}`)
  response.headers.set(names.remaining, `${status.remaining}`)
  response.headers.set(names.reset, `${status.reset}`)
}
