/** What bounds the connections of a port, their requests, and what is forwarded unread. */
import { defaultHttp2Limits, type Http2Limits } from './http2-limits.ts'

/** `keep`: as any other. `drop`: as if they were not there. `refuse`: the request is answered 400. */
type UnderscoreHeaders = 'keep' | 'drop' | 'refuse'

export interface EngineLimits {
  /** Most header fields of a request head of HTTP/1.1; of HTTP/2 the bytes alone count. */
  maxHeaders: number
  /** Most bytes of a request or response head. */
  maxHeadBytes: number
  /** Closes a kept-alive connection of HTTP/1.1 without a request, and a head that does not arrive. */
  idleTimeoutMs: number
  headTimeoutMs: number
  /** Closes a connection on which a request makes no progress, and one of HTTP/2 without a request. */
  stallTimeoutMs: number
  /** From the accepted connection to the end of the TLS handshake. */
  handshakeTimeoutMs: number
  /** Lowest speed of the body of a request, while it is read and not answered yet; 0 = none. */
  minBodyBytesPerSecond: number
  /** What becomes of header fields with `_` in their names. */
  underscoreHeaders: UnderscoreHeaders
  http2: Http2Limits
}

/** Limits of what is forwarded as it is. */
export interface StreamLimits {
  /** A connection on which nothing moves is reset. */
  idleTimeoutMs: number
  /** A session without datagrams is forgotten. */
  udpIdleTimeoutMs: number
  /** Sessions of one engine; datagrams that would begin another one are dropped. */
  udpMaxSessions: number
}

export const defaultLimits: EngineLimits = {
  maxHeaders: 100,
  maxHeadBytes: 16 * 1024,
  idleTimeoutMs: 600_000,
  headTimeoutMs: 30_000,
  stallTimeoutMs: 600_000,
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
