import { hash } from 'node:crypto'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { BodyKind } from '../bytes/body-kind.ts'
import type { UpstreamHandler, UpstreamStream } from '../contracts/upstream.ts'
import type { FramingFields } from '../message/head-output.ts'
import { interimLimit } from '../message/head-reader.ts'
import type { MessageBody } from '../message/message-body.ts'
import type { RequestHeadView } from '../message/request-head.ts'
import type { UpstreamAddress } from '../sockets/upstream-address.ts'
import { errorCodes } from './frames.ts'
import { Http2Stream, type StreamSession } from './http2-stream.ts'
import type { ResponseFields } from './message-fields.ts'

/** The constant from which the Sec-WebSocket-Accept field is computed (RFC 6455 1.3). */
const webSocketGuid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const keyPattern = /^sec-websocket-key:[ \t]*(\S*)[ \t]*\r\n/im

/** The members of an upstream connection that its streams use. */
interface RequestSession extends StreamSession {
  /** `lostTick` and `serial` as in `UpstreamStream`. */
  readonly lostTick: number | undefined
  readonly serial: number
  readonly scheme: 'http' | 'https'
  /** Whether requests can be sent. */
  readonly isReady: boolean
  /** Whether the settings have arrived, and whether they allow extended CONNECT (RFC 8441 3). */
  readonly isSettled: boolean
  readonly peerConnects: boolean
  /** Maximum number of concurrent streams that the settings allow. */
  readonly maxStreams: number
  /** Opens a stream whose head is about to be sent: gives it a number. */
  open(stream: Http2UpstreamStream): void
  /** Called when a request was aborted before its head was sent. */
  leave(stream: Http2UpstreamStream): void
  /** Called when a request was abandoned whose head had been sent. */
  abandoned(): void
  /** Called when request and response are complete. */
  finished(stream: Http2UpstreamStream): void
  /** Adds the address of the upstream to an error. */
  withEndpoint(error: GatewayError): GatewayError
}

/**
 * One request to an HTTP/2 upstream, and its response. A request to switch to another protocol becomes
 * an extended CONNECT, and a successful response to that becomes a 101 (RFC 8441 5).
 */
export class Http2UpstreamStream extends Http2Stream<RequestSession> implements UpstreamStream {
  readonly framesBodies = true
  isUnprocessed = false
  wasOverLimit = false
  /** Whether the stream was opened before the settings of the upstream had arrived. */
  #isOpenedBlind = false
  hasResponded = false
  readonly served: number
  #handler: UpstreamHandler | undefined
  #sensitiveNames: ReadonlySet<string> | undefined
  #interims = 0
  /** Whether the final head has arrived. */
  hasHead = false
  /** Whether the whole response had arrived when the stream was reset or its connection was lost. */
  #wasWhole = false
  /** Set if the request asks for a tunnel: the protocol of the tunnel, and the key of a WebSocket. */
  #protocol: string | undefined
  #key = ''

  constructor(session: RequestSession, handler: UpstreamHandler, served: number) {
    super(session, 0, 0)
    this.#handler = handler
    this.served = served
  }

  /** Does nothing, because data waits in the stream until the body wants it. */
  pause(): void {}

  get lostTick(): number | undefined {
    return this.session.lostTick
  }

  get serial(): number {
    return this.session.serial
  }

  get isIdle(): boolean {
    return this.session.isReady
  }

  startTunnel(): void {
    this.tunnelEnd.open()
  }

  protected get body(): MessageBody | undefined {
    return this.hasHead ? this.#handler?.responseSource : undefined
  }

  use(handler: UpstreamHandler): void {
    this.#handler = handler
    this.ready()
  }

  /** Called when the connection leads to another address of the name. */
  onAlternateAddress(address: UpstreamAddress): void {
    this.#handler?.onAlternateAddress(address)
  }

  /** Called when the connection has been made. */
  ready(): void {
    this.#handler?.onUpstreamReady(this)
  }

  open(): void {
    this.#isOpenedBlind = !this.session.isSettled
    this.session.open(this)
  }

  encodeHead(head: string): string {
    const { scheme } = this.session
    const { encoder } = this.session.output
    return encoder.request(head, scheme, this.#protocol, this.#sensitiveNames)
  }

  sendHead(head: string, sensitiveNames?: ReadonlySet<string>): void {
    this.#sensitiveNames = sensitiveNames
    this.#protocol = this.#handler?.upgrade?.split(',')[0]?.trim().toLowerCase()
    if (this.#protocol === undefined) {
      this.output.setHead(head)
      return
    }
    this.output.withholdsEnd = true
    this.#key = keyPattern.exec(head)?.[1] ?? ''
    this.output.setHead(head.replace(keyPattern, ''))
  }

  sendRequest(
    request: RequestHeadView,
    framing: FramingFields,
    upgrade: string | undefined,
    expects: boolean,
  ): void {
    this.sendHead(request.text(framing, upgrade, expects), request.sensitiveNames)
  }

  /** Delays an extended CONNECT until the settings of the upstream show whether it is allowed. */
  mayOpen(): boolean {
    if (this.#protocol === undefined) return true
    if (!this.session.isSettled) return false
    if (!this.session.peerConnects) queueMicrotask(() => this.#refuseTunnel())
    return this.session.peerConnects
  }

  /** Called when the settings of the upstream have arrived. */
  settled(): void {
    if (this.#protocol !== undefined && !this.output.isClosed) this.output.flush()
  }

  #refuseTunnel(): void {
    if (this.#handler === undefined) return
    this.closeBoth()
    this.session.leave(this)
    this.fail(new GatewayError('upstream_upgrade', 'HTTP/2 without extended CONNECT'))
  }

  onSendEnd(): void {
    if (this.isTunnel) this.#endIfComplete()
  }

  onTunnelBytes(bytes: Buffer, start: number, end: number): void {
    this.#handler?.onTunnelBytes(bytes, start, end)
  }

  onTunnelEnd(): void {
    this.#handler?.onTunnelEnd()
    this.#endIfComplete()
  }

  /** Ends a tunnel after both sides have ended their streams, like a closed connection. */
  #endIfComplete(): void {
    if (!this.output.isClosed || !this.isReceiveClosed || this.#handler === undefined) return
    this.session.finished(this)
    this.fail(new GatewayError('upstream_reset', 'the tunnel is complete'))
  }

  onSendDrain(): void {
    this.#handler?.onUpstreamDrain()
  }

  // --- the response ---

  /** Called when a head was decoded. */
  onHead(fields: ResponseFields, isLast: boolean): void {
    const handler = this.#handler
    if (handler === undefined) return
    this.hasResponded = true
    const { reader, limits } = this.session.parts
    const isInterim = fields.status < 200
    if (!fields.check() || (isInterim && isLast)) {
      this.broken('malformed response')
      return
    }
    const text = this.#opensTunnel(fields.status) ? this.#switchText(fields) : fields.text()
    const code = reader.readResponseText(text, limits.maxHeadBytes)
    if (code !== 0) {
      this.broken('malformed response head')
      return
    }
    handler.responseHead.borrow(reader, reader.textLoan, reader.textStart)
    if (isInterim) {
      this.#interims++
      if (this.#interims > interimLimit) this.broken('too many interim responses')
      else handler.onInterim()
    } else this.#onFinalHead(handler, isLast)
  }

  /** Treats data before the final head as a protocol violation (RFC 9113 8.1). */
  override onData(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.hasHead || this.#handler === undefined) super.onData(bytes, start, end, isLast)
    else {
      this.session.output.credit(end - start)
      this.broken('data before a head')
    }
  }

  #opensTunnel(status: number): boolean {
    return this.#protocol !== undefined && status >= 200 && status < 300
  }

  /** The HTTP/1.1 101 response that is equivalent to a successful CONNECT, which has no body. */
  #switchText(fields: ResponseFields): string {
    const text = fields.text()
    const lines = text.slice(text.indexOf('\r\n') + 2)
    const accept = hash('sha1', `${this.#key}${webSocketGuid}`, 'base64')
    return (
      `HTTP/1.1 101 \r\nconnection: upgrade\r\nupgrade: ${this.#protocol}\r\n` +
      (this.#key === '' ? '' : `sec-websocket-accept: ${accept}\r\n`) +
      lines.replace(/^(?:sec-websocket-accept|content-length):.*\r\n/gim, '')
    )
  }

  /** Reports the switch. Data that arrives before the tunnel is open waits for it. */
  #onSwitch(handler: UpstreamHandler, isLast: boolean): void {
    if (isLast) this.isReceiveClosed = true
    handler.responseSource.start('none', 0, false)
    handler.onResponseHead(this)
    if (this.#handler === handler) handler.onReadEnd()
  }

  #onFinalHead(handler: UpstreamHandler, isLast: boolean): void {
    const head = handler.responseHead
    this.hasHead = true
    const { contentLength, status } = head
    if (status === 101) {
      this.#onSwitch(handler, isLast)
      return
    }
    if (this.output.withholdsEnd) this.output.end()
    const isBodiless = handler.isHead || status === 204 || status === 304
    if (isLast && contentLength > 0 && !isBodiless) {
      this.broken('less data than content-length')
      return
    }
    this.expect(isBodiless ? 0 : contentLength)
    if (isLast) this.isReceiveClosed = true
    const kind: BodyKind = isLast || isBodiless ? 'none' : 'stream'
    handler.responseSource.start(kind, contentLength, false)
    handler.onResponseHead(this)
    // The handler may have finished the response, so that the head belongs to another request.
    if (this.#handler !== handler) return
    if (kind === 'none') handler.onResponseBody(this)
    if (this.#handler === handler) handler.onReadEnd()
  }

  protected onFed(): void {
    this.#handler?.onResponseBody(this)
  }

  resumeBody(): void {
    this.resumeReceiving()
  }

  // --- endings ---

  release(): void {
    const isComplete = this.output.isClosed && this.isReceiveClosed
    this.#handler = undefined
    if (isComplete) this.session.finished(this)
    else this.#giveUp(errorCodes.noError)
  }

  close(): void {
    this.#handler = undefined
    this.#giveUp(errorCodes.cancel)
  }

  #giveUp(code: number): void {
    if (this.id === 0) {
      this.closeBoth()
      this.session.leave(this)
      return
    }
    const isAbandoned = code === errorCodes.cancel && !this.isReceiveClosed
    this.session.reset(this, code)
    if (isAbandoned) this.session.abandoned()
  }

  onBroken(error: GatewayError): void {
    this.fail(error)
  }

  /** Whether the whole response has arrived, though parts of it may still wait to be read. */
  get #isWhole(): boolean {
    if (!this.hasHead) return false
    if (this.isReceiveClosed || this.#handler?.responseHead.status === 101) {
      return this.isReceiveClosed
    }
    return this.#handler?.responseSource.ended === true
  }

  /** A server may reset the stream after its response if it needs no more of the request (RFC 9113 8.1). */
  override closeReset(): void {
    this.#wasWhole = this.#isWhole
    if (this.#wasWhole) this.output.close()
    else this.closeBoth()
  }

  onReset(code: number): void {
    this.isUnprocessed = code === errorCodes.refusedStream
    const ordinal = (this.id + 1) / 2
    this.wasOverLimit = this.#isOpenedBlind && ordinal > this.session.maxStreams
    // The response is complete, even if the rest of the request was not sent.
    if (this.#wasWhole) this.#endIfDelivered()
    else this.fail(new GatewayError('upstream_reset', `stream reset with code ${code}`))
  }

  onSessionGone(error: GatewayError): void {
    if (this.#wasWhole) this.#endIfDelivered()
    else this.fail(error)
  }

  /** Ends a tunnel that is gone. If data of it waits for the client, the tunnel ends after that. */
  #endIfDelivered(): void {
    if (this.isTunnel && !this.hasUndelivered) this.#endIfComplete()
  }

  /** Reports the end of the stream to the handler. */
  fail(error: GatewayError): void {
    const handler = this.#handler
    this.#handler = undefined
    // Each request gets an error of its own, because the address is added to it.
    const { code, cause, detail } = error
    handler?.onUpstreamFailure(
      this,
      this.session.withEndpoint(new GatewayError(code, detail, cause)),
    )
  }
}
