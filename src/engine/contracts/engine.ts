/** The engine as the data plane holds it: ports, counters, calls of its own, and the end of it all. */
import type { KeepaliveSettings } from '../../exchange/connection.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import type { FloodKind } from '../limits/http2-floods.ts'
import type { RaceCounters } from '../sockets/connection-race.ts'
import type { ChooseTls } from '../tls/tls-choice.ts'
import type { CallListener, CallRequest, OpenCall } from './calls.ts'
import type { StreamCounters } from './streams.ts'

/** What may change of a port while it is bound. */
export interface PortChange {
  /** What is absent has its default again. */
  readonly limits: Partial<EngineLimits>
  readonly keepalive?: KeepaliveSettings
}

/** Counters the engine keeps; read when metrics are scraped. */
export interface EngineCounters extends RaceCounters {
  connectionsTotal: number
  connectionsOpen: number
  receivedBytes: number
  sentBytes: number
  /** The part of the four above that is TLS. */
  tlsConnectionsTotal: number
  readonly tlsConnectionsOpen: number
  readonly tlsReceivedBytes: number
  readonly tlsSentBytes: number
  /** Handshakes that took up a session from before. */
  tlsSessionsResumed: number
  tlsHandshakesFailed: number
  /** Streams of HTTP/2 that were given up, and refused, because their client did not take responses. */
  http2StreamsStalled: number
  http2StreamsRefused: number
  /** Connections that were dropped for want of a PROXY header. */
  proxyHeadersRefused: number
  /** Connections that were dropped because there are as many as may be. */
  connectionsRefused: number
  upstreamConnectionsTotal: number
  upstreamConnectionsOpen: number
  /** Buffers that connections to upstreams are read into, in use now. */
  readonly readBuffersInUse: number
  badHeads: number
  /** Client connections that speak HTTP/2, and their streams, open now. */
  http2Connections: number
  http2Streams: number
  /** HTTP/2 connections that were closed because the peer exceeded a limit of this kind. */
  readonly http2Floods: Record<FloodKind, number>
  coreTraps: number
}

/** Connections to one address at a moment, in HTTP/1.1 and HTTP/2 together. */
export interface PoolState {
  /** `host:port`. */
  readonly endpoint: string
  idle: number
  /** With a request under way, or being made. */
  busy: number
  /** Requests that are under way in HTTP/2. */
  streams: number
}

export interface Engine {
  readonly counters: EngineCounters
  readonly streamCounters: StreamCounters
  /** Connections to backends that are open now, by address. */
  poolStates(): readonly PoolState[]
  /**
   * Binds a port (0 = any) and resolves with the bound one; rejects with GatewayError
   * `port_in_use` (or the system's error as its cause). With `tls`, connections are TLS and nothing
   * else.
   */
  listen(port: number, limits?: Partial<EngineLimits>, tls?: ChooseTls): Promise<number>
  /**
   * Changes the settings of a port, bound or about to be: limits of open connections, too, and
   * keepalive of those that are accepted from now on.
   */
  configure(port: number, change: PortChange): void
  /** The same for connections that are forwarded as they are. */
  listenStream(port: number): Promise<number>
  /** Binds a UDP port. */
  listenDatagrams(port: number): Promise<number>
  /** Gives a UDP port back; its sessions end. */
  unlistenDatagrams(port: number): Promise<void>
  /**
   * Stops accepting on a port; open connections finish their request and close. Those that are
   * forwarded as they are go on: nothing could tell their ends in time.
   */
  unlisten(port: number): Promise<void>
  /**
   * Stops accepting everywhere after `minMs`, tells kept-alive clients to close from the start,
   * and resolves when the last exchange is done or `maxMs` have passed (then cuts).
   */
  drain(minMs: number, maxMs: number): Promise<void>
  /** Makes a request of the data plane's own. Failures reach the listener after the call returns. */
  call(request: CallRequest, listener: CallListener): OpenCall
  /** Closes everything at once. */
  close(): void
}
