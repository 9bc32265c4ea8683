/** Rate limits as policies see them. Types only: the data plane keeps the buckets. */
import type { Exchange, RespondVerdict } from './exchange.ts'

/** A full bucket holds `rate + burst` units and fills evenly by `rate` units a `unit` of time. */
export interface RateLimitSpec {
  readonly rate: number
  readonly unit: 'Seconds' | 'Minutes' | 'Hours'
  readonly burst: number
}

/** A bucket that all threads of this proxy share. The figures tell of the last call. */
export interface RateBucket {
  /** Units of a full bucket. */
  readonly capacity: number
  /** Takes units where they are there: was it admitted? */
  take(amount: number): boolean
  /** Is there anything left? Takes nothing. */
  hasSome(): boolean
  /** Takes what has been used already; the bucket may go into debt. */
  charge(amount: number): void
  /** Milliseconds until what was refused would be admitted. */
  readonly waitMs: number
  /** Whole units left; negative in debt. */
  readonly remaining: number
  /** Milliseconds until the bucket is full. */
  readonly resetMs: number
}

/** What a policy may use of the proxy that it runs in. */
export interface PolicyHost {
  /** Unique to the policy and its target, and the same after a change of its configuration. */
  readonly key: string
  /** The bucket of a name below `key`; it outlives configurations in which name and spec stay. */
  bucket(name: string, spec: RateLimitSpec): RateBucket
}

/**
 * Limits of LLM tokens that hold for a request. Whoever speaks to a model calls `check` before, and
 * `charge` once the tokens are known; for requests to other backends nobody does.
 */
export interface TokenLimits {
  /** Evaluates what descriptors read of the client's request, which is about to change for a provider. */
  note(exchange: Exchange): void
  /** Why the request is refused: limits are spent already. Undefined where it may go on. */
  check(exchange: Exchange): RespondVerdict | undefined | Promise<RespondVerdict | undefined>
  /** Input and output tokens of a finished request. Never refuses: later requests feel it. */
  charge(exchange: Exchange, tokens: number): void
}

const tokenLimits = 'rateLimit.tokens'

/** Leaves limits for whoever speaks to a model. */
export function leaveTokenLimits({ facts }: Exchange, limits: TokenLimits): void {
  facts.set(tokenLimits, limits)
}

/** The limits that a policy has left; undefined where none has. */
export function tokenLimitsOf({ facts }: Exchange): TokenLimits | undefined {
  return facts.get(tokenLimits) as TokenLimits | undefined
}
