/** Limits that this proxy keeps by itself, all its threads together. */
import type { Exchange, RespondVerdict } from '../../exchange/exchange.ts'
import type { PolicyHost, RateBucket, TokenLimits } from '../../exchange/rate-limits.ts'
import type { LocalLimit } from './config.ts'
import { figuresOf, type LimitFigures, limited } from './figures.ts'

/** `refused`, or the figures of the limit that has the least left; undefined without limits. */
type Admission = RespondVerdict | LimitFigures | undefined

export class LocalLimits implements TokenLimits {
  readonly #requests: readonly RateBucket[]
  readonly #tokens: readonly RateBucket[]

  constructor(limits: readonly LocalLimit[], host: PolicyHost) {
    const buckets = bucketsOf(limits, host)
    const counting = (counts: LocalLimit['counts']) =>
      buckets.filter((_, index) => limits[index]?.counts === counts)
    this.#requests = counting('requests')
    this.#tokens = counting('tokens')
  }

  get hasTokens(): boolean {
    return this.#tokens.length > 0
  }

  /** Takes one request from each limit, in order; those before one that refuses have paid. */
  admit(): Admission {
    let least: LimitFigures | undefined
    for (const bucket of this.#requests) {
      if (!bucket.take(1)) return limited(figuresOf(bucket), bucket.waitMs)
      const remaining = Math.floor(bucket.remaining)
      if (least === undefined || remaining < least.remaining) least = figuresOf(bucket)
    }
    return least
  }

  note(): void {
    // These limits do not depend on the request.
  }

  /** A request is never refused for its own tokens, only where earlier ones have left nothing. */
  check(_exchange: Exchange): RespondVerdict | undefined {
    for (const bucket of this.#tokens) {
      if (!bucket.hasSome()) return limited(figuresOf(bucket), bucket.waitMs)
    }
    return undefined
  }

  charge(_exchange: Exchange, tokens: number): void {
    for (const bucket of this.#tokens) bucket.charge(tokens)
  }
}

/**
 * A bucket goes by what it limits, so that one which stays as it is keeps its count when others
 * come and go; equal ones are told apart by their order.
 */
function bucketsOf(limits: readonly LocalLimit[], host: PolicyHost): RateBucket[] {
  const seen = new Map<string, number>()
  return limits.map((limit) => {
    const { counts, rate, unit, burst } = limit
    const name = `${counts}:${rate}:${unit}:${burst}`
    const nth = seen.get(name) ?? 0
    seen.set(name, nth + 1)
    return host.bucket(`${name}:${nth}`, limit)
  })
}
