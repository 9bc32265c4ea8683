/** What the data plane tells access log and metrics; implemented beside this file, or by a test. */

import type { ServerExchange } from '../../engine/contracts/requests.ts'
import type { ServerStream } from '../../engine/contracts/streams.ts'
import type { GatewayError } from '../../errors/index.ts'
import type { CalloutSubtype, Peer } from '../../exchange/exchange.ts'
import type { AccessLogRules } from '../../exchange/observe.ts'
import type { MetricsSnapshot } from './metric-definitions.ts'
import type { Label } from './timed-counters.ts'

/** What the call of a backend tells of one finished request. */
export interface BackendRecord {
  /** What is spoken, for the access log; that of the connection if omitted. */
  readonly protocol?: string
  /** The fields of the access log and of spans, in order. */
  eachField(
    visit: (name: string, value: string | number | undefined, isFree: boolean) => void,
  ): void
}

/** What a worker counts for one kind of backends. */
export interface BackendTelemetry {
  /** `labels`: those of the request, in the order of `requests_total`. */
  count(
    record: BackendRecord,
    exchange: ServerExchange,
    facts: RequestFacts,
    labels: readonly Label[],
  ): void
  ejected?(ejection: Ejection): void
  addTo(snapshot: MetricsSnapshot): MetricsSnapshot
}

/** An endpoint of a named provider is ejected. */
export interface Ejection {
  /** `namespace/name` of the backend. */
  readonly backend: string
  /** Name of the provider, or host and port where it has none. */
  readonly provider: string
  /** `status 429`, or the code of the error. */
  readonly reason: string
  /** Is it in use again? */
  readonly isOver: () => boolean
}

/** One finished request. Absent values were never known. */
export interface RequestFacts {
  /** `namespace/name` of the Gateway. */
  readonly gateway?: string
  /** Name of the listener. */
  readonly listener?: string
  /** `namespace/name` of the route. */
  readonly route?: string
  /** Name of the rule; absent where it has none. */
  readonly rule?: string
  /** `address:port` that the last attempt went to. */
  readonly endpoint?: string
  /**
   * `namespace/name` of a GatewayBackend, `service/namespace/name:port` of a Service,
   * `inferencepool/namespace/name` of an InferencePool.
   */
  readonly backend?: string
  /** `Upstream`, the reason of the error's catalogue row, or that of the policy that answered. */
  readonly reason: string
  /** Code and detail of the error that decided the answer. */
  readonly error?: string
  /** The error where it is a bug: clients learn nothing of its cause, so somebody else must. */
  readonly bug?: GatewayError
  /** As sent; 0 where the client got nothing. */
  readonly status: number
  readonly durationMs: number
  /** How often it was sent again. */
  readonly retries: number
  readonly protocol: 'http' | 'https'
  /** Who the client's certificate says it is: its SPIFFE id, else its common name. */
  readonly identity?: string
  /** `sub` of a token that was verified. */
  readonly subject?: string
  readonly grpcStatus?: number
  /** Of the span that was made for the request. */
  readonly traceId?: string
  readonly spanId?: string
  /** What a policy asks of the line; absent where none does. */
  readonly accessLog?: AccessLogRules
  /** What the kind of the backend tells besides. */
  readonly record?: BackendRecord
  /** The request as the client sent it, before any rewrite. */
  readonly method: string
  readonly host: string
  /** With the query. */
  readonly path: string
}

/** One connection that was forwarded unread, or one session of datagrams. */
export type StreamFacts = Pick<
  RequestFacts,
  | 'gateway'
  | 'listener'
  | 'route'
  | 'rule'
  | 'endpoint'
  | 'backend'
  | 'reason'
  | 'error'
  | 'bug'
  | 'durationMs'
>

export interface Telemetry {
  /** Called once per exchange, before it is reused: take what is needed, keep nothing of it. */
  onDone(exchange: ServerExchange, facts: RequestFacts): void
  /** An endpoint is left out for a while; of a named provider if an ejection is given. */
  onEjected(ejection?: Ejection): void
  /** Spans that a collector has taken, and that none will get. */
  onSpans(exported: number, dropped: number): void
  /** A policy has asked another service, which took so many seconds. */
  onCallout(subtype: CalloutSubtype, seconds: number): void
  /** A host name was looked up. */
  onLookup(result: 'ok' | 'failed'): void
  /** Called once per stream. */
  onStreamDone(stream: ServerStream, facts: StreamFacts): void
  /** A head that could not be read: there was no exchange. */
  onBadHead(port: number, error: GatewayError, peer: Peer, scheme: 'http' | 'https'): void
}
