import type { Socket } from 'node:net'
import type { GatewayError } from '../../errors.ts'
import type { BodySink } from '../bytes/body-sink.ts'
import type { TunnelEnd } from '../bytes/tunnel.ts'
import type { FramingFields } from '../message/head-output.ts'
import type { MessageBody } from '../message/message-body.ts'
import type { RequestHeadView } from '../message/request-head.ts'
import type { ResponseHeadView } from '../message/response-head.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'

/** Who sent the request that a link answers: an exchange or a mirror. */
export interface UpstreamUser {
  readonly response: ResponseHeadView | undefined
  readonly responseHead: ResponseHeadView
  readonly responseSource: MessageBody
  /** The response to HEAD has no body. */
  readonly isHead: boolean
  /** The protocol that the request asked to switch to. */
  readonly upgrade: string | undefined
  /** The client that may read from the link's buffer. */
  readonly borrower: Socket | undefined
  /** The request has been written to its end. */
  readonly isRequestSent: boolean
  /** The connection is made to another address of the name than the one that was asked for. */
  onElsewhere(address: UpstreamAddress): void
  onUpstreamReady(link: UpstreamLink): void
  /** A 1xx response other than 101 lies in `responseHead`. */
  onInterim(): void
  onResponseHead(link: UpstreamLink): void
  /** Bytes of the body have been fed, perhaps the last ones (`responseSource.ended`). */
  onResponseBody(link: UpstreamLink): void
  /** What came with the head has been fed: what was written can leave. */
  onReadEnd(): void
  /** Nothing more comes from this link, which is closed already. */
  onUpstreamFailure(link: UpstreamLink, error: GatewayError): void
  onUpstreamDrain(): void
  /** Bytes of a tunnel. */
  onTunnelBytes(bytes: Buffer, start: number, end: number): void
  onTunnelEnd(): void
}

/**
 * One request's place at an upstream, whatever protocol that speaks: a connection of HTTP/1.1 while
 * it serves one request, or a stream of HTTP/2.
 */
export interface UpstreamLink {
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
  /** The turn of the event loop in which a write has failed, if one has. */
  readonly lostTurn: number | undefined
  /** Connections in the order in which they were begun. */
  readonly serial: number
  /** Bytes that were written and have not left. */
  readonly backlog: number
  readonly tunnelEnd: TunnelEnd
  /** A client still reads from the read buffer: nobody else may get it. */
  isLent: boolean
  /** Begins; `onUpstreamReady` follows at once. */
  use(user: UpstreamUser): void
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
  /** The user wants (more of) the body. */
  resumeBody(): void
  /** Reads no more for now. */
  pause(): void
  /** From now on bytes are copied both ways. */
  startTunnel(): void
  /** The user has done with a complete response. `now`: what the clock says, where somebody knows. */
  release(now?: number): void
  /** Gives the request up; the user hears nothing more. */
  close(): void
}

/** Where links come from: connections that are kept, and new ones. */
export interface LinkSource {
  /**
   * Finds or makes a connection; `onUpstreamReady` follows, at once where one was idle. `after`: the
   * connection is not to be older than that link's. Throws `overloaded` where none can be made.
   */
  acquire(
    address: UpstreamAddress,
    user: UpstreamUser,
    options: ConnectOptions,
    after: UpstreamLink | undefined,
  ): UpstreamLink
}
