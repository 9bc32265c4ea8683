import type { Socket } from 'node:net'
import type { GatewayError } from '../../errors/index.ts'
import type { BodySink } from '../bytes/body-sink.ts'
import type { TunnelEnd } from '../bytes/tunnel.ts'
import type { FramingFields } from '../message/head-output.ts'
import type { MessageBody } from '../message/message-body.ts'
import type { RequestHeadView } from '../message/request-head.ts'
import type { ResponseHeadView } from '../message/response-head.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'

/** Sends a request and receives its response: an exchange, a mirror or a call of the gateway's own. */
export interface UpstreamHandler {
  readonly response: ResponseHeadView | undefined
  readonly responseHead: ResponseHeadView
  readonly responseSource: MessageBody
  /** The response to HEAD has no body. */
  readonly isHead: boolean
  /** The protocol that the request asked to switch to. */
  readonly upgrade: string | undefined
  /** The client socket that may still reference the stream's read buffer after bytes were written to it. */
  readonly bufferHolder: Socket | undefined
  /** The request has been written to its end. */
  readonly isRequestSent: boolean
  /** The connection leads to another address of the name than the one that was asked for. */
  onAlternateAddress(address: UpstreamAddress): void
  onUpstreamReady(stream: UpstreamStream): void
  /** A 1xx response other than 101 lies in `responseHead`. */
  onInterim(): void
  onResponseHead(stream: UpstreamStream): void
  /** Bytes of the body have been fed, perhaps the last ones (`responseSource.ended`). */
  onResponseBody(stream: UpstreamStream): void
  /** What came with the head has been fed: what was written can leave. */
  onReadEnd(): void
  /** Nothing more comes from this stream, which is closed already. */
  onUpstreamFailure(stream: UpstreamStream, error: GatewayError): void
  onUpstreamDrain(): void
  /** Bytes of a tunnel. */
  onTunnelBytes(bytes: Buffer, start: number, end: number): void
  onTunnelEnd(): void
}

/**
 * One request at an upstream: a connection of HTTP/1.1 while it serves the request, or a stream of
 * HTTP/2.
 */
export interface UpstreamStream {
  /** The body of the request goes here. */
  readonly sink: BodySink
  /** The upstream frames bodies itself: chunked coding must not be written. */
  readonly framesBodies: boolean
  /** May be given to `use` at once. */
  readonly isIdle: boolean
  /** The upstream has certainly not looked at the request: it may be sent again, whatever it is. */
  readonly isUnprocessed: boolean
  /** Requests that this connection answered before. */
  readonly served: number
  /** A byte of the current response has arrived. */
  readonly hasAnswered: boolean
  /** The tick of the event loop in which a write has failed, if one has. */
  readonly lostTick: number | undefined
  /** Connections in the order in which they were begun. */
  readonly serial: number
  /** Bytes that were written and have not left. */
  readonly backlog: number
  readonly tunnelEnd: TunnelEnd
  /** A client socket still references the read buffer: it must not be reused. */
  isPinned: boolean
  /** Begins; `onUpstreamReady` follows at once. */
  use(handler: UpstreamHandler): void
  /**
   * A whole head as HTTP/1.1 has it, with its empty line. `sensitiveNames`: fields that are to be in
   * no table of HPACK.
   */
  sendHead(head: string, sensitiveNames?: ReadonlySet<string>): void
  /** The same for a head that was received. `expects`: 100 (Continue) before the body is sent. */
  sendRequest(
    request: RequestHeadView,
    framing: FramingFields,
    upgrade: string | undefined,
    expects: boolean,
  ): void
  /** The handler wants (more of) the body. */
  resumeBody(): void
  /** Reads no more for now. */
  pause(): void
  /** From now on bytes are copied both ways. */
  startTunnel(): void
  /** The response is complete. `now`: the time, if the caller knows it. */
  release(now?: number): void
  /** Gives the request up; the handler is not called again. */
  close(): void
}

/** Finds a stream for a request: on a kept connection or a new one. */
export interface UpstreamSource {
  /**
   * Finds or makes a connection; `onUpstreamReady` follows, at once if it was idle. With `after`, only
   * a connection younger than that stream's is used. Throws `overloaded` if none can be made.
   */
  acquire(
    address: UpstreamAddress,
    handler: UpstreamHandler,
    options: ConnectOptions,
    after: UpstreamStream | undefined,
  ): UpstreamStream
}
