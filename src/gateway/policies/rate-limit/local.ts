import { errorText, isCelError } from '../../../engines/cel/index.ts'
import type { Exchange, RespondVerdict } from '../../../ground/exchange/exchange.ts'
import type { PolicyHost, RateBucket, TokenLimits } from '../../../ground/exchange/rate-limits.ts'
import type { BodyNeeds } from '../../variables/index.ts'
import { LimitExpression } from '../limit-expression.ts'
import type { LocalLimit } from './config.ts'

import { failedLimit, type LimitNames, limited, type RateLimitStatus, statusOf } from './status.ts'

/** A refusal, or the status of the limit with the fewest remaining units; undefined without limits. */
type Admission = RespondVerdict | RateLimitStatus | undefined

/** A limit with its bucket. With `key`, the bucket counts each value for itself. `names` describes it in refusals. */
interface BoundLimit {
  readonly bucket: RateBucket
  readonly key: LimitExpression | undefined
  readonly names: LimitNames
}

/** Limits that this proxy counts itself; its threads share the counts. */
export class LocalLimits implements TokenLimits, BodyNeeds {
  /** Whether a key of a limit of requests reads the body. */
  readonly request: boolean
  readonly response = false
  readonly #requests: readonly BoundLimit[]
  readonly #tokens: readonly BoundLimit[]

  constructor(limits: readonly LocalLimit[], host: PolicyHost) {
    const bound = boundLimits(limits, host)
    const counting = (counts: LocalLimit['counts']) =>
      bound.filter((_, index) => limits[index]?.counts === counts)
    this.#requests = counting('requests')
    this.#tokens = counting('tokens')
    this.request = this.#requests.some(({ key }) => key?.readsBody === true)
  }

  get hasTokens(): boolean {
    return this.#tokens.length > 0
  }

  /** Charges one request to each limit, in order. If one refuses, those before it stay charged. */
  admit(exchange: Exchange): Admission {
    let least: RateLimitStatus | undefined
    for (const limit of this.#requests) {
      const value = keyValueOf(limit, exchange)
      if (typeof value === 'object') return value
      const { bucket } = limit
      if (!bucket.take(1, value)) return refusalOf(limit)
      const remaining = Math.floor(bucket.remaining)
      if (least === undefined || remaining < least.remaining) least = statusOf(bucket)
    }
    return least
  }

  note(exchange: Exchange): void {
    for (const { key } of this.#tokens) if (key?.isLate === false) key.note(exchange)
  }

  /** Refuses a request only if earlier requests have used all tokens; its own tokens are not counted. */
  check(exchange: Exchange, isAgain: boolean): RespondVerdict | undefined {
    for (const { key } of this.#tokens) if (key?.isLate === true) key.note(exchange)
    for (const limit of this.#tokens) {
      if (isAgain && limit.key?.isLate !== true) continue
      const value = keyValueOf(limit, exchange)
      if (typeof value === 'object') return value
      if (!limit.bucket.hasSome(value)) return refusalOf(limit)
    }
    return undefined
  }

  charge(exchange: Exchange, tokens: number): void {
    for (const limit of this.#tokens) {
      const value = keyValueOf(limit, exchange)
      // `check` has refused requests for which the key fails.
      if (typeof value !== 'object') limit.bucket.charge(tokens, value)
    }
  }
}

/**
 * Returns the value of the limit's key; undefined without a key. Requests for which the key has no value share the
 * bucket of the empty text. If the key fails, the request is refused.
 */
function keyValueOf({ key }: BoundLimit, exchange: Exchange): string | undefined | RespondVerdict {
  if (key === undefined) return undefined
  const text = key.textFor(exchange)
  if (!isCelError(text)) return text ?? ''
  return failedLimit(`the key ${key.source} failed: ${errorText(text)}`)
}

function refusalOf({ bucket, names }: BoundLimit): RespondVerdict {
  if (!bucket.isTableFull) return limited(statusOf(bucket), bucket.waitMs, names)
  const recorded = `${names.recorded}: no room for another value of the key`
  return limited(statusOf(bucket), bucket.waitMs, { ...names, recorded })
}

/**
 * Bucket names consist of the limit's settings, so that an unchanged limit keeps its count when other
 * limits are added or removed. Equal limits are numbered.
 */
function boundLimits(limits: readonly LocalLimit[], host: PolicyHost): BoundLimit[] {
  const seen = new Map<string, number>()
  return limits.map((limit) => {
    const { counts, rate, unit, burst, key } = limit
    const name = `${counts}:${rate}:${unit}:${burst}${key === undefined ? '' : `:${key}`}`
    const nth = seen.get(name) ?? 0
    seen.set(name, nth + 1)
    return {
      bucket: host.bucket(`${name}:${nth}`, { rate, unit, burst, isKeyed: key !== undefined }),
      key: key === undefined ? undefined : new LimitExpression(key),
      names: namesOf(limit),
    }
  })
}

const unitNames = {
  Seconds: 'second',
  Minutes: 'minute',
  Hours: 'hour',
  Days: 'day',
  Months: 'month',
} as const

function namesOf({ counts, rate, unit, burst, key }: LocalLimit): LimitNames {
  const shown = `${rate} ${counts} per ${unitNames[unit]}`
  const each = key === undefined ? '' : ` for each ${key}`
  return { recorded: `limit ${shown} with burst ${burst}${each}`, shown }
}
