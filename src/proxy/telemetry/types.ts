/** What the data plane tells access log and metrics; implemented beside this file, or by a test. */

import type { Usage } from '../../backends/ai/chat.ts'
import type { GuardCheck } from '../../backends/ai/guards/guard-check.ts'
import type { ServerExchange } from '../../engine/contracts/requests.ts'
import type { ServerStream } from '../../engine/contracts/streams.ts'
import type { GatewayError } from '../../errors/index.ts'
import type { CalloutSubtype, Peer } from '../../exchange/exchange.ts'
import type { AccessLogRules } from '../../exchange/observe.ts'

/** What a request to a language model asked for; absent values were not given. */
export interface ModelParameters {
  readonly temperature: number | undefined
  readonly top_p: number | undefined
  readonly frequency_penalty: number | undefined
  readonly presence_penalty: number | undefined
  readonly seed: number | undefined
  readonly max_tokens: number | undefined
  readonly encoding_format: string | undefined
  readonly dimensions: number | undefined
}

/** What is known of a request to a language model. */
export interface ModelFacts {
  readonly operation: 'chat' | 'embeddings' | 'count_tokens' | undefined
  /** By the names of OpenTelemetry, such as `openai`. */
  readonly provider: string | undefined
  readonly requestModel: string | undefined
  readonly responseModel: string | undefined
  readonly usage: Usage | undefined
  /** Read only by those who write them down. */
  readonly parameters: (() => ModelParameters) | undefined
  /** From the request to the first piece of a streamed answer. */
  readonly firstTokenSeconds?: number
  /** Between pieces of a streamed answer, for each token after the first. */
  readonly perTokenSeconds?: number
  /** From the last attempt to the end of its answer; absent where nobody was asked. */
  readonly operationSeconds: number | undefined
  /** Code of the error or status of the answer; undefined where all went well. */
  readonly failure: string | undefined
  readonly checks: readonly GuardCheck[]
}

/** A provider of language models is left out. */
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

/** What came of asking an endpoint picker. */
export type PickOutcome = 'picked' | 'fail_open' | 'fail_closed' | 'answered'

/** What is known of a request to an InferencePool. */
export interface PoolFacts {
  /** `namespace/name` of the pool. */
  readonly name: string
  readonly failureMode: 'FailOpen' | 'FailClose'
  /** Undefined where the request ended before. */
  readonly outcome: PickOutcome | undefined
  readonly pickSeconds: number
  /** Why the picker did not pick. */
  readonly problem: string | undefined
}

/** One message of a client of MCP servers. */
export interface McpFacts {
  readonly method: string
  /** Of these only what the request was about. */
  readonly target?: string
  readonly type?: 'tool' | 'prompt' | 'resource'
  /** Name or URI, as the server knows it. */
  readonly item?: string
  readonly session?: string
  /** Of the error that the client got, whoever made it. */
  readonly errorCode?: number
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
  /** Set where the request went to a backend of language models. */
  readonly model?: ModelFacts
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
  /** Messages of an MCP client that the request has brought; at least one. */
  readonly mcp?: readonly McpFacts[]
  /** Set where the picker of an InferencePool was asked. */
  readonly pool?: PoolFacts
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
  /** An endpoint is left out for a while; of a language model where an ejection is given. */
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
