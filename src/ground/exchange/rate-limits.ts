/** Rate limits as policies see them. The data plane keeps the buckets. */
import { andThen } from '../base/and-then.ts'
import type { limitPeriodMs } from '../base/limit-periods.ts'
import type { BudgetHost } from './budgets.ts'
import type { Exchange, RespondVerdict } from './exchange.ts'
import { addNote } from './notes.ts'

/** A full bucket holds `rate + burst` units and refills evenly by `rate` units per `unit` of time. */
export interface RateLimitSpec {
  readonly rate: number
  readonly unit: keyof typeof limitPeriodMs
  readonly burst: number
  /** Whether each value of a key has a bucket of its own. */
  readonly isKeyed?: boolean
}

/**
 * A bucket shared by all threads of this proxy, or one for each value of a key. `waitMs`, `remaining` and `resetMs`
 * are as of the last call.
 */
export interface RateBucket {
  /** Number of units in a full bucket. */
  readonly capacity: number
  /** Takes units if the bucket has enough; returns whether it had. */
  take(amount: number, value?: string): boolean
  /** Returns true if any unit is left; takes nothing. */
  hasSome(value?: string): boolean
  /** Charges units after the fact; the balance may go negative. */
  charge(amount: number, value?: string): void
  /** Whether the last call was refused because there is no room for another value. */
  readonly isTableFull: boolean
  /** Milliseconds until the bucket could grant the amount that it refused. */
  readonly waitMs: number
  /** Whole units left; negative if more was charged than the bucket had. */
  readonly remaining: number
  /** Milliseconds until the bucket is full. */
  readonly resetMs: number
}

/** What the proxy provides to its policies. */
export interface PolicyHost {
  /** Returns the bucket of the policy with this name; it is kept as long as name and spec stay the same. */
  bucket(name: string, spec: RateLimitSpec): RateBucket
  /** Like `bucket`, but one bucket for all targets of the policy. */
  policyBucket(name: string, spec: RateLimitSpec): RateBucket
  /** `namespace/name` of the policy. */
  readonly policy: string
  /** Returns the key that encrypts sessions; undefined until the control plane has sent it. Omitted in simulations. */
  readonly sessionKey?: (() => Uint8Array | undefined) | undefined
  /** Says whether an address is that of a trusted proxy. If omitted, there is none. */
  readonly isTrustedProxy?: ((address: string) => boolean) | undefined
  /** Omitted in simulations, which enforce no budgets. */
  readonly budgets?: BudgetHost | undefined
}

/**
 * Limits for the tokens of LLM requests. The AI backend calls `checkTokenLimits` before it sends a request, and
 * `charge` once the number of tokens is known. Other backends call neither.
 */
export interface TokenLimits {
  /** Evaluates rate limit descriptors on the client's request, before it is changed for a provider. */
  note(exchange: Exchange): void
  /**
   * Returns a refusal if the limits are used up, or undefined if the request may continue. `isAgain`: the request was
   * admitted and is sent to another provider, so only limits that may count it elsewhere are checked.
   */
  check(
    exchange: Exchange,
    isAgain: boolean,
  ): RespondVerdict | undefined | Promise<RespondVerdict | undefined>
  /** Charges the input and output tokens of a finished request. This can only refuse later requests. */
  charge(exchange: Exchange, tokens: number): void
}

const tokenLimitsExtension = 'rateLimit.tokens'

/** Limits, and the step of the policy that they come from. */
interface StoredLimits {
  readonly limits: TokenLimits
  readonly step: object
}

/** Stores limits for the AI backend, which are the same for all requests of the step. */
export function storeTokenLimits({ extensions }: Exchange, stored: StoredLimits): void {
  extensions.set(tokenLimitsExtension, stored)
}

const storedIn = ({ extensions }: Exchange) =>
  extensions.get(tokenLimitsExtension) as StoredLimits | undefined

/** Returns the limits that a policy has stored; undefined if there is no such policy. */
export const tokenLimitsOf = (exchange: Exchange): TokenLimits | undefined =>
  storedIn(exchange)?.limits

/**
 * Returns a refusal if the token limits of the request are used up, or undefined if it may continue. The step of
 * the limits has passed the request already, so a refusal is recorded as its response.
 */
export function checkTokenLimits(
  exchange: Exchange,
  isAgain = false,
): ReturnType<TokenLimits['check']> {
  const stored = storedIn(exchange)
  return andThen(stored?.limits.check(exchange, isAgain), noteRefusal, exchange, stored)
}

function noteRefusal(
  refused: RespondVerdict | undefined,
  exchange: Exchange,
  stored: StoredLimits | undefined,
): RespondVerdict | undefined {
  if (stored !== undefined && refused !== undefined) {
    const { step } = stored
    addNote(exchange, 'traffic.rateLimit', refused.detail ?? refused.reason, {
      step,
      isResponse: true,
    })
  }
  return refused
}
