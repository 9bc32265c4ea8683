/** How policies shape what is told of requests: access log and spans. Types only. */
import type { Exchange } from './exchange.ts'

export type AttributeValue =
  | string
  | number
  | bigint
  | boolean
  | readonly AttributeValue[]
  | { readonly [name: string]: AttributeValue }

export type Attribute = readonly [name: string, value: AttributeValue]

/** What an observer reads of messages beyond their start lines; it must be kept while they pass. */
export interface ObservedParts {
  readonly requestBody: boolean
  readonly responseBody: boolean
  readonly responseHead: boolean
  /** What a model has said. */
  readonly modelTexts: boolean
}

/** Changes to the attributes that a line or a span has by default. */
export interface AttributeChanges {
  readonly removed: ReadonlySet<string>
  /**
   * In order, each name once; takes the place of a default of the same name. What cannot be evaluated
   * is left out. Plain data, no views: it may be kept.
   */
  added(exchange: Exchange): readonly Attribute[]
}

/** What a tracing policy asks for; bound once per configuration. */
export interface TracingRules {
  /** The collector, as the proxy resolves it. */
  readonly target: unknown
  readonly protocol: 'HTTP' | 'GRPC'
  /** Attributes that describe the proxy. */
  readonly resources: readonly Attribute[]
  readonly parts: ObservedParts
  /** Part of the requests like this one that get a span, 0 to 1. */
  share(exchange: Exchange, hasTrace: boolean): number
  readonly changes: AttributeChanges | undefined
}

/** What an access log policy asks for; bound once per configuration. */
export interface AccessLogRules {
  readonly parts: ObservedParts
  /** Is a line written for the exchange, which is over? */
  accepts(exchange: Exchange): boolean
  /** Undefined where a line has its defaults and nothing else. */
  readonly changes: AttributeChanges | undefined
}
