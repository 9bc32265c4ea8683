import type { Exchange, HeaderFields } from './exchange.ts'

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
  /** AllowedNames: the models that the client's API key may use; if omitted, every model. */
  allowedModels: 'forward.allowedModels',
  /** AllowedNames: the routes that it may use, as `namespace/name`; if omitted, every route. */
  allowedRoutes: 'forward.allowedRoutes',
  /** `http` or `https`: how the destination is reached. Set if its connection settings have `bindsTokens`. */
  upstreamScheme: 'forward.upstreamScheme',
  /** Whether a policy trusts the peer as a proxy; if omitted, the setting of the process decides. */
  trustsPeer: 'forward.trustsPeer',
  /** A RetryPlan; if omitted, a request is not retried. */
  retry: 'forward.retry',
} as const

/** The models or routes that a client may use. */
export interface AllowedNames {
  /** The names and patterns, as configured. */
  readonly patterns: readonly string[]
  allows(name: string): boolean
}

/** Maximum number of names and patterns that a refusal lists. */
const maxListed = 10

/** Writes what a client may use, for a refusal: `it may use gpt-4o*, best`. */
export function allowedText({ patterns }: AllowedNames): string {
  if (patterns.length === 0) return 'it may use none'
  const listed = patterns.slice(0, maxListed).join(', ')
  const others = patterns.length - maxListed
  return `it may use ${listed}${others > 0 ? ` and ${others} others` : ''}`
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
  /** Returns whether a response causes a retry although `codes` does not have its status. */
  isFailure?(exchange: Exchange): boolean
  /** Limits the retries of all requests with this plan. */
  readonly budget?: RetryBudget
}

/** Limits retries to a part of the requests. */
export interface RetryBudget {
  /** Takes a retry; returns false if the budget is used up. */
  take(): boolean
}

/** The region and service for which a signature is valid (AWS Signature Version 4). */
export interface SigningScope {
  /** AWS region, such as `us-east-1`. */
  readonly region: string
  /** Name of the service in signatures, such as `bedrock`. */
  readonly service: string
}
