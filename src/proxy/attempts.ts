/**
 * Attempts to get a response for one request: what endpoints learn from them, and whether another
 * one is made.
 */

import { timerDelay } from '../base/timer-delay.ts'
import type { UpstreamAddress } from '../engine/sockets/upstream-address.ts'
import type { GatewayError } from '../errors/index.ts'
import type { ResponseHead } from '../exchange/exchange.ts'
import { forwardingFacts, type RetryPlan } from '../exchange/forwarding.ts'
import { ejectionOf, isProviderFailure } from './llm/choose-provider.ts'
import { retryHintMs } from './llm/retry-hint.ts'
import type { RequestContext } from './request-context.ts'
import { retryAfterMs } from './retry-after.ts'
import type { Telemetry } from './telemetry/types.ts'
import { moveAttemptSpan } from './tracing.ts'
import { now } from './upstream/choose.ts'
import { movedTo } from './upstream/destination.ts'
import type { UpstreamEndpoint } from './upstream/endpoint.ts'
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

/** The head of a response is there; telemetry is told where its endpoint is left out from now on. */
export function learnFromResponse(context: RequestContext, telemetry: Telemetry): void {
  const status = context.exchange.response?.status ?? 0
  if (learnFromHead(context)) telemetry.onEjected(ejectionOf(context, `status ${status}`))
}

function learnFromHead({ endpoint, attemptStartedAt, exchange, model }: RequestContext): boolean {
  if (endpoint === undefined) return false
  const status = exchange.response?.status ?? 0
  if (model !== undefined) return learnFromProvider(endpoint, exchange.response, attemptStartedAt)
  if (status < 500 && status !== 429) {
    return endpoint.record({ kind: 'answered', latencyMs: now() - attemptStartedAt }, now)
  }
  const asked = exchange.response?.headers.get('retry-after')
  // Being told to slow down is an answer; only together with a time it says to stay away.
  if (status === 429 && asked === undefined) return false
  return endpoint.record(
    { kind: 'failed', retryAfterMs: retryAfterMs(asked, Date.now()) ?? 0 },
    now,
  )
}

/** Providers have no health checks: one that is out of order or out of quota is left out at once. */
function learnFromProvider(
  endpoint: UpstreamEndpoint,
  response: ResponseHead | undefined,
  startedAt: number,
): boolean {
  if (response === undefined || !isProviderFailure(response.status)) {
    return endpoint.record({ kind: 'answered', latencyMs: now() - startedAt }, now)
  }
  const hint = retryHintMs(response.headers, Date.now())
  if (hint === 0) return endpoint.record({ kind: 'unreachable' }, now)
  return endpoint.record({ kind: 'failed', retryAfterMs: hint }, now)
}

/** There was no response; telemetry is told where the endpoint is left out from now on. */
export function learnFromError(
  context: RequestContext,
  error: GatewayError,
  telemetry: Telemetry,
): void {
  if (learnFromFailure(context, error)) telemetry.onEjected(ejectionOf(context, error.code))
}

function learnFromFailure({ endpoint, model }: RequestContext, error: GatewayError): boolean {
  if (endpoint === undefined || error.row.source !== 'upstream') return false
  // Who is slow gets no better by being called unreachable: that counts like a bad answer.
  const isSlow =
    error.code === 'route_timeout' || (model === undefined && error.code === 'upstream_timeout')
  return endpoint.record(
    isSlow ? { kind: 'failed', retryAfterMs: 0 } : { kind: 'unreachable' },
    now,
  )
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
