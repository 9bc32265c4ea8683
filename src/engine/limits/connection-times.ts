/** How long connections to upstreams may take to be made, and are kept. */

const defaultConnectTimeoutMs = 10_000
/** Milliseconds for which a connection without requests is kept. */
export const idleTimeoutMs = 90_000

/** Milliseconds until a connection must stand; 0 = the default. */
export const connectTimeout = (ms: number): number => (ms > 0 ? ms : defaultConnectTimeoutMs)
