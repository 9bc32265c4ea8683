/** How policies change the access log and spans. Types only. */
import type { Exchange } from './exchange.ts'

export type AttributeValue =
  | string
  | number
  | bigint
  | boolean
  | readonly AttributeValue[]
  | { readonly [name: string]: AttributeValue }

export type Attribute = readonly [name: string, value: AttributeValue]

/** The parts of messages that an observer reads, so that they must be kept while the messages pass. */
export interface ObservedParts {
  readonly requestBody: boolean
  readonly responseBody: boolean
  /** The texts of a model's response. */
  readonly modelTexts: boolean
}

/** Changes to the default attributes of a log line or span. */
export interface AttributeChanges {
  readonly removed: ReadonlySet<string>
  /**
   * Returns the attributes in order, each name once; one replaces a default of the same name. Attributes that
   * cannot be evaluated are left out. The values are plain data that may be kept.
   */
  added(exchange: Exchange): readonly Attribute[]
}

/** How a collector is called. */
export interface ExportRules {
  /** The backend of the collector, which the proxy resolves. */
  readonly target: unknown
  readonly protocol: 'HTTP' | 'GRPC'
  /** Path of requests over HTTP; that of the OpenTelemetry protocol if undefined. */
  readonly path?: string | undefined
  /** Attributes that describe the proxy. */
  readonly resources: readonly Attribute[]
}

/** A tracing policy whose expressions are compiled. */
export interface TracingRules extends ExportRules {
  readonly parts: ObservedParts
  /** Returns true if the spans of the exchange are sent. Called when the exchange is over. */
  accepts(exchange: Exchange): boolean
  /** Share of requests like this one that get a span, 0 to 1. `hasTrace`: the request already has a trace. */
  share(exchange: Exchange, hasTrace: boolean): number
  readonly changes: AttributeChanges | undefined
}

/** A label of a metric. */
export type MetricLabel = readonly [name: string, value: string]

/** A metrics policy whose expressions are compiled. */
export interface MetricRules {
  readonly parts: ObservedParts
  /** Returns the labels that the exchange adds to the metrics of requests, each name once. */
  labels(exchange: Exchange): readonly MetricLabel[]
}

/** An access log policy whose expressions are compiled. */
export interface AccessLogRules {
  readonly parts: ObservedParts
  /** Returns true if a line is written for the exchange. Called when the exchange is over. */
  accepts(exchange: Exchange): boolean
  /** Undefined if lines have only the default attributes. */
  readonly changes: AttributeChanges | undefined
  /** The collector that gets entries too; undefined if they are only logged. */
  readonly export: AccessLogExport | undefined
}

/** Sends entries of the access log to a collector. */
export interface AccessLogExport extends ExportRules, Pick<AccessLogRules, 'accepts' | 'changes'> {}
