import type { HeaderFields } from './exchange.ts'

/** Keys of `Exchange.extensions` that policies set to control how a request is forwarded. */
export const forwardingExtensions = {
  /** Timeout from the first attempt to the end of the response, in milliseconds; 0 means no limit. */
  requestTimeoutMs: 'forward.requestTimeoutMs',
  /**
   * `Auto`: Host is set to the destination; `None`: the client's Host is kept. If omitted, `Auto` for
   * hostname destinations, `None` for Services and addresses.
   */
  hostRewrite: 'forward.hostRewrite',
  /** A SigningScope; if omitted, it is derived from the host. */
  signingScope: 'forward.signingScope',
  /** A FieldPair: the credential that the client sent for the chosen model provider, for `passthrough`. */
  clientCredential: 'forward.clientCredential',
  /** The ClientKeys of the route's backends; omitted if their clients send keys in Authorization only. */
  clientKeys: 'forward.clientKeys',
  /** The AllowedModels of the client's API key; if omitted, it may use every model. */
  allowedModels: 'forward.allowedModels',
  /** A RetryPlan; if omitted, a request is not retried. */
  retry: 'forward.retry',
} as const

/** The models that a client may use. */
export interface AllowedModels {
  /** The names and patterns, as configured. */
  readonly patterns: readonly string[]
  allows(model: string): boolean
}

/** Places besides Authorization in which clients of a kind of backend may send their keys. */
export interface ClientKeys {
  /** Names of query parameters, in lower case. */
  readonly parameters: ReadonlySet<string>
  /** Returns the distinct keys in a request. */
  find(request: KeyedRequest): ReadonlySet<string>
  /** Removes all keys from a request. */
  remove(request: KeyedRequest): void
}

/** The parts of a request in which clients may send keys. */
export interface KeyedRequest {
  readonly headers: Pick<HeaderFields, 'getAll' | 'set' | 'remove'>
  query: string | undefined
}

/** Which requests are retried, and how often (Gateway API HTTPRouteRetry). */
export interface RetryPlan {
  /** Response statuses after which a request is retried. Failed connections are always retried. */
  readonly codes: readonly number[]
  /** Maximum number of retries. */
  readonly attempts: number
  /** Minimum time before a retry, in milliseconds; 0 means at once. */
  readonly backoffMs: number
}

/** The region and service for which a signature is valid (AWS Signature Version 4). */
export interface SigningScope {
  /** AWS region, such as `us-east-1`. */
  readonly region: string
  /** Name of the service in signatures, such as `bedrock`. */
  readonly service: string
}
