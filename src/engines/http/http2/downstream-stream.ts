import { GatewayError } from '../../../ground/errors/index.ts'
import { isGrpc } from '../../../ground/exchange/grpc.ts'
import type { BodyKind } from '../bytes/body-kind.ts'
import type { TunnelEnd } from '../bytes/tunnel.ts'
import type { ClientConnection } from '../contracts/connections.ts'
import type { DownstreamHandler, DownstreamStream } from '../contracts/downstream.ts'
import { BodyPace } from '../message/body-pace.ts'
import type { FramingFields } from '../message/head-output.ts'
import type { MessageBody } from '../message/message-body.ts'
import type { ResponseHeadView } from '../message/response-head.ts'
import { dateLine } from '../message/status-line.ts'
import { errorCodes } from './frames.ts'
import { Http2Stream, type StreamSession } from './http2-stream.ts'

const httpVersion = 'HTTP/1.1'

/** The members of a client connection that its streams use. */
interface ClientSession extends StreamSession, ClientConnection {
  /** Called when the exchange of a stream has ended. */
  exchangeOver(): void
}

/** State of a response that waits for its client. */
class Stall {
  /** `sentBytes` at the last check; -1 before the first one. */
  sentBytes = -1
  /** Time in milliseconds of the check that first found no progress. */
  since = 0
  isStalled = false
}

/** One request of a client and its response. */
export class Http2DownstreamStream extends Http2Stream<ClientSession> implements DownstreamStream {
  readonly framesBodies = true
  readonly bufferHolder = undefined
  hasContinued = false
  mustClose = false
  #exchange: DownstreamHandler | undefined
  /** `moved` at the session's last check. */
  progress = -1
  readonly stall = new Stall()
  readonly pace = new BodyPace()
  #isAnswered = false

  get connection(): ClientConnection {
    return this.session
  }

  get needsDrain(): boolean {
    return this.output.needsDrain
  }

  /** Octets of the response data that have been sent. */
  get sentBytes(): number {
    return this.output.sentBytes
  }

  protected get body(): MessageBody | undefined {
    return this.#exchange?.requestSource
  }

  /** Whether the client still has to send data, or to open the window for ours. */
  get awaitsClient(): boolean {
    return !this.isReceiveClosed || this.backlog > 0
  }

  /** Octets that were received or sent. */
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

  /** Responds without an exchange. `head` is passed without its empty line. */
  respond(head: string, body: string): void {
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
    this.pace.pause()
    if (this.awaitsContinue) {
      this.hasContinued = true
      this.sendInterim(`${httpVersion} 100 \r\n`)
    }
    this.resumeReceiving()
  }

  /** Whether the pace of the body is checked. gRPC calls may be silent for any time between messages. */
  get isPaced(): boolean {
    if (this.#exchange === undefined || this.isReceiveClosed || this.#isAnswered) return false
    return !isGrpc(this.#exchange.request.fields.get('content-type'))
  }

  /** Whether more of the body would be accepted now. */
  get wantsBody(): boolean {
    return this.#exchange?.requestSource.wantsBytes === true
  }

  onSlowBody(): void {
    this.#exchange?.onBadRequestBody(new GatewayError('request_body_timeout'))
  }

  protected onFed(): void {
    // The exchange is notified by the body itself.
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

  sendResponse(head: ResponseHeadView, framing: FramingFields): void {
    this.#isAnswered = true
    this.output.setHead(head.text(framing))
  }

  takeBack(): boolean {
    if (!this.output.takeBack()) return false
    this.#isAnswered = false
    return true
  }

  onSendDrain(): void {
    this.#exchange?.onClientDrain()
  }

  onSendEnd(): void {
    if (this.#exchange === undefined) this.#endStream()
  }

  cut(isRaw: boolean): void {
    // A tunnel that breaks off is reported as RFC 9113 8.5 asks.
    this.session.reset(this, isRaw ? errorCodes.connect : errorCodes.internal)
  }

  exchangeOver(exchange: DownstreamHandler): void {
    this.#exchange = undefined
    this.#endStream()
    exchange.recycle()
    this.session.exchangeOver()
  }

  /** Ends the stream, because its response has ended or will not be completed. */
  #endStream(): void {
    if (!this.output.isClosed) this.session.reset(this, errorCodes.cancel)
    else if (this.isReceiveClosed) this.session.forget(this)
    // The rest of the request is not needed (RFC 9113 8.1).
    else this.session.reset(this, errorCodes.noError)
  }

  /** Aborts the stream because its client does not read the response. */
  drop(): void {
    this.session.reset(this, errorCodes.cancel)
    this.#exchange?.onClientGone()
  }

  // --- the tunnel ---

  /** Accepts a CONNECT with 200; an extended one in place of the 101 of an upgrade (RFC 8441 4). */
  startTunnel(head: string, _protocol: string | undefined): TunnelEnd {
    const fields = head.slice(head.indexOf('\r\n') + 2)
    const kept = fields.replace(/^(?:sec-websocket-accept|content-length):.*\r\n/gim, '')
    const date = /^date:/im.test(kept) ? '' : dateLine()
    this.output.setHead(`${httpVersion} 200 \r\n${kept}${date}`)
    this.output.flush()
    return this.tunnelEnd
  }

  openTunnel(): void {
    this.tunnelEnd.open()
  }

  limitTunnel(): void {
    // A waiting stream costs little, and the session aborts streams without progress.
  }

  onTunnelBytes(bytes: Buffer, start: number, end: number): void {
    this.#exchange?.onClientTunnelBytes(bytes, start, end)
  }

  onTunnelEnd(): void {
    this.#exchange?.onClientTunnelEnd()
  }
}
