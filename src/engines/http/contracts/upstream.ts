import type { Socket } from 'node:net'
import type { GatewayError } from '../../../ground/errors/index.ts'
import type { HttpVersion } from '../../../ground/exchange/connection.ts'
import type { BodySink } from '../bytes/body-sink.ts'
import type { TunnelEnd } from '../bytes/tunnel.ts'
import type { FramingFields } from '../message/head-output.ts'
import type { MessageBody } from '../message/message-body.ts'
import type { RequestHeadView } from '../message/request-head.ts'
import type { ResponseHeadView } from '../message/response-head.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'

/** Sends a request and receives its response. Implemented by exchanges, mirrors and the gateway's calls. */
export interface UpstreamHandler {
  readonly responseHead: ResponseHeadView
  readonly responseSource: MessageBody
  /** Whether the method is HEAD, so that the response has no body. */
  readonly isHead: boolean
  /** The protocols that the request asks to switch to, separated by commas; undefined if there are none. */
  readonly upgrade: string | undefined
  /** The client socket while it may still reference the stream's read buffer; otherwise undefined. */
  readonly bufferHolder: Socket | undefined
  /** Whether the request has been written completely. */
  readonly isRequestSent: boolean
  /** Called when the connection was made to another address of the name than the requested one. */
  onAlternateAddress(address: UpstreamAddress): void
  onUpstreamReady(stream: UpstreamStream): void
  /** Called when `responseHead` contains a 1xx response other than 101. */
  onInterim(): void
  onResponseHead(stream: UpstreamStream): void
  /** Called when the body got bytes, perhaps the last ones (`responseSource.ended`). */
  onResponseBody(stream: UpstreamStream): void
  /** Called after the bytes that came with the head were read, so that written bytes can be sent now. */
  onReadEnd(): void
  /** Called when this stream has failed; it is closed already. */
  onUpstreamFailure(stream: UpstreamStream, error: GatewayError): void
  onUpstreamDrain(): void
  /** Called for bytes that the upstream sends into a tunnel. */
  onTunnelBytes(bytes: Buffer, start: number, end: number): void
  onTunnelEnd(): void
}

/**
 * One request at an upstream: a connection of HTTP/1.1 while it serves the request, or a stream of
 * HTTP/2.
 */
export interface UpstreamStream {
  /** Receives the body of the request. */
  readonly sink: BodySink
  /** Whether the stream frames bodies itself (HTTP/2), so that chunked coding must not be written. */
  readonly framesBodies: boolean
  /** Whether `use` may be called at once. */
  readonly isIdle: boolean
  /** Whether the upstream has certainly not processed the request, so that any request may be resent. */
  readonly isUnprocessed: boolean
  /** Whether the upstream refused the request because of a limit that it had not announced before. */
  readonly wasOverLimit: boolean
  /** Number of earlier requests on the connection that got a response. */
  readonly served: number
  /** Whether a byte of the current response has arrived. */
  readonly hasResponded: boolean
  /** The tick of the event loop in which a write failed; undefined if none did. */
  readonly lostTick: number | undefined
  /** Number of the connection, in the order in which connections were begun. */
  readonly serial: number
  /** Number of written bytes that have not been sent yet. */
  readonly backlog: number
  readonly tunnelEnd: TunnelEnd
  /** Whether the connection of a tunnel was reset instead of closed. */
  readonly wasReset?: boolean
  /** Begins a request; `onUpstreamReady` is called at once. */
  use(handler: UpstreamHandler): void
  /**
   * Sends a whole head in the form of HTTP/1.1, with its empty line. Fields in `sensitiveNames` must not
   * enter an HPACK table.
   */
  sendHead(head: string, sensitiveNames?: ReadonlySet<string>): void
  /** Like `sendHead`, for a head that was received. `expects`: asks for 100 (Continue) before the body. */
  sendRequest(
    request: RequestHeadView,
    framing: FramingFields,
    upgrade: string | undefined,
    expects: boolean,
  ): void
  /** Called when the handler wants the body, or more of it. */
  resumeBody(): void
  /** Stops reading until the body is wanted again. */
  pause(): void
  /** Copies bytes both ways from now on. */
  startTunnel(): void
  /** Called by the handler when the response is complete. `now`: the time, if the caller knows it. */
  release(now?: number): void
  /** Abandons the request; the handler is not called again. */
  close(): void
}

/** Finds a stream for a request, on an existing connection or a new one. */
export interface UpstreamSource {
  /**
   * Finds or makes a connection and calls `onUpstreamReady`, at once if the connection was idle. With
   * `after`, only uses a connection that is younger than that stream's. Throws `overloaded` if none
   * can be made.
   */
  acquire(
    address: UpstreamAddress,
    handler: UpstreamHandler,
    options: ConnectOptions,
    after: UpstreamStream | undefined,
  ): UpstreamStream
}

/** Keeps the connections to one address. */
export interface ConnectionOwner<Connection> {
  readonly address: UpstreamAddress
  /** The last announced maximum of concurrent streams, assumed until a new connection announces one. */
  expectedStreams: number
  /** How many milliseconds a connection may stay idle, as far as that was learned from the server. */
  readonly idleLimitMs: number
  /** Called when the server has closed a connection that was idle since this time. */
  closedIdle(since: number): void
  /** Returns false if the version is negotiated and the server has not selected this one. */
  accepts(version: HttpVersion, socket: Socket): boolean
  /** Called when the connection can take requests. */
  keep(connection: Connection): void
  /** Called when the connection takes no requests for now, or never again. */
  forget(connection: Connection): void
  closed(connection: Connection): void
  /** Called when the connection was made to another address of the name. Returns its new owner. */
  moved(connection: Connection, address: UpstreamAddress): ConnectionOwner<Connection>
}
