/** The data that the data plane reports to the access log and metrics. */

import type { ServerExchange } from '../../../engines/http/contracts/requests.ts'
import type { ServerStream } from '../../../engines/http/contracts/streams.ts'
import type { GatewayError } from '../../../ground/errors/index.ts'
import type { CalloutSubtype, Peer } from '../../../ground/exchange/exchange.ts'
import type { AccessLogRules, MetricRules } from '../../../ground/exchange/observe.ts'
import type { Step } from '../../policies/define.ts'
import type { HealthChange } from '../upstream/checked-backend.ts'
import type { ExemplarTrace } from './exemplar.ts'
import type { MetricsSnapshot } from './metric-definitions.ts'
import type { Label } from './timed-counters.ts'

/** Called with each field of the access log. If `isFree`, the value is free text, which is always quoted. */
export type VisitField = (name: string, value: string | number | undefined, isFree: boolean) => void

/** Data of one finished request that depends on the kind of its backend. */
export interface BackendRecord {
  /** Whether a decision is recorded whatever the share of successful requests is. */
  readonly isAlwaysRecorded?: boolean
  /** Name of the model that the client asked for. */
  readonly model?: string | undefined
  /** Protocol for the access log. If omitted, it is the protocol of the connection. */
  readonly protocol?: string
  /** The record of another backend that the request was sent to by this one. */
  readonly inner?: BackendRecord
  /** Visits the fields for the access log and spans, in order. */
  eachField(visit: VisitField): void
}

/** The metrics of one kind of backends. */
export interface BackendTelemetry {
  /** Counts a finished request. `labels` has the labels of `requests_total`, in order, and last those that policies add. */
  count(
    record: BackendRecord,
    exchange: ServerExchange,
    access: AccessRecord,
    labels: readonly Label[],
  ): void
  ejected?(ejection: Ejection): void
  snapshot(): MetricsSnapshot
}

/** Describes the ejection of an endpoint with a named provider. */
export interface Ejection {
  /** `namespace/name` of the backend. */
  readonly backend: string
  /** Name of the provider, or host and port if it has none. */
  readonly provider: string
  /** `status 429`, or the code of the error. */
  readonly reason: string
  /** Returns whether the endpoint can be used again. */
  readonly isOver: () => boolean
}

/** One connection or UDP session that was forwarded. Unknown values are undefined. */
export interface StreamRecord {
  /** `namespace/name` of the Gateway. */
  readonly gateway?: string
  /** Name of the listener. */
  readonly listener?: string
  /** `namespace/name` of the route. */
  readonly route?: string
  /** Name of the rule, if it has one. */
  readonly rule?: string
  /** `address:port` that the last attempt went to. */
  readonly endpoint?: string
  /** Label of the backend, such as `namespace/name` or `service/namespace/name:port`. */
  readonly backend?: string
  /** `Upstream`, the reason of the error in the catalogue, or the reason of the policy that responded. */
  readonly reason: string
  /** Code and detail of the error that decided the response. */
  readonly error?: string
  /** The error if it is a bug, for the operational log. */
  readonly bug?: GatewayError
  readonly durationMs: number
}

/** One finished request. */
export interface AccessRecord extends StreamRecord {
  /** Status that was sent; 0 if none was sent. */
  readonly status: number
  readonly retries: number
  readonly protocol: 'http' | 'https'
  /** SPIFFE id or common name of the client's certificate. */
  readonly identity?: string
  /** `sub` of a verified token. */
  readonly subject?: string
  readonly grpcStatus?: number
  readonly traceId?: string
  readonly spanId?: string
  /** The trace if the spans of the request are exported. */
  readonly exportedTrace?: ExemplarTrace
  /** Settings of the access log policy, if there is one. */
  readonly accessLog?: AccessLogRules
  /** The policy that adds labels to metrics, if there is one. */
  readonly metrics?: MetricRules
  readonly record?: BackendRecord
  /** The step of the policy that refused the request with 4xx. */
  readonly refusedBy?: Step
  /** Method, host and path are as the client sent them. */
  readonly method: string
  readonly host: string
  /** Path with the query. */
  readonly path: string
}

/** What is sent to collectors about requests. */
export type ExportedSignal = 'spans' | 'logs'

export interface Telemetry {
  /** Called once for each exchange. Keep no reference to it: the object is reused. */
  onDone(exchange: ServerExchange, access: AccessRecord): void
  /** Called when an endpoint was ejected. `ejection` describes an endpoint with a named provider. */
  onEjected(ejection?: Ejection): void
  /** Called if active health checks find that an endpoint is unhealthy, or healthy again. */
  onHealthChange(change: HealthChange): void
  /** Called when spans or entries of the access log were sent to a collector or were dropped. */
  onExport(signal: ExportedSignal, sent: number, dropped: number): void
  /** Called when a call of a policy to another service has ended, with its duration. */
  onCallout(subtype: CalloutSubtype, seconds: number): void
  /** Called after each lookup of a host name. */
  onLookup(result: 'ok' | 'failed'): void
  /** Called once for each stream. */
  onStreamDone(stream: ServerStream, access: StreamRecord): void
  /** Called when a request head could not be read, so that there is no exchange. */
  onBadHead(port: number, error: GatewayError, peer: Peer, scheme: 'http' | 'https'): void
}
