/** What clients are told of a limit, in the fields that most services use. */
import type { Exchange, RespondVerdict } from '../../exchange/exchange.ts'
import type { RateBucket } from '../../exchange/rate-limits.ts'

/** Of the limit with the least left. Times are whole seconds. */
export interface LimitFigures {
  readonly limit: number
  readonly remaining: number
  readonly reset: number
}

const names = {
  limit: 'x-ratelimit-limit',
  remaining: 'x-ratelimit-remaining',
  reset: 'x-ratelimit-reset',
} as const

export function figuresOf({ capacity, remaining, resetMs }: RateBucket): LimitFigures {
  const reset = Math.floor(resetMs / 1000)
  return { limit: capacity, remaining: Math.max(0, Math.floor(remaining)), reset }
}

/** Refuses a request; `waitMs` until the next one would be admitted. */
export function limited(figures: LimitFigures, waitMs: number): RespondVerdict {
  const retryAfter = Math.max(1, Math.ceil(Number.isFinite(waitMs) ? waitMs / 1000 : 1))
  return {
    kind: 'respond',
    status: 429,
    headers: [
      [names.limit, `${figures.limit}`],
      [names.remaining, `${figures.remaining}`],
      [names.reset, `${figures.reset}`],
      ['retry-after', `${retryAfter}`],
    ],
    body: 'rate limit exceeded',
    reason: 'RateLimit',
    refusal: true,
  }
}

/** Writes figures on a response, over those of an upstream that counts something else. */
export function tell({ response }: Exchange, figures: LimitFigures): void {
  if (response === undefined) return
  response.headers.set(names.limit, `${figures.limit}`)
  response.headers.set(names.remaining, `${figures.remaining}`)
  response.headers.set(names.reset, `${figures.reset}`)
}
