/** What policies may ask of the step that forwards a request, as keys of `Exchange.facts`. */
export const forwardingFacts = {
  /** Milliseconds from the first attempt to the end of the response; 0 = no limit. */
  requestTimeoutMs: 'forward.requestTimeoutMs',
  /** A HostRewriteMode; absent: Auto for hostname destinations, None for Services and addresses. */
  hostRewrite: 'forward.hostRewrite',
  /** A SigningScope: what signatures are good for, where the host does not tell; absent: it does. */
  signingScope: 'forward.signingScope',
  /** A FieldPair: the client's own credential for the chosen model provider, for `passthrough`. */
  clientCredential: 'forward.clientCredential',
  /** True if the route of the request leads to model providers: keys may be where their SDKs put them. */
  isModelRoute: 'forward.isModelRoute',
  /** A RetryPlan; absent: a request is sent once. */
  retry: 'forward.retry',
} as const

/** What is sent again, and how often (Gateway API HTTPRouteRetry). */
export interface RetryPlan {
  /** Statuses of responses after which a request is sent again; failed connections always count. */
  readonly codes: readonly number[]
  /** How often a request is sent again at most. */
  readonly attempts: number
  /** Shortest time in milliseconds before a request is sent again; 0 = at once. */
  readonly backoffMs: number
}

/** What a signature of a request is good for (AWS Signature Version 4). */
export interface SigningScope {
  /** Such as `us-east-1`. */
  readonly region: string
  /** The name that the service signs by, such as `bedrock`. */
  readonly service: string
}

/** Auto: Host names the destination. None: the client's Host is kept. */
export type HostRewriteMode = 'Auto' | 'None'
