/** Sends the calls of policies to backends. Policies that target those backends apply to the calls. */
import { performance } from 'node:perf_hooks'
import type { CallListener, OpenCall } from '../../../engines/http/contracts/calls.ts'
import type { UpstreamAddress } from '../../../engines/http/sockets/upstream-address.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import {
  type OpenSpan,
  openSpan,
  outboundAttributes,
  type RequestTrace,
} from '../request/request-trace.ts'
import type { GatewayRuntime } from '../request/runtime.ts'
import type { Telemetry } from '../telemetry/types.ts'
import { type Destination, movedTo } from '../upstream/destination.ts'
import { now, outcomeOfError } from '../upstream/endpoint.ts'
import { CalloutExchange, type CalloutRequest, causeOf } from './callout-exchange.ts'
import { resolveCallout } from './destination.ts'

/** A call that is being sent. */
export interface OpenCallout {
  readonly call: OpenCall
  /** Timeout of the response in milliseconds; undefined if policies of the backend set none. */
  readonly timeoutMs: number | undefined
  /** Ends the call, with the HTTP status of the response or with an error. Later ends have no effect. */
  end(status?: number, error?: GatewayError): void
}

export class CalloutOpener {
  readonly #runtime: GatewayRuntime
  readonly #telemetry: Telemetry

  constructor(runtime: GatewayRuntime, telemetry: Telemetry) {
    this.#runtime = runtime
    this.#telemetry = telemetry
  }

  /** Opens a call. Rejects with a GatewayError if the backend cannot be called. */
  async open(request: CalloutRequest, listener: CallListener): Promise<OpenCallout> {
    const runtime = this.#runtime
    const { isGrpc, body, isOnce } = request
    const cause = request.cause && causeOf(request.cause)
    const destination = await resolveCallout(runtime, request)
    const { address, race, authority, settings, steps } = destination
    if (isGrpc && address.isHttp2 !== true) {
      throw new GatewayError('callout_failed', 'gRPC needs HTTP/2, which backend.http excludes')
    }
    const scheme = address.tls === undefined ? 'http' : 'https'
    const exchange = new CalloutExchange(request, scheme, authority, cause)
    const running = new RunningCallout(this.#telemetry, request, exchange, address, cause?.trace)
    try {
      for (const step of steps) {
        const verdict = await step.onRequest?.(exchange)
        if (verdict?.kind === 'respond') throw new GatewayError('callout_failed', 'it was refused')
      }
    } catch (error) {
      running.end(undefined, error instanceof Error ? error : new Error('failed'))
      throw error
    }
    const { connectTimeoutMs = 0, requestTimeoutMs } = settings
    const head = exchange.headText()
    running.send(destination, runtime)
    const call = runtime.call(
      {
        address,
        race,
        onAlternateAddress: (other) => running.move(other, runtime),
        connectTimeoutMs,
        timeoutMs: 0,
        head,
        body,
        isOnce,
        isOpen: isGrpc && body === undefined,
        endsWithResponse: isGrpc,
      },
      listener,
    )
    const end = (status?: number, error?: GatewayError) => running.end(status, error)
    return { call, timeoutMs: requestTimeoutMs, end }
  }
}

/** A call with a resolved destination. Records its span, its duration, and its outcome at the endpoint. */
class RunningCallout {
  readonly #telemetry: Telemetry
  readonly #request: CalloutRequest
  readonly #exchange: CalloutExchange
  readonly #address: UpstreamAddress
  readonly #trace: RequestTrace | undefined
  readonly #startedAt = performance.now()
  readonly #span: OpenSpan | undefined
  /** Set while the call counts as a request of the endpoint. */
  #destination: Destination | undefined
  #sentAt = 0
  #isOver = false

  constructor(
    telemetry: Telemetry,
    request: CalloutRequest,
    exchange: CalloutExchange,
    address: UpstreamAddress,
    trace: RequestTrace | undefined,
  ) {
    this.#telemetry = telemetry
    this.#request = request
    this.#exchange = exchange
    this.#address = address
    this.#trace = trace
    if (trace === undefined) return
    this.#span = openSpan()
    exchange.request.headers.set('traceparent', trace.header(this.#span.spanId))
  }

  /** @throws GatewayError `overloaded` */
  send(destination: Destination, { cap }: GatewayRuntime): void {
    this.#sentAt = now()
    destination.endpoint?.begin(cap)
    this.#destination = destination
  }

  move(address: UpstreamAddress, { cap }: GatewayRuntime): void {
    this.#destination = this.#destination && movedTo(this.#destination, address, cap)
  }

  end(status: number | undefined, error: Error | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#finishSpan(status, error?.message)
    const endpoint = this.#destination?.endpoint
    if (endpoint === undefined) return
    endpoint.end()
    if (error === undefined) {
      endpoint.record({ kind: 'answered', latencyMs: now() - this.#sentAt }, now)
    } else if (error instanceof GatewayError && error.row.source === 'upstream') {
      endpoint.record(outcomeOfError(error), now)
    }
  }

  #finishSpan(status: number | undefined, error: string | undefined): void {
    const { subtype = 'Http', isGrpc } = this.#request
    this.#telemetry.onCallout(subtype, (performance.now() - this.#startedAt) / 1_000)
    if (this.#trace === undefined || this.#span === undefined) return
    const { request } = this.#exchange
    const { method, path } = request
    const attributes = outboundAttributes('Policy', subtype, request, status)
    const { host, port } = this.#address
    const name = isGrpc ? path.slice(1) : `${method} ${host}:${port}`
    this.#trace.finishCall(this.#span, { name, attributes, error })
  }
}
