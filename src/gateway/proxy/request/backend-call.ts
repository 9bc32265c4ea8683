import type { ForwardOptions } from '../../../engines/http/contracts/requests.ts'
import type { GatewayError } from '../../../ground/errors/index.ts'
import type {
  BodyWatcher,
  BufferedBody,
  Exchange,
  RespondVerdict,
  ResponseHead,
} from '../../../ground/exchange/exchange.ts'
import type { Attribute } from '../../../ground/exchange/observe.ts'
import type { BackendRecord, Ejection } from '../telemetry/types.ts'
import type { AttemptOutcome } from '../upstream/endpoint.ts'
import type { ErrorWriter } from './error-response.ts'

/** The response of the gateway, or undefined to continue. */
export type EarlyResponse = RespondVerdict | undefined

/** A response of the backend that reports a failure although its status is that of a success. */
export interface ReportedFailure {
  readonly kind: 'failed'
  /** The status that the backend should have sent. */
  readonly status: number
  /** The response for the client if no other destination can be tried. */
  readonly response: RespondVerdict
}

/** What to do with a response of the backend; undefined to relay it. */
export type Received = RespondVerdict | ReportedFailure | undefined

/** A provider of a backend whose providers have names. */
export interface NamedProvider {
  readonly name: string
  /** Position of its group in the backend, from 1. */
  readonly group: number
}

/** One request with all its attempts, for kinds of backends that do more than resolve a destination. */
export interface BackendCall {
  /** Sets the destination of the next attempt, or leaves it unset if the call serves the request itself. */
  resolve(): EarlyResponse | Promise<EarlyResponse>
  /** Authenticates the client before the request is mirrored or changed. */
  authenticate?(): EarlyResponse | Promise<EarlyResponse>
  /**
   * Rewrites the request for the backend, before credentials are added. A call with this method buffers the
   * whole body. Its `resolve` restores the head, because every attempt starts from the original request.
   * Returns `askAnother` if the destination cannot carry the request but another destination may.
   */
  prepare?(): EarlyResponse | 'askAnother' | Promise<EarlyResponse | 'askAnother'>
  /** True if the next attempt sends the request as it was prepared for the last one, to another endpoint. */
  readonly keepsRequest?: boolean
  /** Changes headers after credentials were added. */
  adaptHeaders?(): void
  /** Serves a request for which `resolve` has not set a destination. */
  serve?(): EarlyResponse | Promise<EarlyResponse>
  /** Returns whether another destination can be tried after a failure. `failure` is a status or an error. */
  hasAnother?(failure: number | GatewayError): boolean
  /** Returns how long the current attempt may take until its response is relayed; undefined if there is no limit. */
  firstEventTimeouts?(): Pick<ForwardOptions, 'responseTimeoutMs' | 'idleTimeoutMs'> | undefined
  /** Returns the outcome to record for the endpoint. If omitted, the usual rules apply. */
  outcomeOf?(result: ResponseHead | GatewayError, latencyMs: number): AttemptOutcome
  /** Returns the provider of the current attempt; undefined if it has no name. */
  namedProvider?(): NamedProvider | undefined
  /** Describes the endpoint that was just ejected, for metrics. */
  ejection?(reason: string): Ejection | undefined
  /** Returns the maximum size of a response whose whole body `receive` needs; undefined if it needs none. */
  wholeResponseLimit?(): number | undefined
  /**
   * Asked if `wholeResponseLimit` returns undefined: returns what decides how much of the response must arrive
   * before `receive` is called; undefined if nothing must.
   */
  beginningOfResponse?(): BodyWatcher | undefined
  /**
   * Reads the response of the backend first. May return another response to send instead, or a failure, so
   * that another destination is tried. `body` is set if `wholeResponseLimit` has returned a limit.
   */
  receive?(body: BufferedBody | undefined): Received | Promise<Received>
  /** Changes a response before policies do. Also called for responses of the gateway itself. */
  changeResponse?(exchange: Exchange): Promise<void> | undefined
  /** Returns a function that writes errors in the client's format; undefined for plain text. */
  errorWriter?(): ErrorWriter | undefined
  /** Returns the name and additional attributes of the span of an attempt. */
  describeAttempt?(): AttemptDescription | undefined
  /** Called when the exchange is over. */
  finish?(): void
  /** Data for the access log and metrics. Read once the exchange is over. */
  readonly record?: BackendRecord
}

export interface AttemptDescription {
  readonly name: string
  readonly attributes: readonly Attribute[]
}
