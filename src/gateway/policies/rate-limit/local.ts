import type { Exchange, RespondVerdict } from '../../../ground/exchange/exchange.ts'
import type { PolicyHost, RateBucket, TokenLimits } from '../../../ground/exchange/rate-limits.ts'
import type { LocalLimit } from './config.ts'
import { type LimitNames, limited, type RateLimitStatus, statusOf } from './status.ts'

/** A refusal, or the status of the limit with the fewest remaining units; undefined without limits. */
type Admission = RespondVerdict | RateLimitStatus | undefined

/** A bucket, and how refusals name it. */
interface NamedBucket {
  readonly bucket: RateBucket
  readonly names: LimitNames
}

/** Limits that this proxy counts itself; its threads share the counts. */
export class LocalLimits implements TokenLimits {
  readonly #requests: readonly NamedBucket[]
  readonly #tokens: readonly NamedBucket[]

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

  /** Charges one request to each limit, in order. If one refuses, those before it stay charged. */
  admit(): Admission {
    let least: RateLimitStatus | undefined
    for (const { bucket, names } of this.#requests) {
      if (!bucket.take(1)) return limited(statusOf(bucket), bucket.waitMs, names)
      const remaining = Math.floor(bucket.remaining)
      if (least === undefined || remaining < least.remaining) least = statusOf(bucket)
    }
    return least
  }

  note(): void {
    // Local limits do not depend on the request.
  }

  /** Refuses a request only if earlier requests have used all tokens; its own tokens are not counted. */
  check(_exchange: Exchange): RespondVerdict | undefined {
    for (const { bucket, names } of this.#tokens) {
      if (!bucket.hasSome()) return limited(statusOf(bucket), bucket.waitMs, names)
    }
    return undefined
  }

  charge(_exchange: Exchange, tokens: number): void {
    for (const { bucket } of this.#tokens) bucket.charge(tokens)
  }
}

/**
 * Bucket names consist of the limit's settings, so that an unchanged limit keeps its count when other
 * limits are added or removed. Equal limits are numbered.
 */
function bucketsOf(limits: readonly LocalLimit[], host: PolicyHost): NamedBucket[] {
  const seen = new Map<string, number>()
  return limits.map((limit) => {
    const { counts, rate, unit, burst } = limit
    const name = `${counts}:${rate}:${unit}:${burst}`
    const nth = seen.get(name) ?? 0
    seen.set(name, nth + 1)
    return {
      bucket: host.bucket(`${name}:${nth}`, limit),
      names: namesOf(limit),
    }
  })
}

const unitNames = { Seconds: 'second', Minutes: 'minute', Hours: 'hour' } as const

function namesOf({ counts, rate, unit, burst }: LocalLimit): LimitNames {
  return {
    recorded: `limit ${rate} ${counts} per ${unitNames[unit]} with burst ${burst}`,
    shown: `${rate} ${counts} per ${unitNames[unit]}`,
  }
}
