/**
 * Attempts to get a response for one request: what endpoints learn from them, and whether another
 * one is made.
 */

import { timerDelay } from '../base/timer-delay.ts'
import type { UpstreamAddress } from '../engine/sockets/upstream-address.ts'
import { GatewayError } from '../errors/index.ts'
import type { ResponseHead } from '../exchange/exchange.ts'
import { forwardingFacts, type RetryPlan } from '../exchange/forwarding.ts'
import type { RequestContext } from './request/request-context.ts'
import { retryAfterMs } from './request/retry-after.ts'
import { moveAttemptSpan } from './request/tracing.ts'
import type { Telemetry } from './telemetry/types.ts'
import { now } from './upstream/choose.ts'
import { movedTo } from './upstream/destination.ts'
import type { AttemptOutcome } from './upstream/endpoint.ts'
import type { RequestCap } from './upstream/request-cap.ts'

/** Backoff doubles with every attempt, up to so many times the first. */
const longestBackoff = 8
/** Of the backoff, at most, at random, so that requests that failed together part. */
const jitter = 0.25

/** The attempt is over, whatever came of it. */
export function endAttempt(context: RequestContext): void {
  if (context.endpoint === undefined) return
  context.endpoint.end()
  context.endpoint = undefined
}

/**
 * The attempt's connection leads to another address of the name: from now on it is that one's, which
 * answers or fails. What was asked for first is none the worse.
 */
export function moveAttempt(
  context: RequestContext,
  address: UpstreamAddress,
  cap: RequestCap | undefined,
): void {
  context.address = address
  if (context.trace !== undefined) moveAttemptSpan(context, address)
  if (context.destination === undefined || context.endpoint === undefined) return
  context.destination = movedTo(context.destination, address, cap)
  context.endpoint = context.destination.endpoint
}

/** The head of a response is there; telemetry learns if its endpoint is ejected from now on. */
export function learnFromResponse(context: RequestContext, telemetry: Telemetry): void {
  const { response } = context.exchange
  if (response !== undefined) learn(context, response, telemetry)
}

/** There was no response; telemetry learns if the endpoint is ejected from now on. */
export function learnFromError(
  context: RequestContext,
  error: GatewayError,
  telemetry: Telemetry,
): void {
  if (error.row.source === 'upstream') learn(context, error, telemetry)
}

function learn(
  { endpoint, attemptStartedAt, call }: RequestContext,
  result: ResponseHead | GatewayError,
  telemetry: Telemetry,
): void {
  if (endpoint === undefined) return
  const latencyMs = now() - attemptStartedAt
  const outcome =
    call?.outcomeOf === undefined ? outcomeOf(result, latencyMs) : call.outcomeOf(result, latencyMs)
  if (outcome === undefined || !endpoint.record(outcome, now)) return
  const reason = result instanceof GatewayError ? result.code : `status ${result.status}`
  telemetry.onEjected(call?.ejection?.(reason))
}

/** Undefined if the result says nothing of the endpoint. */
function outcomeOf(
  result: ResponseHead | GatewayError,
  latencyMs: number,
): AttemptOutcome | undefined {
  if (result instanceof GatewayError) {
    // A slow endpoint is reachable: that counts like a bad answer.
    const isSlow = result.code === 'route_timeout' || result.code === 'upstream_timeout'
    return isSlow ? { kind: 'failed', retryAfterMs: 0 } : { kind: 'unreachable' }
  }
  const { status, headers } = result
  if (status < 500 && status !== 429) return { kind: 'answered', latencyMs }
  const asked = headers.get('retry-after')
  // Being told to slow down is an answer; only together with a time it says to stay away.
  if (status === 429 && asked === undefined) return undefined
  return { kind: 'failed', retryAfterMs: retryAfterMs(asked, Date.now()) ?? 0 }
}

/**
 * Milliseconds until the request is sent again; undefined where it is not: nobody asked for it, it
 * was tried often enough, it cannot be sent whole again, or this is no reason to.
 */
export function retryDelay(
  context: RequestContext,
  failure: number | GatewayError,
  random: () => number,
): number | undefined {
  const { exchange } = context
  const plan = exchange.facts.get(forwardingFacts.retry) as RetryPlan | undefined
  if (plan === undefined || context.retries >= plan.attempts) return undefined
  const isReason =
    typeof failure === 'number' ? plan.codes.includes(failure) : isConnectionFailure(failure)
  if (!isReason || !exchange.isReplayable) return undefined
  const backoff = plan.backoffMs * Math.min(2 ** context.retries, longestBackoff)
  return timerDelay(backoff * (1 + jitter * random()))
}

function isConnectionFailure({ code, row }: GatewayError): boolean {
  return row.retry === 'yes' || code === 'upstream_reset'
}
