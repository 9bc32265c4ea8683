/** Limits of connections, of requests, and of streams that are forwarded unread. */

/** `keep` treats such fields as any other, `drop` ignores them, `refuse` responds to the request with 400. */
type UnderscoreHeaders = 'keep' | 'drop' | 'refuse'

export interface EngineLimits {
  /** Maximum number of header fields of an HTTP/1.1 request. HTTP/2 heads are limited by bytes only. */
  maxHeaders: number
  /** Maximum number of bytes of a request or response head. */
  maxHeadBytes: number
  /** Closes a kept-alive HTTP/1.1 connection without a request (idle), or an incomplete head (head). */
  idleTimeoutMs: number
  headTimeoutMs: number
  /** Closes a connection whose request makes no progress, and an HTTP/2 connection without a request. */
  stallTimeoutMs: number
  /** Milliseconds after which a client connection closes once its requests are done; 0 means no limit. */
  connectionDurationMs: number
  /** Milliseconds from the accepted connection to the end of the TLS handshake. */
  handshakeTimeoutMs: number
  /** Minimum speed of a request body while it is read and has no response yet; 0 disables the check. */
  minBodyBytesPerSecond: number
  /** How header fields with `_` in their names are treated. */
  underscoreHeaders: UnderscoreHeaders
  http2: Http2Limits
}

/** Limits of HTTP/2 client connections; a policy may set them for a listener. */
export interface Http2Limits {
  /** Maximum number of open streams of a client connection (SETTINGS_MAX_CONCURRENT_STREAMS). */
  maxConcurrentStreams: number
  /** Octets that may wait for one stream (SETTINGS_INITIAL_WINDOW_SIZE), and for a whole connection. */
  streamWindowBytes: number
  connectionWindowBytes: number
  /** Maximum size of a received frame: 16,384 to 16,777,215 (SETTINGS_MAX_FRAME_SIZE). */
  maxFrameBytes: number
  /** Maximum number of bytes of a request head; `EngineLimits.maxHeadBytes` if omitted. */
  maxHeadBytes?: number
  /** Milliseconds without a frame after which a PING is sent; 0 disables pings. */
  keepaliveIntervalMs: number
  /** Milliseconds to wait for the response to a PING before the connection is dropped. */
  keepaliveTimeoutMs: number
}

/** Unread data of all connections of one side, in octets. */
export interface ReceiveBudget {
  /** Unread data for which connection windows were reopened already. */
  unread: number
  /** Above this, a connection window is reopened only when data is read. */
  readonly limit: number
}

/** Limits of streams that are forwarded unread. */
export interface StreamLimits {
  /** Milliseconds without bytes after which a connection is reset. */
  idleTimeoutMs: number
  /** Milliseconds without datagrams after which a session ends. */
  udpIdleTimeoutMs: number
  /** Maximum number of sessions per engine; datagrams that would begin another one are dropped. */
  udpMaxSessions: number
}

export const defaultHttp2Limits: Http2Limits = {
  maxConcurrentStreams: 128,
  streamWindowBytes: 256 * 1024,
  connectionWindowBytes: 1024 * 1024,
  maxFrameBytes: 16_384,
  keepaliveIntervalMs: 0,
  keepaliveTimeoutMs: 20_000,
}

/**
 * Maximum unread data in octets, per worker, for which HTTP/2 connection windows are reopened before
 * the data is read: of clients, and of upstreams.
 */
const uploadBudgetBytes = 128 * 1024 * 1024
const responseBudgetBytes = 256 * 1024 * 1024

/** Returns empty budgets for both sides. */
export const receiveBudgets = (): {
  uploadBudget: ReceiveBudget
  responseBudget: ReceiveBudget
} => ({
  uploadBudget: { unread: 0, limit: uploadBudgetBytes },
  responseBudget: { unread: 0, limit: responseBudgetBytes },
})

export const defaultLimits: EngineLimits = {
  maxHeaders: 100,
  maxHeadBytes: 16 * 1024,
  idleTimeoutMs: 600_000,
  headTimeoutMs: 30_000,
  stallTimeoutMs: 600_000,
  connectionDurationMs: 0,
  handshakeTimeoutMs: 15_000,
  minBodyBytesPerSecond: 240,
  underscoreHeaders: 'keep',
  http2: defaultHttp2Limits,
}

export const defaultStreamLimits: StreamLimits = {
  idleTimeoutMs: 3_600_000,
  udpIdleTimeoutMs: 60_000,
  udpMaxSessions: 10_000,
}

/** How long a connection to an upstream is kept without requests, in milliseconds. */
export const idleTimeoutMs = 90_000

const defaultConnectTimeoutMs = 10_000

/** Returns the time limit in milliseconds for a connection to an upstream; 0 selects the default. */
export const connectTimeout = (ms: number): number => (ms > 0 ? ms : defaultConnectTimeoutMs)
