import type { GatewayError } from '../../errors/index.ts'
import type { Exchange, RespondVerdict, ResponseHead } from '../../exchange/exchange.ts'
import type { Attribute } from '../../exchange/observe.ts'
import type { BackendRecord, Ejection } from '../telemetry/types.ts'
import type { AttemptOutcome } from '../upstream/endpoint.ts'
import type { ErrorWriter } from './error-response.ts'

type Answer = RespondVerdict | undefined

/**
 * One request to a backend that does more than take it at an endpoint. It is made when the backend is
 * first resolved and kept for every attempt. A kind of backends implements the steps that it needs;
 * all but `resolve` are optional. Requests to other backends have no call at all.
 */
export interface BackendCall {
  /** Sets the destination of the next attempt, unless the call serves the request itself. */
  resolve(): Answer | Promise<Answer>
  /** Decides who the client is, before anything else learns of the request. */
  authenticate?(): Answer | Promise<Answer>
  /**
   * Writes the request as the backend wants it, before credentials are added. A call that prepares
   * has read the whole body, and `resolve` restores the head: every attempt begins anew. Returns
   * `askAnother` if the chosen destination cannot carry the request and another one may.
   */
  prepare?(): Answer | 'askAnother' | Promise<Answer | 'askAnother'>
  /** Changes headers after credentials were added. */
  adaptHeaders?(): void
  /** Serves a request for which `resolve` has set no destination. */
  serve?(): Promise<Answer>
  /** Is there another destination to ask after a failure (a status or an error)? */
  hasAnother?(failure: number | GatewayError): boolean
  /** What a response or an error says of the endpoint, if it differs from what it says of others. */
  outcomeOf?(result: ResponseHead | GatewayError, latencyMs: number): AttemptOutcome
  /** Describes the endpoint that was just ejected, for metrics. */
  ejection?(reason: string): Ejection | undefined
  /** Reads the response of the backend before anything else sees it; may answer instead. */
  receive?(): Answer | Promise<Answer>
  /** Changes a response before policies do, the gateway's own ones too. */
  changeResponse?(exchange: Exchange): Promise<void> | undefined
  /** How the client expects errors; undefined: as plain text. */
  errorWriter?(): ErrorWriter | undefined
  /** Name and attributes of the span of an attempt, besides those of every request. */
  describeAttempt?(): AttemptDescription | undefined
  /** The exchange is over. */
  finish?(): void
  /** What telemetry is told once the exchange is over. */
  readonly record?: BackendRecord
}

export interface AttemptDescription {
  readonly name: string
  readonly attributes: readonly Attribute[]
}
