import type { Socket } from 'node:net'
import { GatewayError } from '../../errors/index.ts'
import type { Peer } from '../../exchange/exchange.ts'
import { isGrpc } from '../../exchange/grpc.ts'
import type { TunnelEnd } from '../bytes/tunnel.ts'
import type { DownstreamHandler, DownstreamStream } from '../contracts/downstream.ts'
import { BodyPace } from '../message/body-pace.ts'
import type { FramingFields } from '../message/head-output.ts'
import type { BodyKind, MessageBody } from '../message/message-body.ts'
import type { ResponseHeadView } from '../message/response-head.ts'
import type { ConnectionAddresses } from '../sockets/connection-ends.ts'
import type { Transport } from '../sockets/transport.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'
import { errorCodes } from './frames.ts'
import { Http2Stream, type StreamSession } from './http2-stream.ts'
import { Stall } from './stalled-streams.ts'
import type { StreamOutput } from './stream-output.ts'

const httpVersion = 'HTTP/1.1'

/** What such a stream needs from its connection as well. */
interface ClientSession extends StreamSession {
  readonly transport: Transport
  readonly port: number
  readonly tls: TlsChoice | undefined
  readonly ends: ConnectionAddresses
  /** The exchange of a stream has ended. */
  exchangeOver(): void
}

/** One request of a client and its response. */
export class Http2DownstreamStream extends Http2Stream implements DownstreamStream {
  readonly #server: ClientSession
  readonly framesBodies = true
  readonly bufferHolder = undefined
  hasContinued = false
  mustClose = false
  #exchange: DownstreamHandler | undefined
  /** Octets moved both ways when the session looked last. */
  progress = -1
  readonly stall: Stall = new Stall()
  readonly pace: BodyPace = new BodyPace()
  #isAnswered = false

  constructor(session: ClientSession, id: number, sendWindow: number, receiveWindow: number) {
    super(session, id, sendWindow, receiveWindow)
    this.#server = session
  }

  get port(): number {
    return this.#server.port
  }

  get tls(): TlsChoice | undefined {
    return this.#server.tls
  }

  get source(): Peer {
    return this.#server.ends.source
  }

  get local(): Peer {
    return this.#server.ends.local
  }

  get socket(): Socket {
    return this.#server.transport.socket
  }

  get sink(): StreamOutput {
    return this.output
  }

  get needsDrain(): boolean {
    return this.output.needsDrain
  }

  get backlog(): number {
    return this.output.backlog
  }

  get sentBytes(): number {
    return this.output.sentBytes
  }

  protected get body(): MessageBody | undefined {
    return this.#exchange?.requestSource
  }

  /** Something is still to come from the client: data, or room for ours. */
  get awaitsClient(): boolean {
    return !this.isReceiveClosed || this.backlog > 0
  }

  get moved(): number {
    return this.#exchange === undefined
      ? this.receivedBytes - this.backlog
      : this.receivedBytes + this.#exchange.responseBytes - this.backlog
  }

  // --- the request ---

  begin(exchange: DownstreamHandler, body: BodyKind): void {
    this.#exchange = exchange
    if (body === 'stream') this.expect(exchange.request.contentLength)
    exchange.begin(this, body)
  }

  /** An answer without an exchange. `head`: without its empty line. */
  answer(head: string, body: string): void {
    this.output.setHead(head)
    this.output.appendText(body)
    this.output.end()
  }

  get awaitsContinue(): boolean {
    if (this.#exchange?.request.expectsContinue !== true || this.hasContinued) return false
    return !this.isReceiveClosed && this.receivedBytes === 0
  }

  override onData(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    super.onData(bytes, start, end, isLast)
    this.#onUnasked()
  }

  override endReceiving(trailers: string): void {
    super.endReceiving(trailers)
    this.#onUnasked()
  }

  #onUnasked(): void {
    const exchange = this.#exchange
    if (exchange?.request.expectsContinue === true) exchange.onUnaskedBody()
  }

  wantBody(): void {
    if (this.#exchange === undefined) return
    this.pace.rest()
    if (this.awaitsContinue) {
      this.hasContinued = true
      this.sendInterim(`${httpVersion} 100 \r\n`)
    }
    this.resumeReceiving()
  }

  /** Calls of gRPC may be silent for as long as they like: their bodies are messages of a dialogue. */
  get isPaced(): boolean {
    if (this.#exchange === undefined || this.isReceiveClosed || this.#isAnswered) return false
    return !isGrpc(this.#exchange.request.fields.get('content-type'))
  }

  get wantsBody(): boolean {
    return this.#exchange?.requestSource.wantsBytes === true
  }

  onSlowBody(): void {
    this.#exchange?.onBadRequestBody(new GatewayError('request_body_timeout'))
  }

  protected onFed(): void {
    // The body notifies the exchange itself.
  }

  onBroken(error: GatewayError): void {
    this.#exchange?.onClientGone(error)
  }

  onReset(_code: number): void {
    this.#exchange?.onClientGone()
  }

  onSessionGone(_error: GatewayError): void {
    this.#exchange?.onClientGone()
  }

  // --- the response ---

  encodeHead(head: string): string {
    return this.session.output.encoder.response(head)
  }

  sendInterim(head: string): void {
    if (!this.output.isClosed) {
      this.session.output.writeHeaders(this.id, this.session.output.encoder.response(head), false)
    }
  }

  sendHead(head: string): void {
    this.#isAnswered = true
    this.output.setHead(head)
  }

  sendResponse(head: ResponseHeadView, framing: FramingFields): void {
    this.#isAnswered = true
    this.output.setHead(head.text(framing))
  }

  onSendDrain(): void {
    this.#exchange?.onClientDrain()
  }

  onSendEnd(): void {
    if (this.#exchange === undefined) this.#settle()
  }

  cut(_isCloseDelimited: boolean): void {
    this.session.reset(this, errorCodes.internal)
  }

  exchangeOver(exchange: DownstreamHandler): void {
    this.#exchange = undefined
    this.#settle()
    exchange.recycle()
    this.#server.exchangeOver()
  }

  /** The response is over, one way or the other: so is the stream. */
  #settle(): void {
    if (!this.output.isClosed) this.session.reset(this, errorCodes.cancel)
    else if (this.isReceiveClosed) this.session.forget(this)
    // The rest of the request is not needed (RFC 9113 8.1).
    else this.session.reset(this, errorCodes.noError)
  }

  // --- the tunnel ---

  /** What an upgrade answers with 101, an extended CONNECT answers with 200 (RFC 8441 4). */
  startTunnel(head: string, _protocol: string): TunnelEnd {
    const fields = head.slice(head.indexOf('\r\n') + 2)
    const kept = fields.replace(/^(?:sec-websocket-accept|content-length):.*\r\n/gim, '')
    this.output.setHead(`${httpVersion} 200 \r\n${kept}`)
    this.output.flush()
    return this.tunnelEnd
  }

  openTunnel(): void {
    this.tunnelEnd.open()
  }

  limitTunnel(): void {
    // A stream costs little while it waits, and the session looks after those that do not move.
  }

  onTunnelBytes(bytes: Buffer, start: number, end: number): void {
    this.#exchange?.onClientTunnelBytes(bytes, start, end)
  }

  onTunnelEnd(): void {
    this.#exchange?.onClientTunnelEnd()
  }
}
