/**
 * How calls of policies leave: to an endpoint of the backend that they name, in the version of HTTP
 * and with the TLS, the credentials and the time limits that policies of that backend settle.
 */
import type { CallListener, OpenCall } from '../../engine/contracts/calls.ts'
import type { UpstreamAddress } from '../../engine/sockets/upstream-address.ts'
import { GatewayError } from '../../errors/index.ts'
import type {
  CalloutSubtype,
  CalloutTarget,
  Exchange,
  HostTarget,
  VendorTarget,
} from '../../exchange/exchange.ts'
import type { GatewayRuntime } from '../request/runtime.ts'
import type { Telemetry } from '../telemetry/types.ts'
import { now } from '../upstream/choose.ts'
import { type Destination, movedTo } from '../upstream/destination.ts'
import { CalloutExchange, type CalloutHead, causeOf } from './callout-exchange.ts'
import { CalloutSpan } from './callout-span.ts'
import { resolveCallout } from './destination.ts'

interface CalloutRequest extends CalloutHead {
  readonly target: CalloutTarget | HostTarget | VendorTarget
  readonly isGrpc: boolean
  readonly subtype: CalloutSubtype
  readonly isPicker?: true
  /** The exchange that it is made for. */
  readonly cause: Exchange | undefined
}

/** A call whose request is on its way; `end` is told what came of it. */
export interface OpenCallout {
  readonly call: OpenCall
  /** Milliseconds that policies of the backend give an answer; absent: they do not say. */
  readonly timeoutMs: number | undefined
  /** The call is over, with a status of HTTP, or because of an error. */
  end(status?: number, error?: GatewayError): void
}

export class CalloutOpener {
  readonly #runtime: GatewayRuntime
  readonly #telemetry: Telemetry

  constructor(runtime: GatewayRuntime, telemetry: Telemetry) {
    this.#runtime = runtime
    this.#telemetry = telemetry
  }

  /** Rejects with a GatewayError where the backend cannot be called at all. */
  async open(request: CalloutRequest, listener: CallListener): Promise<OpenCallout> {
    const { isGrpc, subtype, target } = request
    const cause = request.cause && causeOf(request.cause)
    const destination = await resolveCallout(this.#runtime, target, isGrpc, request.isPicker)
    const { address, race, authority, settings, steps } = destination
    if (isGrpc && address.isHttp2 !== true) {
      throw new GatewayError('callout_failed', 'gRPC needs HTTP/2, which backend.http excludes')
    }
    const scheme = address.tls === undefined ? 'http' : 'https'
    const exchange = new CalloutExchange(request, scheme, authority, cause)
    const to = `${address.host}:${address.port}`
    const span = new CalloutSpan(this.#telemetry, { subtype, isGrpc, to }, exchange, cause?.trace)
    try {
      for (const step of steps) {
        const verdict = await step.onRequest?.(exchange)
        if (verdict?.kind === 'respond') throw new GatewayError('callout_failed', 'it was refused')
      }
    } catch (error) {
      span.end(undefined, error instanceof Error ? error.message : 'failed')
      throw error
    }
    const { connectTimeoutMs = 0 } = settings
    const head = exchange.headText()
    const startedAt = now()
    const { body } = request
    const isOpen = isGrpc && body === undefined
    destination.endpoint?.begin(this.#runtime.cap)
    let at = destination
    const onAlternateAddress = (address: UpstreamAddress): void => {
      at = movedTo(at, address, this.#runtime.cap)
    }
    const options = { address, race, onAlternateAddress, connectTimeoutMs, timeoutMs: 0 }
    const call = this.#runtime.call({ ...options, head, body, isOpen }, listener)
    return {
      call,
      timeoutMs: settings.requestTimeoutMs,
      end: this.#ending(() => at, startedAt, span),
    }
  }

  /** What the endpoint learns, once. */
  #ending(where: () => Destination, startedAt: number, span: CalloutSpan): OpenCallout['end'] {
    let isOver = false
    return (status, error) => {
      if (isOver) return
      isOver = true
      span.end(status, error?.message)
      const { endpoint } = where()
      if (endpoint === undefined) return
      endpoint.end()
      const isDown = error !== undefined && error.row.source === 'upstream'
      const latencyMs = now() - startedAt
      const isSlow = error?.code === 'upstream_timeout'
      if (isSlow) endpoint.record({ kind: 'failed', retryAfterMs: 0 }, now)
      else if (isDown) endpoint.record({ kind: 'unreachable' }, now)
      else if (error === undefined) endpoint.record({ kind: 'answered', latencyMs }, now)
    }
  }
}
