import type { FloodKind } from '../limits/http2-floods.ts'
import type { RaceCounters } from '../sockets/connection-race.ts'

/** Counters of the engine, read when metrics are scraped. */
export interface EngineCounters extends RaceCounters {
  connectionsTotal: number
  connectionsOpen: number
  receivedBytes: number
  sentBytes: number
  /** The next four count the TLS part of the four counters above. */
  tlsConnectionsTotal: number
  readonly tlsConnectionsOpen: number
  readonly tlsReceivedBytes: number
  readonly tlsSentBytes: number
  /** Number of handshakes that resumed a session. */
  tlsSessionsResumed: number
  tlsHandshakesFailed: number
  /** HTTP/2 streams that were dropped or refused, because their client did not read responses. */
  http2StreamsStalled: number
  http2StreamsRefused: number
  /** Connections that were dropped because they had no PROXY header. */
  proxyHeadersRefused: number
  /** Connections that were dropped because the maximum was reached. */
  connectionsRefused: number
  /** Connections that were dropped because rules about their addresses refuse them. */
  connectionsUnauthorized: number
  upstreamConnectionsTotal: number
  upstreamConnectionsOpen: number
  /** Tunnels of CONNECT requests that are open or being opened. */
  tunnelsOpen: number
  /** Number of read buffers of upstream connections in use. */
  readonly readBuffersInUse: number
  badHeads: number
  /** Open client connections that speak HTTP/2, and their open streams. */
  http2Connections: number
  http2Streams: number
  /** HTTP/2 connections that were closed because the peer exceeded a limit, by the kind of limit. */
  readonly http2Floods: Record<FloodKind, number>
  coreTraps: number
}

/** State of the connections to one address, of HTTP/1.1 and HTTP/2 together. */
export interface PoolState {
  /** The address as `host:port`. */
  readonly endpoint: string
  idle: number
  /** Number of connections that serve a request or are being made. */
  busy: number
  /** Number of requests under way in HTTP/2. */
  streams: number
}
