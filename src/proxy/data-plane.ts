/**
 * The data plane: takes configuration in, and answers the engine's callbacks by taking each
 * exchange through `phases.ts` and back through `response.ts`.
 */
import type { HeadRecord } from '../core/head-record.ts'
import type { IoCore } from '../core/io-core.ts'
import type { StreamHandler } from '../engine/streams/stream-types.ts'
import { TicketKeyring } from '../engine/tls/session-tickets.ts'
import type { TlsChoice } from '../engine/tls/tls-choice.ts'
import type { PortChange, RequestHandler, ServerExchange } from '../engine/types.ts'
import type { UpstreamAddress } from '../engine/upstream/upstream-address.ts'
import type { GatewayError } from '../errors.ts'
import { cleanUp } from '../exchange/cleanup.ts'
import type { Peer, RespondVerdict } from '../exchange/exchange.ts'
import { takeAnswer } from '../exchange/interruption.ts'
import type { RateLimitSpec } from '../exchange/rate-limits.ts'
import { sessionKeyRef } from '../model/mcp-targets.ts'
import type { DesiredDelta } from '../model/resources.ts'
import { defaultClusterDomain } from '../model/service-host.ts'
import { addressRanges } from './address-ranges.ts'
import {
  endAttempt,
  learnFromError,
  learnFromResponse,
  moveAttempt,
  retryDelay,
} from './attempts.ts'
import { openCallouts } from './callouts/callouts.ts'
import { type CollectorPlace, createExporters, placeOf } from './collectors.ts'
import { portChangeOf } from './config/client-limits.ts'
import type { PortUse } from './config/listener-tables.ts'
import { loadPolicyAppliers } from './config/policies.ts'
import { type ApplyResult, ConfigStore } from './config/store.ts'
import { factsOf } from './facts.ts'
import { hasAnotherProvider, isProviderFailure } from './llm/choose-provider.ts'
import { finishModelCall } from './llm/model-facts.ts'
import { answerToError, answerToVerdict } from './llm/own-answers.ts'
import { receiveAnswer } from './llm/receive.ts'
import { LocalExchange } from './local-exchange.ts'
import { McpHub } from './mcp/hub.ts'
import { observeGrpc, observeResponse } from './observe.ts'
import { modelPhases, requestPhases, retryPhases } from './phases.ts'
import { RateBuckets } from './rate-buckets.ts'
import { contextOf, nameRetry, RequestContext } from './request-context.ts'
import type { AmbiguousPaths } from './request-path.ts'
import { type LocalResponse, refusalText, toGatewayError } from './rescue.ts'
import { changeResponse, changesResponse, forgetResponseChanges } from './response.ts'
import { MatchableHeads } from './route.ts'
import type { GatewayRuntime } from './runtime.ts'
import { SessionTokens } from './session/tokens.ts'
import { StreamForwarder } from './streams.ts'
import type { SpanExporters } from './telemetry/otlp/exporters.ts'
import type { Telemetry } from './telemetry/types.ts'
import { endAttemptSpan, finishTrace } from './tracing.ts'
import { now } from './upstream/choose.ts'
import { type DestinationRules, destinationFilter } from './upstream/destination-rules.ts'
import { HostResolver } from './upstream/host-resolver.ts'
import type { Locality } from './upstream/locality.ts'
import { type Lookup, machineLookup } from './upstream/lookup.ts'
import type { RequestCap } from './upstream/request-cap.ts'
import { warmUp } from './warm-up.ts'

export interface DataPlaneSettings {
  /** What a dynamic forward proxy may reach. */
  readonly destinations: DestinationRules
  /** Of the product, for spans. */
  readonly version?: string
  /** Last part of the names of Services; `cluster.local` where absent. */
  readonly clusterDomain?: string
  /** DNS servers that are asked in place of the machine's. */
  readonly nameServers?: readonly string[]
  /** Addresses and CIDRs of proxies whose X-Forwarded-For is believed. */
  readonly trustedProxies?: readonly string[]
  /** What happens to paths that servers may read in different ways; kept if omitted. */
  readonly ambiguousPaths?: AmbiguousPaths
  /** Of requests under way to one address of a backend; no limit where absent. */
  readonly requestCap?: RequestCap
  /** Where the process runs; unknown where absent. */
  readonly locality?: Locality
  /** Uniform in [0, 1); Math.random where absent. */
  readonly random?: () => number
  /** Of sessions; that of the control plane where absent. */
  readonly sessionKey?: Uint8Array
  /** Looks host names up; as the machine does where absent. */
  readonly lookup?: Lookup
  /** With which TLS sessions are taken up again; those of each listener stand alone where absent. */
  readonly tickets?: TicketKeyring
}

export interface DataPlaneParts {
  readonly core: IoCore
  /** The record into which the engine reads request heads: routes are matched against it. */
  readonly head: HeadRecord
  readonly telemetry: Telemetry
  /** Of rate limits; this thread's own where absent. */
  readonly buckets?: RateBuckets
  readonly settings: DataPlaneSettings
}

export interface DataPlane {
  /** Takes a change set in; the next request sees it, requests under way keep what they have. */
  apply(delta: DesiredDelta): ApplyResult
  readonly handler: RequestHandler
  readonly streamHandler: StreamHandler
  /** Which listener of a port a TLS handshake is for; undefined where it must fail. */
  chooseTls(port: number, serverName: string | undefined): TlsChoice | 'close' | undefined
  /** What policies settle for connections on a port. */
  portSettings(port: number, use: PortUse): PortChange
  /** Wants the engine, for requests of its own. */
  readonly mcp: McpHub
  /** Sends what waits to be sent elsewhere (spans); for the end of the process. */
  flush(): Promise<void>
}

/** Loads what policies need on requests, once, and makes a data plane without configuration. */
export async function createDataPlane(parts: DataPlaneParts): Promise<DataPlane> {
  const { destinations, clusterDomain, random, lookup, locality } = parts.settings
  const { trustedProxies = [], ambiguousPaths = 'keep' } = parts.settings
  // Nothing runs before the context is there.
  const callouts = openCallouts(() => runtime, parts.telemetry)
  const buckets = parts.buckets ?? new RateBuckets(undefined)
  const services = {
    callouts,
    bucket: (name: string, spec: RateLimitSpec) => buckets.bucket(name, spec),
  }
  const { tickets = new TicketKeyring() } = parts.settings
  const options = { locality, tickets }
  const config = new ConfigStore(parts.core, await loadPolicyAppliers(), services, options)
  const hosts = new HostResolver({
    lookup: lookup ?? machineLookup(parts.settings.nameServers),
    now,
    onLookup: (result) => parts.telemetry.onLookup(result),
  })
  const runtime: GatewayRuntime = {
    config,
    ambiguousPaths,
    ...(trustedProxies.length > 0 && { isTrustedProxy: addressRanges(trustedProxies) }),
    heads: new MatchableHeads(parts.core, parts.head),
    random: random ?? Math.random,
    ...(parts.settings.requestCap && { cap: parts.settings.requestCap }),
    mcp: new McpHub(config, parts.settings),
    sessions: new SessionTokens(
      () => parts.settings.sessionKey ?? config.secret(sessionKeyRef.digest),
    ),
    callouts,
    resolver: {
      hosts,
      isAllowed: destinationFilter(destinations),
      clusterDomain: clusterDomain ?? defaultClusterDomain,
    },
  }
  const exporters = createExporters(runtime, parts.telemetry, parts.settings.version)
  return {
    apply: (delta) => {
      const result = config.apply(delta)
      warmUp(delta, config, hosts)
      runtime.mcp.changed()
      return result
    },
    chooseTls: (port, serverName) => config.chooseTls(port, serverName),
    portSettings: (port, use) => portChangeOf(config.clientSettings(port, use)),
    handler: new PhaseRunner(runtime, parts.telemetry, exporters),
    flush: () => exporters.flush(),
    mcp: runtime.mcp,
    streamHandler: new StreamForwarder(runtime, parts.telemetry),
  }
}

class PhaseRunner implements RequestHandler {
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
    if (isProviderFailure(status) && this.#askAnother(context)) return
    const delay = status < 400 ? undefined : retryDelay(context, status, this.#runtime.random)
    if (delay !== undefined) {
      this.#sendAgain(context, delay)
      return
    }
    // gRPC needs HTTP/2 and POST; other requests are not asked.
    const { version, method } = exchange.request
    if (version === '2' && method === 'POST') observeGrpc(context)
    if (context.model === undefined) this.#relay(context)
    else this.#receive(context)
  }

  /** The answer of a language model, which may have to be read whole. */
  #receive(context: RequestContext): void {
    const attempt = context.model?.tried.size
    const finish = (answer: RespondVerdict | undefined): void => {
      if (context.over) return
      if (answer === undefined) this.#relay(context)
      else this.#answer(context, answer)
    }
    const failed = (thrown: unknown): void => {
      // Whoever waited for a body that was cut off is told by onError as well.
      const error = toGatewayError(thrown)
      if (context.over || error.row.source === 'upstream' || context.model?.tried.size !== attempt)
        return
      this.#fail(context, error)
    }
    try {
      const received = receiveAnswer(context)
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

  onElsewhere(exchange: ServerExchange, address: UpstreamAddress): void {
    moveAttempt(contextOf(exchange), address, this.#runtime.cap)
  }

  /**
   * A provider of language models has failed, or an endpoint that a picker named cannot be reached:
   * the next one is asked. False where there is none.
   */
  #askAnother(context: RequestContext, error?: GatewayError): boolean {
    const hasEndpoint = error !== undefined && context.pool?.hasAnother(error) === true
    if (!hasEndpoint && !hasAnotherProvider(context, this.#runtime)) return false
    endAttempt(context)
    this.#run(context, 0, hasEndpoint ? retryPhases : modelPhases)
    return true
  }

  /** One more attempt, after a while. */
  #sendAgain(context: RequestContext, delayMs: number): void {
    endAttempt(context)
    context.retries++
    nameRetry(context)
    const phases = context.model === undefined ? retryPhases : modelPhases
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
    if (context.model !== undefined) finishModelCall(context)
    context.mcp?.close()
    clearTimeout(context.backoff)
    endAttempt(context)
    const facts = factsOf(context, this.#runtime)
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
        else this.#answer(context, result)
        return
      }
    } catch (error) {
      this.#fail(context, toGatewayError(error))
    }
  }

  #wait(
    context: RequestContext,
    pending: Promise<RespondVerdict | undefined>,
    from: number,
    phases: typeof requestPhases,
  ): void {
    pending.then(
      (result) => {
        if (context.over) return
        if (result === undefined) this.#run(context, from, phases)
        else this.#answer(context, result)
      },
      (error: unknown) => {
        if (!context.over) this.#fail(context, toGatewayError(error))
      },
    )
  }

  #answer(context: RequestContext, verdict: RespondVerdict): void {
    context.reason = verdict.reason
    if (verdict.refusal === true) context.refusal = refusalText(verdict)
    this.#send(context, answerToVerdict(context, verdict, this.#runtime))
  }

  #fail(context: RequestContext, error: GatewayError): void {
    context.error = error
    context.reason = error.row.reason
    this.#send(context, answerToError(context, error, this.#runtime))
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
