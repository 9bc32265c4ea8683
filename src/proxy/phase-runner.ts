/**
 * Answers the engine's callbacks: takes each exchange through `phases.ts` and back through
 * `response.ts`, and decides what follows a failed attempt.
 */
import type { RequestHandler, ServerExchange } from '../engine/contracts/requests.ts'
import type { UpstreamAddress } from '../engine/sockets/upstream-address.ts'
import type { GatewayError } from '../errors/index.ts'
import { cleanUp } from '../exchange/cleanup.ts'
import type { Peer, RespondVerdict } from '../exchange/exchange.ts'
import { takeAnswer } from '../exchange/interruption.ts'
import {
  endAttempt,
  learnFromError,
  learnFromResponse,
  moveAttempt,
  retryDelay,
} from './attempts.ts'
import { type CollectorPlace, placeOf } from './collectors.ts'
import { factsOf } from './facts.ts'
import { observeGrpc, observeResponse } from './observe.ts'
import { type PhaseResult, requestPhases, retryPhases, startOverPhases } from './phases.ts'
import {
  type ErrorWriter,
  errorResponse,
  type LocalResponse,
  refusalText,
  toGatewayError,
  verdictResponse,
} from './request/error-response.ts'
import { LocalExchange } from './request/local-exchange.ts'
import { contextOf, nameRetry, RequestContext } from './request/request-context.ts'
import { changeResponse, changesResponse, forgetResponseChanges } from './request/response.ts'
import { placementAhead } from './request/route.ts'
import type { GatewayRuntime } from './request/runtime.ts'
import { endAttemptSpan, finishTrace } from './request/tracing.ts'
import type { SpanExporters } from './telemetry/otlp/exporters.ts'
import type { Telemetry } from './telemetry/types.ts'

export class PhaseRunner implements RequestHandler {
  readonly #runtime: GatewayRuntime
  readonly #telemetry: Telemetry
  readonly #exporters: SpanExporters<CollectorPlace>

  constructor(
    runtime: GatewayRuntime,
    telemetry: Telemetry,
    exporters: SpanExporters<CollectorPlace>,
  ) {
    this.#runtime = runtime
    this.#telemetry = telemetry
    this.#exporters = exporters
  }

  onRequest(exchange: ServerExchange): void {
    const context = new RequestContext(exchange)
    exchange.state = context
    this.#run(context, 0)
  }

  onResponse(exchange: ServerExchange): void {
    const context = contextOf(exchange)
    const status = exchange.response?.status ?? 0
    learnFromResponse(context, this.#telemetry)
    if (context.trace !== undefined) endAttemptSpan(context, status)
    if (this.#askAnother(context, status)) return
    const delay = status < 400 ? undefined : retryDelay(context, status, this.#runtime.random)
    if (delay !== undefined) {
      this.#sendAgain(context, delay)
      return
    }
    // gRPC needs HTTP/2 and POST; other requests are not asked.
    const { version, method } = exchange.request
    if (version === '2' && method === 'POST') observeGrpc(context)
    if (context.call?.receive === undefined) this.#relay(context)
    else this.#receive(context)
  }

  /** The backend's call reads the response first. */
  #receive(context: RequestContext): void {
    const { attempt } = context
    const finish = (answer: RespondVerdict | undefined): void => {
      if (context.over) return
      if (answer === undefined) this.#relay(context)
      else this.#answer(context, answer)
    }
    const failed = (thrown: unknown): void => {
      // Whoever waited for a body that was cut off is told by onError as well.
      const error = toGatewayError(thrown)
      if (context.over || error.row.source === 'upstream' || context.attempt !== attempt) return
      this.#fail(context, error)
    }
    try {
      const received = context.call?.receive?.()
      if (received instanceof Promise) received.then(finish).catch(failed)
      else finish(received)
    } catch (thrown) {
      this.#giveUp(context, thrown)
    }
  }

  #relay(context: RequestContext): void {
    const { exchange } = context
    if (context.observers.isReading) observeResponse(context)
    if (!changesResponse(context)) {
      exchange.relay()
      return
    }
    try {
      const pending = changeResponse(context, exchange)
      if (pending === undefined) exchange.relay()
      else this.#after(context, pending, () => exchange.relay())
    } catch (error) {
      this.#giveUp(context, error)
    }
  }

  onError(exchange: ServerExchange, error: GatewayError): void {
    const context = contextOf(exchange)
    // What is left of the attempt before, while the next one waits for its time.
    const isLate = error.row.source === 'upstream' && error.code !== 'route_timeout'
    if (context.backoff !== undefined && isLate) return
    clearTimeout(context.backoff)
    context.backoff = undefined
    if (context.trace !== undefined) endAttemptSpan(context, undefined, error.message)
    const answer = takeAnswer(exchange)
    if (answer !== undefined) {
      this.#answer(context, answer)
      return
    }
    learnFromError(context, error, this.#telemetry)
    if (isLate && this.#askAnother(context, error)) return
    const delay = retryDelay(context, error, this.#runtime.random)
    if (delay === undefined) this.#fail(context, error)
    else this.#sendAgain(context, delay)
  }

  onAlternateAddress(exchange: ServerExchange, address: UpstreamAddress): void {
    moveAttempt(contextOf(exchange), address, this.#runtime.cap)
  }

  /** The attempt has failed: the next destination of the call is asked. False if there is none. */
  #askAnother(context: RequestContext, failure: number | GatewayError): boolean {
    if (context.call?.hasAnother?.(failure) !== true) return false
    this.#endAttempt(context)
    this.#run(context, 0, furtherPhases(context))
    return true
  }

  #endAttempt(context: RequestContext): void {
    endAttempt(context)
    context.attempt++
  }

  /** One more attempt, after a while. */
  #sendAgain(context: RequestContext, delayMs: number): void {
    this.#endAttempt(context)
    context.retries++
    nameRetry(context)
    const phases = furtherPhases(context)
    if (delayMs === 0) {
      this.#run(context, 0, phases)
      return
    }
    context.backoff = setTimeout(() => {
      context.backoff = undefined
      if (!context.over) this.#run(context, 0, phases)
    }, delayMs)
  }

  onDone(exchange: ServerExchange): void {
    const context = contextOf(exchange)
    context.over = true
    cleanUp(exchange)
    context.call?.finish?.()
    clearTimeout(context.backoff)
    endAttempt(context)
    const facts = factsOf(context, this.#runtime.kinds)
    this.#telemetry.onDone(exchange, facts)
    const { tracing } = context.observers
    if (tracing === undefined || context.trace === undefined || context.listener === undefined)
      return
    this.#exporters.add(tracing, placeOf(context.listener), finishTrace(context, facts))
  }

  onBadHead(port: number, error: GatewayError, peer: Peer, scheme: 'http' | 'https'): void {
    this.#telemetry.onBadHead(port, error, peer, scheme)
  }

  /** Goes on from a phase; phases that need no time are run in one go. */
  #run(context: RequestContext, from: number, phases = requestPhases): void {
    try {
      for (let at = from; at < phases.length; at++) {
        const result = phases[at]?.(context, this.#runtime)
        if (result === undefined) continue
        if (result instanceof Promise) this.#wait(context, result, at + 1, phases)
        else this.#settle(context, result)
        return
      }
    } catch (error) {
      this.#fail(context, toGatewayError(error))
    }
  }

  #wait(
    context: RequestContext,
    pending: Promise<PhaseResult>,
    from: number,
    phases: typeof requestPhases,
  ): void {
    pending.then(
      (result) => {
        if (context.over) return
        if (result === undefined) this.#run(context, from, phases)
        else this.#settle(context, result)
      },
      (error: unknown) => {
        if (!context.over) this.#fail(context, toGatewayError(error))
      },
    )
  }

  #settle(context: RequestContext, result: RespondVerdict | 'askAnother'): void {
    if (result === 'askAnother') this.#run(context, 0, startOverPhases)
    else this.#answer(context, result)
  }

  #answer(context: RequestContext, verdict: RespondVerdict): void {
    context.reason = verdict.reason
    if (verdict.refusal === true) context.refusal = refusalText(verdict)
    const { headers } = context.exchange.request
    const write = verdict.refusal === true ? errorWriterOf(context, this.#runtime) : undefined
    this.#send(context, verdictResponse(verdict, headers, write))
  }

  #fail(context: RequestContext, error: GatewayError): void {
    context.error = error
    context.reason = error.row.reason
    const write = errorWriterOf(context, this.#runtime)
    const isGrpcRoute = context.placement?.rule.resource.route.kind === 'GRPCRoute'
    const { headers } = context.exchange.request
    this.#send(context, errorResponse(error, headers, { write, isGrpcRoute }))
  }

  /** Answers in the gateway's own name; what has taken effect so far changes this response too. */
  #send(context: RequestContext, response: LocalResponse): void {
    const { exchange } = context
    context.isGrpc = response.headers.some(isGrpcType)
    if (!changesResponse(context)) {
      exchange.respond(response.status, response.headers, response.body)
      return
    }
    const local = new LocalExchange(exchange, response)
    const respond = () => {
      const { status, headers, body } = local.finished()
      exchange.respond(status, headers, body)
    }
    try {
      const pending = changeResponse(context, local)
      if (pending === undefined) respond()
      else this.#after(context, pending, respond)
    } catch (error) {
      this.#giveUp(context, error)
    }
  }

  /** Response steps that take time, and what comes after them. */
  #after(context: RequestContext, pending: Promise<void>, then: () => void): void {
    pending
      .then(() => context.over || then())
      .catch((thrown: unknown) => this.#giveUp(context, thrown))
  }

  /** A response step has thrown: the answer is a plain error. */
  #giveUp(context: RequestContext, thrown: unknown): void {
    if (context.over) return
    forgetResponseChanges(context)
    this.#fail(context, toGatewayError(thrown))
  }
}

function isGrpcType([name, value]: readonly [string, string]): boolean {
  return name === 'content-type' && value.startsWith('application/grpc')
}

/** The phases of a further attempt. */
const furtherPhases = ({ call }: RequestContext): typeof requestPhases =>
  call?.prepare === undefined ? retryPhases : startOverPhases

/** The format of the backend that the request has reached, or would reach. */
function errorWriterOf(
  context: RequestContext,
  { kinds, config }: GatewayRuntime,
): ErrorWriter | undefined {
  if (context.call?.errorWriter !== undefined) return context.call.errorWriter()
  const placement = context.placement ?? placementAhead(context, config)
  const { backend } = context
  const targets = backend === undefined ? (placement?.rule.backends ?? []) : [backend]
  for (const target of targets) {
    const kind = kinds.of(target)
    if (kind?.errorWriter !== undefined) return kind.errorWriter(context, placement, target)
  }
  return undefined
}
