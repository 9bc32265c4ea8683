/** Runs the phases of each request, changes its response, and retries failed attempts. */
import type { RequestHandler, ServerExchange } from '../../engines/http/contracts/requests.ts'
import type { UpstreamAddress } from '../../engines/http/sockets/upstream-address.ts'
import type { GatewayError } from '../../ground/errors/index.ts'
import { budgetsOf } from '../../ground/exchange/budgets.ts'
import { cleanUp } from '../../ground/exchange/cleanup.ts'
import type { BufferedBody, Peer, RespondVerdict } from '../../ground/exchange/exchange.ts'
import { takeResponse } from '../../ground/exchange/interruption.ts'
import { accessRecordOf } from './access-record.ts'
import { informSteps, learn, moveAttempt, retryDelay } from './attempts.ts'
import type { Collectors } from './collectors.ts'
import type { DecisionRecorder } from './decisions/recorder.ts'
import { type PhaseResult, requestPhases, retryPhases, startOverPhases } from './phases.ts'
import type { Received, ReportedFailure } from './request/backend-call.ts'
import {
  type ErrorWriter,
  errorResponse,
  type LocalResponse,
  refusalText,
  toGatewayError,
  verdictResponse,
} from './request/error-response.ts'
import { contextOf, idHeader, nameRetry, RequestContext } from './request/request-context.ts'
import { changeResponse, forgetResponseChanges, LocalExchange } from './request/response.ts'
import { placementAhead } from './request/route.ts'
import type { GatewayRuntime } from './request/runtime.ts'
import { endAttemptSpan } from './request/tracing.ts'
import { endTunnel, refusalByProxy } from './request/tunnels.ts'
import type { Telemetry } from './telemetry/types.ts'

/** Maximum number of bytes of a response to wait for before any of it is sent. */
const maxBeginning = 64 * 1024

export class PhaseRunner implements RequestHandler {
  readonly #runtime: GatewayRuntime
  readonly #telemetry: Telemetry
  readonly #collectors: Collectors
  readonly #recorder: DecisionRecorder | undefined

  constructor(
    runtime: GatewayRuntime,
    telemetry: Telemetry,
    collectors: Collectors,
    recorder: DecisionRecorder | undefined,
  ) {
    this.#runtime = runtime
    this.#telemetry = telemetry
    this.#collectors = collectors
    this.#recorder = recorder
  }

  onRequest(exchange: ServerExchange): void {
    const context = new RequestContext(exchange, this.#runtime.config.position, this.#recorder)
    exchange.state = context
    this.#run(context, 0)
  }

  onResponse(exchange: ServerExchange): void {
    const context = contextOf(exchange)
    const { response } = exchange
    const status = response?.status ?? 0
    if (response !== undefined) learn(context, response, this.#telemetry)
    const asksAgain = informSteps(context)
    if (context.trace !== undefined) endAttemptSpan(context, status)
    if (asksAgain && exchange.isReplayable) {
      // This is not a retry, so the route's number of retries does not apply.
      this.#endAttempt(context, status)
      this.#run(context, 0, furtherPhases(context))
      return
    }
    if (this.#askAnother(context, status)) return
    const delay = retryDelay(context, status, this.#runtime)
    if (delay !== undefined) {
      this.#sendAgain(context, status, delay)
      return
    }
    // Only a POST over HTTP/2 can be gRPC. The check is skipped for other requests.
    const { version, method } = exchange.request
    if (version === '2' && method === 'POST') recordGrpcStatus(context)
    const limit = context.call?.wholeResponseLimit?.()
    if (limit !== undefined) exchange.bufferResponse(limit)
    else this.#receiveStream(context)
  }

  /** Waits for the beginning of a response if the backend's call must know it before the client gets any. */
  #receiveStream(context: RequestContext): void {
    const watcher = context.call?.beginningOfResponse?.()
    if (watcher === undefined) this.#receive(context, undefined)
    else context.exchange.bufferResponse(maxBeginning, watcher)
  }

  onWholeResponse(exchange: ServerExchange, body: BufferedBody): void {
    this.#receive(contextOf(exchange), body)
  }

  /** Passes the response to the backend's call, which may respond in its place. */
  #receive(context: RequestContext, body: BufferedBody | undefined): void {
    try {
      const received = context.call?.receive?.(body)
      if (received instanceof Promise) this.#awaitReceived(context, received)
      else this.#received(context, received)
    } catch (thrown) {
      this.#giveUp(context, thrown)
    }
  }

  #received(context: RequestContext, received: Received): void {
    if (context.over) return
    if (received === undefined) this.#relay(context)
    else if (received.kind === 'failed') this.#failOver(context, received)
    else this.#respond(context, received)
  }

  /** Treats a failure that the backend reports in the body of a response like one that its status reports. */
  #failOver(context: RequestContext, { status, response }: ReportedFailure): void {
    const headers = context.exchange.response?.headers
    if (headers !== undefined) learn(context, { status, headers }, this.#telemetry)
    if (this.#askAnother(context, status)) return
    const delay = retryDelay(context, status, this.#runtime)
    if (delay === undefined) this.#respond(context, response)
    else this.#sendAgain(context, status, delay)
  }

  #awaitReceived(context: RequestContext, pending: Promise<Received>): void {
    const { attempt } = context
    pending
      .then((received) => this.#received(context, received))
      .catch((thrown: unknown) => {
        // An upstream error also reaches `onError`, which handles it.
        const error = toGatewayError(thrown)
        if (context.over || error.row.source === 'upstream' || attempt?.isOver === true) return
        this.#fail(context, error)
      })
  }

  #relay(context: RequestContext): void {
    const { exchange } = context
    const { response } = exchange
    if (context.namer !== undefined && response !== undefined) {
      const id = context.namer.idFor(context, response.status)
      if (id !== undefined) response.headers.set(idHeader, id)
    }
    if (context.observers.parts.responseBody) {
      exchange.responseBody?.record(exchange.bufferLimit)
    }
    if (!context.changesResponse) {
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
    // While the next attempt waits for its backoff, errors of the previous attempt are ignored.
    const isLate = error.row.source === 'upstream' && error.code !== 'route_timeout'
    if (context.backoff !== undefined && isLate) return
    clearTimeout(context.backoff)
    context.backoff = undefined
    if (context.trace !== undefined) endAttemptSpan(context, undefined, error.message)
    const response = takeResponse(exchange)
    if (response !== undefined) {
      this.#respond(context, response)
      return
    }
    if (error.row.source === 'upstream') learn(context, error, this.#telemetry)
    if (isLate && this.#askAnother(context, error)) return
    const delay = retryDelay(context, error, this.#runtime)
    if (delay === undefined) this.#fail(context, error)
    else this.#sendAgain(context, error, delay)
  }

  onAlternateAddress(exchange: ServerExchange, address: UpstreamAddress): void {
    moveAttempt(contextOf(exchange), address, this.#runtime.cap)
  }

  /** Tries the next destination of the call after a failed attempt. Returns false if there is none. */
  #askAnother(context: RequestContext, failure: number | GatewayError): boolean {
    if (context.call?.hasAnother?.(failure) !== true) return false
    this.#endAttempt(context, failure)
    this.#run(context, 0, furtherPhases(context))
    return true
  }

  #endAttempt(context: RequestContext, failure: number | GatewayError): void {
    const { attempt } = context
    context.failedAttempts ??= []
    context.failedAttempts.push({
      endpoint: attempt?.address.label ?? attempt?.address.pool ?? '',
      provider: context.call?.namedProvider?.(),
      failure: typeof failure === 'number' ? `status ${failure}` : failure.code,
    })
    attempt?.end()
    context.refusal = undefined
  }

  /** Sends the request again after a delay. */
  #sendAgain(context: RequestContext, failure: number | GatewayError, delayMs: number): void {
    this.#endAttempt(context, failure)
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
    this.release(exchange)
    const context = contextOf(exchange)
    const access = accessRecordOf(context, this.#runtime.kinds)
    this.#telemetry.onDone(exchange, access)
    this.#recorder?.record(context, access)
    this.#collectors.add(context, exchange, access)
  }

  /** Ends an exchange without reporting it. */
  release(exchange: ServerExchange): void {
    const context = contextOf(exchange)
    context.over = true
    cleanUp(exchange)
    context.call?.finish?.()
    endTunnel(context, this.#runtime)
    budgetsOf(exchange)?.end(wasServed(context))
    clearTimeout(context.backoff)
    context.attempt?.end()
    context.retryCircuit?.giveBack()
    context.retryCircuit = undefined
  }

  onBadHead(port: number, error: GatewayError, peer: Peer, scheme: 'http' | 'https'): void {
    this.#telemetry.onBadHead(port, error, peer, scheme)
  }

  /** Runs phases until one responds or returns a promise. */
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
    else this.#respond(context, result)
  }

  #respond(context: RequestContext, verdict: RespondVerdict): void {
    context.verdict = verdict
    if (verdict.refusal === true) context.refusal = refusalText(verdict)
    const { headers } = context.exchange.request
    const write = verdict.refusal === true ? errorWriterOf(context, this.#runtime) : undefined
    const response = verdictResponse(verdict, headers, write)
    this.#send(context, verdict.limit === undefined ? response : this.#withLimit(context, response))
  }

  /** Adds what the backends of the rule send when a rate limit refuses a request. */
  #withLimit(context: RequestContext, response: LocalResponse): LocalResponse {
    const { config, kinds } = this.#runtime
    const { rule } = context.placement ?? placementAhead(context, config) ?? {}
    const { limitHeaders } = kinds.having('limitHeaders', rule) ?? {}
    if (limitHeaders === undefined) return response
    return { ...response, headers: [...response.headers, ...limitHeaders] }
  }

  #fail(context: RequestContext, error: GatewayError): void {
    context.error = error
    const write = errorWriterOf(context, this.#runtime)
    const isGrpcRoute = context.placement?.rule.resource.route.kind === 'GRPCRoute'
    const { headers } = context.exchange.request
    this.#send(context, errorResponse(error, headers, { write, isGrpcRoute }))
  }

  /** Sends a response of the gateway itself. Policies and filters that have run on the request change it. */
  #send(context: RequestContext, response: LocalResponse): void {
    const { exchange } = context
    context.isGrpc = response.headers.some(isGrpcType)
    const named = this.#withId(
      context,
      context.tunnel === undefined ? response : refusalByProxy(response),
    )
    if (!context.changesResponse) {
      exchange.respond(named.status, named.headers, named.body)
      return
    }
    const local = new LocalExchange(exchange, named)
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

  /** Adds the id of the request to a response that is recorded. */
  #withId(context: RequestContext, response: LocalResponse): LocalResponse {
    const id = context.namer?.idFor(context, response.status)
    if (id === undefined) return response
    return { ...response, headers: [...response.headers, [idHeader, id]] }
  }

  /** Waits for response steps, then calls `then`, unless another attempt has begun meanwhile. */
  #after(context: RequestContext, pending: Promise<void>, then: () => void): void {
    const failed = context.failedAttempts?.length
    const isCurrent = () => !context.over && context.failedAttempts?.length === failed
    pending
      .then(() => isCurrent() && then())
      .catch((thrown: unknown) => isCurrent() && this.#giveUp(context, thrown))
  }

  /** Called if a response step has thrown. Responds with an error that is not changed by further steps. */
  #giveUp(context: RequestContext, thrown: unknown): void {
    if (context.over) return
    forgetResponseChanges(context)
    this.#fail(context, toGatewayError(thrown))
  }
}

/** Marks gRPC responses, whose status is in their head if there is no body (trailers-only). */
function recordGrpcStatus(context: RequestContext): void {
  const type = context.exchange.response?.headers.get('content-type')
  if (type?.startsWith('application/grpc') === true) context.isGrpc = true
}

function isGrpcType([name, value]: readonly [string, string]): boolean {
  return name === 'content-type' && value.startsWith('application/grpc')
}

/** Returns the phases of a further attempt. */
const furtherPhases = ({ call }: RequestContext): typeof requestPhases =>
  call?.prepare === undefined || call.keepsRequest === true ? retryPhases : startOverPhases

/**
 * Returns the function that writes errors in the format of the chosen backend. If none is chosen yet, it is
 * that of a backend of the route.
 */
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

/** Whether a request got more than a failure, or a refusal of the gateway, so that budgets of requests count it. */
function wasServed({ attempt, error, verdict, exchange }: RequestContext): boolean {
  if (error !== undefined || exchange.sentStatus >= 500) return false
  // A provider bills no request that it refuses.
  if (exchange.learned.llm !== undefined && exchange.sentStatus >= 400) return false
  if (attempt !== undefined) return true
  return verdict !== undefined && verdict.refusal !== true && verdict.status < 400
}
