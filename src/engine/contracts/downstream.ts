import type { Socket } from 'node:net'
import type { GatewayError } from '../../errors/index.ts'
import type { Peer } from '../../exchange/exchange.ts'
import type { BodySink } from '../bytes/body-sink.ts'
import type { TunnelEnd } from '../bytes/tunnel.ts'
import type { FramingFields } from '../message/head-output.ts'
import type { BodyKind, MessageBody } from '../message/message-body.ts'
import type { RequestHeadView } from '../message/request-head.ts'
import type { ResponseHeadView } from '../message/response-head.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'
import type { Ending } from './requests.ts'

/** Serves a request: an exchange. It is called for everything that happens at the client. */
export interface DownstreamHandler {
  readonly request: RequestHeadView
  readonly responseHead: ResponseHeadView
  /** Bodies as they come from their ends. */
  readonly requestSource: MessageBody
  readonly responseSource: MessageBody
  /** Bytes of bodies so far, as on the client connection. */
  readonly requestBytes: number
  readonly responseBytes: number
  readonly ending: Ending | undefined
  /** In milliseconds of the engine's clock; 0 before the end. */
  readonly endedAt: number
  /** The head of the request has been loaded into `request`. */
  begin(client: DownstreamStream, body: BodyKind): void
  onBadRequestBody(error: GatewayError): void
  /** The client sends its body although it was not asked for it with 100 (Continue). */
  onUnaskedBody(): void
  /** What was written has left. */
  onClientDrain(): void
  /** `error`: what the client did wrong, if the gateway has broken off for that. */
  onClientGone(error?: GatewayError): void
  /** Bytes of a tunnel. */
  onClientTunnelBytes(bytes: Buffer, start: number, end: number): void
  onClientTunnelEnd(): void
  /** The client does not need it any more: it may serve another request. */
  recycle(): void
}

/**
 * One request and its response on the side of the client: a connection of HTTP/1.1 while it serves
 * the request, or a stream of HTTP/2. Heads are given as text of HTTP/1.1.
 */
export interface DownstreamStream {
  readonly port: number
  readonly tls: TlsChoice | undefined
  readonly source: Peer
  readonly local: Peer
  /** The socket of the connection: the TLS socket if there is one. */
  readonly socket: Socket
  /** The body of the response goes here. */
  readonly sink: BodySink
  /** The client frames bodies itself: chunked coding must not be written. */
  readonly framesBodies: boolean
  /** Written bytes have not left yet. */
  readonly needsDrain: boolean
  /** The socket that may still reference bytes after they were written; `undefined` if they were copied. */
  readonly bufferHolder: Socket | undefined
  /** This request's 100 (Continue) has been sent, or none is to be. */
  hasContinued: boolean
  /** The client waits for 100 (Continue) before it sends its body. */
  readonly awaitsContinue: boolean
  /** Nothing follows this response on its connection; only HTTP/1.1 knows that. */
  mustClose: boolean
  /** The body of the request is wanted (again). */
  wantBody(): void
  /** A 1xx head, up to but without its empty line. */
  sendInterim(head: string): void
  /** The head of the response, up to but without its empty line; it leaves with `flush`. */
  sendHead(head: string, exchange: DownstreamHandler): void
  /** The same for a head that was received. */
  sendResponse(head: ResponseHeadView, framing: FramingFields, exchange: DownstreamHandler): void
  /** Switches to a tunnel: the head of a 101 and its protocol. */
  startTunnel(head: string, protocol: string): TunnelEnd
  /** The tunnel may now pass the client's bytes. */
  openTunnel(): void
  /** One side of the tunnel has ended its stream: the other one gets a while to do so. */
  limitTunnel(): void
  /** Part of a response was sent and the rest will not come: the client must see that. */
  cut(isCloseDelimited: boolean): void
  /** The exchange has ended; called once for each. */
  exchangeOver(exchange: DownstreamHandler): void
}

/** Where connections get an exchange for each request. */
export interface ExchangeSource {
  take(): DownstreamHandler
}
