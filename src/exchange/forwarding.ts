/** What policies may ask of the step that forwards a request, as keys of `Exchange.facts`. */
export const forwardingFacts = {
  /** Milliseconds from the first attempt to the end of the response; 0 = no limit. */
  requestTimeoutMs: 'forward.requestTimeoutMs',
  /** A HostRewriteMode; absent: Auto for hostname destinations, None for Services and addresses. */
  hostRewrite: 'forward.hostRewrite',
} as const

/** Auto: Host names the destination. None: the client's Host is kept. */
export type HostRewriteMode = 'Auto' | 'None'
