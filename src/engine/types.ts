/**
 * The seam between the I/O engine (sockets, framing, pools, timers) and the data plane (routing,
 * policies, logging). The engine owns bytes and connections and knows no configuration; the data
 * plane decides and never touches a socket.
 *
 *   engine:  head read ----> onRequest        forward ----> upstream head ----> onResponse
 *   plane:                   respond | forward                                  relay | respond
 *   engine:  anything breaks before the response head is sent ----> onError ----> respond
 *   engine:  last byte sent, or the connection is gone ----> onDone (exactly once)
 */

import type { GatewayError } from '../errors.ts'
import type { KeepaliveSettings } from '../exchange/connection.ts'
import type { ChosenBackend, Exchange, FieldPair, Peer, RoutePlace } from '../exchange/exchange.ts'
import type { FloodKind } from './http2/flood-guard.ts'
import type { Http2Limits } from './http2/limits.ts'
import type { RaceCounters } from './socket/connection-race.ts'
import type { StreamCounters } from './streams/stream-types.ts'
import type { ChooseTls, TlsChoice } from './tls/tls-choice.ts'
import type { CallListener, CallRequest, OpenCall } from './upstream/call.ts'
import type { AddressRace, ConnectOptions, UpstreamAddress } from './upstream/upstream-address.ts'

export interface ForwardOptions extends ConnectOptions {
  /** Milliseconds for this attempt, whole response; 0 = none. */
  readonly attemptTimeoutMs: number
  /** Milliseconds for the whole exchange since the first forward, body included; 0 = none. */
  readonly requestTimeoutMs: number
}

/** Bytes from `start` up to `end`; they belong to the connection and are gone after the call. */
export type TunnelWatcher = (bytes: Buffer, start: number, end: number) => void

/** How the exchange ended, for the log. */
export type Ending = 'complete' | 'client-closed' | 'upstream-cut' | 'timeout'

/** A response of the gateway's own whose body comes bit by bit. */
export interface ResponseStream {
  /** The client reads slowly: what is written waits in memory until `onDrain`. */
  readonly isSlow: boolean
  /** The client has read what was written. */
  onDrain: (() => void) | undefined
  /** The bytes must stay as they are. Nothing happens once the exchange is over. */
  write(bytes: Buffer): void
  /** The response is complete. */
  end(): void
}

/**
 * One request on one connection. Objects are reused between requests of a connection: nothing may
 * keep one after onDone.
 */
export interface ServerExchange extends Exchange {
  /** Port of the listener that accepted the connection. */
  readonly port: number
  /** What was chosen at the handshake; undefined where the connection is plaintext. */
  readonly tls: TlsChoice | undefined
  /** Bytes of bodies, as sent on the client connection. */
  readonly requestBytes: number
  readonly responseBytes: number
  /** Status that was sent to the client; 0 before. */
  readonly sentStatus: number
  /** Whose answer the client got. */
  readonly answeredBy: 'gateway' | 'upstream' | 'nobody'
  readonly ending: Ending | undefined
  /** When it was over, as `startedAt`; 0 before. */
  readonly endedAt: number
  /** The error that the exchange met last, if any. */
  readonly error: GatewayError | undefined
  /** Set by the data plane, to an object it shares between requests; reset by the engine. */
  place: RoutePlace
  backend: ChosenBackend | undefined
  bufferLimit: number
  /** Who a trusted proxy says the client is; set by the data plane, reset by the engine. */
  forwardedFor: Peer | undefined
  /** Scratch of the data plane for this exchange; cleared by the engine between requests. */
  state: unknown
  /** The head as it stands in the WASM core's record right now; valid only inside onRequest, synchronously. */
  readonly headIsFresh: boolean
  /** Names, in lower case, of the fields that are still there as the client sent them. */
  receivedNames(): ReadonlySet<string>
  /**
   * Removes fields of the request as the client sent them, by their lower-case names, and returns
   * them. What was set since, by a policy or a filter, stays.
   */
  takeFields(isTaken: (name: string) => boolean): readonly FieldPair[]
  /** Another forward can still send the whole request. */
  readonly isReplayable: boolean
  /** Answers without an upstream; body framing, Date and HEAD rules are the engine's. */
  respond(
    status: number,
    headers: readonly (readonly [string, string])[],
    body: string | Uint8Array | undefined,
  ): void
  /**
   * The same where the body comes bit by bit; undefined where the client has gone. Throws
   * `filter_failed` where a header is not HTTP.
   */
  respondStream(
    status: number,
    headers: readonly (readonly [string, string])[],
  ): ResponseStream | undefined
  /** Sends the request (with all edits made so far) to the address. */
  forward(address: UpstreamAddress, options: ForwardOptions): void
  /** Sends the upstream's response (with all edits made so far) to the client. */
  relay(): void
  /** Inside onResponse: the head stays readable until onDone. */
  keepResponseHead(): void
  /** Where the request ends in a tunnel: sees what the upstream sends, during the call alone. */
  watchTunnel(watcher: TunnelWatcher): void
  /** Sends a copy of head and body to another address and forgets the answer; before forward. */
  mirror(address: UpstreamAddress, race?: AddressRace): void
}

export interface RequestHandler {
  /** Ends, now or later, in exactly one respond or forward. Must not throw. */
  onRequest(exchange: ServerExchange): void
  /** Ends, now or later, in exactly one relay, respond or forward (a retry). Must not throw. */
  onResponse(exchange: ServerExchange): void
  /** Nothing has been sent to the client; ends in one respond (or one more forward: a retry). */
  onError(exchange: ServerExchange, error: GatewayError): void
  /**
   * The connection for a forward is made to another address of the name than the one that was
   * asked for. Decides nothing, and must not throw.
   */
  onElsewhere?(exchange: ServerExchange, address: UpstreamAddress): void
  /** The exchange is over; also called when it never reached onRequest's end. */
  onDone(exchange: ServerExchange): void
  /** A head that could not be read; the engine answers with the catalogue row and closes. */
  onBadHead(port: number, error: GatewayError, peer: Peer, scheme: 'http' | 'https'): void
}

/** `keep`: as any other. `drop`: as if they were not there. `refuse`: the request is answered 400. */
export type UnderscoreHeaders = 'keep' | 'drop' | 'refuse'

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

/** What may change of a port while it is bound. */
export interface PortChange {
  /** What is absent has its default again. */
  readonly limits: Partial<EngineLimits>
  readonly keepalive?: KeepaliveSettings
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
  /** A request of the data plane's own; what goes wrong is told to the listener, never inside. */
  call(request: CallRequest, listener: CallListener): OpenCall
  /** Closes everything at once. */
  close(): void
}
