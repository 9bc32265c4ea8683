/** Version 1. */
export interface BackendHttpConfig {
  readonly version?: 'HTTP1' | 'HTTP2'
  /** Milliseconds in which one attempt must give its whole response. */
  readonly requestTimeoutMs?: number
}
