import type { Socket } from 'node:net'
import type { GatewayError } from '../../../ground/errors/index.ts'
import type { BodyKind } from '../bytes/body-kind.ts'
import type { BodySink } from '../bytes/body-sink.ts'
import type { TunnelEnd } from '../bytes/tunnel.ts'
import type { FramingFields } from '../message/head-output.ts'
import type { MessageBody } from '../message/message-body.ts'
import type { RequestHeadView } from '../message/request-head.ts'
import type { ResponseHeadView } from '../message/response-head.ts'
import type { ClientConnection } from './connections.ts'

/** Serves a request: an exchange, which is called for everything that happens at the client. */
export interface DownstreamHandler {
  readonly request: RequestHeadView
  readonly responseHead: ResponseHeadView
  /** The bodies as they arrive: the request's from the client, the response's from the upstream. */
  readonly requestSource: MessageBody
  readonly responseSource: MessageBody
  /** Bytes of the request body and of the response body on the client connection so far. */
  readonly requestBytes: number
  readonly responseBytes: number
  /** Time of the end in milliseconds of the engine's clock; 0 before the end. */
  readonly endedAt: number
  /** Called when the head of the request has been loaded into `request`. */
  begin(client: DownstreamStream, body: BodyKind): void
  onBadRequestBody(error: GatewayError): void
  /** Called when the client sends its body before it received 100 (Continue). */
  onUnaskedBody(): void
  /** Called when everything that was written has been sent. */
  onClientDrain(): void
  /** Called when the client is gone. `error` is set if the gateway closed the connection because of it. */
  onClientGone(error?: GatewayError): void
  /** Called for bytes that the client sends into a tunnel. */
  onClientTunnelBytes(bytes: Buffer, start: number, end: number): void
  onClientTunnelEnd(): void
  /** Called when the downstream stream no longer uses this object, which may then serve another request. */
  recycle(): void
}

/**
 * One request and its response on the side of the client: a connection of HTTP/1.1 while it serves
 * the request, or a stream of HTTP/2. Heads are given as text of HTTP/1.1.
 */
export interface DownstreamStream {
  readonly connection: ClientConnection
  /** Receives the body of the response. */
  readonly sink: BodySink
  /** Whether the stream frames bodies itself (HTTP/2), so that chunked coding must not be written. */
  readonly framesBodies: boolean
  /** Whether written bytes still wait to be sent. */
  readonly needsDrain: boolean
  /** The socket that may still reference bytes after they were written; undefined if they were copied. */
  readonly bufferHolder: Socket | undefined
  /** Whether the 100 (Continue) of this request has been sent, or will never be sent. */
  hasContinued: boolean
  /** Whether the client waits for 100 (Continue) before it sends its body. */
  readonly awaitsContinue: boolean
  /** Whether the connection closes after this response; only used by HTTP/1.1. */
  mustClose: boolean
  /** Called when the body of the request is wanted, or wanted again. */
  wantBody(): void
  /** Sends a 1xx head, passed without its empty line. */
  sendInterim(head: string): void
  /** Writes the head of the response; `flush` sends it. */
  sendResponse(head: ResponseHeadView, framing: FramingFields, exchange: DownstreamHandler): void
  /**
   * Takes back the response, so that another one can be written. Returns false if a part of it may have
   * been sent.
   */
  takeBack(): boolean
  /**
   * Switches to a tunnel. `head` is that of the 101 response, which selects `protocol`, or that of a
   * response to CONNECT, which selects none.
   */
  startTunnel(head: string, protocol: string | undefined): TunnelEnd
  /** Called when the tunnel is ready for the client's bytes. */
  openTunnel(): void
  /** Called when one side of the tunnel has ended its stream; limits the time for the other side. */
  limitTunnel(): void
  /**
   * Breaks off a response that was sent in part, so that the client notices. `isRaw`: only the end of the
   * connection ends the content, as in tunnels.
   */
  cut(isRaw: boolean): void
  /** Called once for each exchange, when it has ended. */
  exchangeOver(exchange: DownstreamHandler): void
}
