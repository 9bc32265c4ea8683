/** Attempts of one request: records their outcome at the endpoint, and decides whether to retry. */

import type { UpstreamAddress } from '../../engines/http/sockets/upstream-address.ts'
import { timerDelay } from '../../ground/base/timer-delay.ts'
import { GatewayError } from '../../ground/errors/index.ts'
import type { HealthRules } from '../../ground/exchange/connection.ts'
import type { ResponseHead } from '../../ground/exchange/exchange.ts'
import { forwardingExtensions, type RetryPlan } from '../../ground/exchange/forwarding.ts'
import { addNote } from '../../ground/exchange/notes.ts'
import type { RequestContext } from './request/request-context.ts'
import { retryAfterMs } from './request/retry-after.ts'
import type { GatewayRuntime } from './request/runtime.ts'
import { moveAttemptSpan } from './request/tracing.ts'
import type { Telemetry } from './telemetry/types.ts'
import type { Circuits } from './upstream/circuits.ts'
import { movedTo } from './upstream/destination.ts'
import {
  type AttemptOutcome,
  now,
  outcomeOfError,
  type UpstreamEndpoint,
} from './upstream/endpoint.ts'
import type { RequestCap } from './upstream/request-cap.ts'

/** Maximum backoff, as a multiple of the first one. Every attempt doubles the backoff. */
const maxBackoffFactor = 8
/** Maximum random fraction that is added to the backoff, so that requests do not retry together. */
const jitter = 0.25

/**
 * Called when the attempt has connected to another address of the host name, whose endpoint now counts it.
 */
export function moveAttempt(
  context: RequestContext,
  address: UpstreamAddress,
  cap: RequestCap | undefined,
): void {
  const { attempt, destination, trace } = context
  if (attempt === undefined) return
  attempt.address = address
  if (trace !== undefined) moveAttemptSpan(context, address)
  if (destination === undefined || attempt.isOver || attempt.endpoint === undefined) return
  context.destination = movedTo(destination, address, cap)
  attempt.endpoint = context.destination.endpoint
}

/** Records a response or an upstream error in the health of the endpoint. Counts an ejection. */
export function learn(
  context: RequestContext,
  result: ResponseHead | GatewayError,
  telemetry: Telemetry,
): void {
  const { attempt, call, destination } = context
  if (attempt?.endpoint === undefined || attempt.isOver) return
  const latencyMs = now() - attempt.startedAt
  const outcome =
    call?.outcomeOf === undefined ? outcomeOf(result, latencyMs) : call.outcomeOf(result, latencyMs)
  const health = destination?.settings.health
  const isEjected =
    health === undefined
      ? outcome !== undefined && attempt.endpoint.record(outcome, now)
      : judge(context, attempt.endpoint, { result, outcome, latencyMs }, health)
  if (!isEjected) return
  const reason = result instanceof GatewayError ? result.code : `status ${result.status}`
  telemetry.onEjected(call?.ejection?.(reason))
}

interface Result {
  readonly result: ResponseHead | GatewayError
  readonly outcome: AttemptOutcome | undefined
  readonly latencyMs: number
}

/** Records a result by the rules of a policy, unless the endpoint itself asks for a time without requests. */
function judge(
  { exchange }: RequestContext,
  endpoint: UpstreamEndpoint,
  { result, outcome, latencyMs }: Result,
  { isUnhealthy, eviction }: HealthRules,
): boolean {
  if (outcome?.kind === 'failed' && outcome.retryAfterMs > 0) return endpoint.record(outcome, now)
  if (result instanceof GatewayError) return endpoint.judge(false, latencyMs, eviction, now)
  // A failure that the body reports has the status of a success.
  const isReported = exchange.response?.status !== result.status && result.status >= 500
  const isBad = isUnhealthy === undefined ? result.status >= 500 : isUnhealthy(exchange)
  return endpoint.judge(!isBad && !isReported, latencyMs, eviction, now)
}

/** Returns the outcome for the health of the endpoint; undefined if the result does not affect it. */
function outcomeOf(
  result: ResponseHead | GatewayError,
  latencyMs: number,
): AttemptOutcome | undefined {
  if (result instanceof GatewayError) return outcomeOfError(result)
  const { status, headers } = result
  if (status < 500 && status !== 429) return { kind: 'answered', latencyMs }
  const asked = headers.get('retry-after')
  // A 429 ejects the endpoint only if it has Retry-After.
  if (status === 429 && asked === undefined) return undefined
  return { kind: 'failed', retryAfterMs: retryAfterMs(asked, Date.now()) ?? 0 }
}

/** Passes a response to the steps of its backend. Returns whether the request should be sent again. */
export function informSteps({ destination, exchange }: RequestContext): boolean {
  const { response } = exchange
  if (destination === undefined || response === undefined) return false
  const { status, headers } = response
  if (status !== 401 && destination.settings.bindsTokens !== true) return false
  let asksAgain = false
  for (const step of destination.steps) {
    if (step.onBackendResponse?.(exchange, status, headers) === true) asksAgain = true
  }
  return asksAgain
}

/** Returns the milliseconds until the retry; undefined if the request is not retried. */
export function retryDelay(
  context: RequestContext,
  failure: number | GatewayError,
  { random, circuits }: Pick<GatewayRuntime, 'random' | 'circuits'>,
): number | undefined {
  const { exchange } = context
  const plan = exchange.extensions.get(forwardingExtensions.retry) as RetryPlan | undefined
  if (plan === undefined || context.retries >= plan.attempts) return undefined
  const isReason =
    typeof failure === 'number'
      ? plan.codes.includes(failure) || plan.isFailure?.(exchange) === true
      : isConnectionFailure(failure)
  if (!isReason || !exchange.isReplayable) return undefined
  if (!mayRetry(context, circuits)) {
    addNote(exchange, 'traffic.retry', 'not retried: the circuit breaker limits retries')
    return undefined
  }
  if (plan.budget?.take() === false) {
    addNote(exchange, 'traffic.retry', 'not retried: the retry budget is used up')
    return undefined
  }
  const backoff = plan.backoffMs * Math.min(2 ** context.retries, maxBackoffFactor)
  return timerDelay(backoff * (1 + jitter * random()))
}

/** Counts the attempt if the backend has a circuit breaker. @throws GatewayError `circuit_open` */
export function circuitOf({ destination, backend }: RequestContext, { circuits }: GatewayRuntime) {
  const limits = destination?.settings.circuit
  return limits && circuits.request(limits, backend?.label ?? '')
}

/** Counts the request as one that is retried, until it ends. Returns false if the limit is reached. */
function mayRetry(context: RequestContext, circuits: Circuits): boolean {
  const limits = context.destination?.settings.circuit
  const most = limits?.maxRetries
  if (limits === undefined || most === undefined || context.retryCircuit !== undefined) return true
  context.retryCircuit = circuits.retry(limits, context.backend?.label ?? '', most)
  return context.retryCircuit !== undefined
}

function isConnectionFailure({ code, row }: GatewayError): boolean {
  return row.retry === 'yes' || code === 'upstream_reset'
}
