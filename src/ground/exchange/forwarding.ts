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
  /** Whether the route leads to model providers, so that keys may be where the SDKs of providers put them. */
  isModelRoute: 'forward.isModelRoute',
  /** A RetryPlan; if omitted, a request is not retried. */
  retry: 'forward.retry',
} as const

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
