import { createHash } from 'node:crypto'
import { GatewayError } from '../../errors/index.ts'
import type { UpstreamHandler, UpstreamStream } from '../contracts/upstream.ts'
import type { FramingFields } from '../message/head-output.ts'
import type { HeadReader } from '../message/head-reader.ts'
import { interimLimit } from '../message/head-reader.ts'
import type { BodyKind, MessageBody } from '../message/message-body.ts'
import type { RequestHeadView } from '../message/request-head.ts'
import type { UpstreamAddress } from '../sockets/upstream-address.ts'
import { errorCodes } from './frames.ts'
import { Http2Stream, type StreamSession } from './http2-stream.ts'
import type { ResponseFields } from './response-fields.ts'
import type { StreamOutput } from './stream-output.ts'

/** RFC 6455 1.3. */
const webSocketGuid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const keyPattern = /^sec-websocket-key:[ \t]*(\S*)[ \t]*\r\n/im

/** What such a stream needs from its connection as well. */
interface RequestSession extends StreamSession {
  /** As of a link. */
  readonly lostTick: number | undefined
  readonly serial: number
  readonly scheme: 'http' | 'https'
  readonly reader: HeadReader
  readonly maxHeadBytes: number
  /** Requests can be sent. */
  readonly isReady: boolean
  /** Settings of the upstream have come, and whether they take extended CONNECT (RFC 8441 3). */
  readonly isSettled: boolean
  readonly admitsConnect: boolean
  /** A head leaves: the stream gets its number. */
  open(stream: Http2UpstreamStream): void
  /** A request was given up before its head left. */
  leave(stream: Http2UpstreamStream): void
  /** Request and response are complete. */
  finished(stream: Http2UpstreamStream): void
  /** The error, with the place where it happened. */
  place(error: GatewayError): GatewayError
}

/**
 * One request to an upstream that speaks HTTP/2, and its response. A request that asks to switch to
 * another protocol becomes an extended CONNECT, and its success the switch (RFC 8441 5).
 */
export class Http2UpstreamStream extends Http2Stream implements UpstreamStream {
  readonly #upstream: RequestSession
  readonly framesBodies = true
  isUnprocessed = false
  isPinned = false
  hasAnswered = false
  readonly served: number
  #handler: UpstreamHandler | undefined
  #sensitiveNames: ReadonlySet<string> | undefined
  #interims = 0
  /** The final head has come. */
  #hasHead = false
  /** All of the response had arrived when the stream was reset, or its connection lost. */
  #wasWhole = false
  /** Set if the request asks for a tunnel: the protocol in it, and the key of a WebSocket. */
  #protocol: string | undefined
  #key = ''

  constructor(session: RequestSession, handler: UpstreamHandler, served: number) {
    super(session, 0, 0, session.streamWindow)
    this.#upstream = session
    this.#handler = handler
    this.served = served
  }

  get sink(): StreamOutput {
    return this.output
  }

  get backlog(): number {
    return this.output.backlog
  }

  /** Data waits in the stream while nothing takes it. */
  pause(): void {}

  get lostTick(): number | undefined {
    return this.#upstream.lostTick
  }

  get serial(): number {
    return this.#upstream.serial
  }

  get isIdle(): boolean {
    return this.#upstream.isReady
  }

  startTunnel(): void {
    this.tunnelEnd.open()
  }

  protected get body(): MessageBody | undefined {
    return this.#hasHead ? this.#handler?.responseSource : undefined
  }

  use(handler: UpstreamHandler): void {
    this.#handler = handler
    this.ready()
  }

  /** The connection leads to another address of the name. */
  elsewhere(address: UpstreamAddress): void {
    this.#handler?.onAlternateAddress(address)
  }

  /** The connection stands. */
  ready(): void {
    this.#handler?.onUpstreamReady(this)
  }

  override open(): void {
    this.#upstream.open(this)
  }

  encodeHead(head: string): string {
    const { scheme } = this.#upstream
    const protocol = this.#protocol
    return protocol === undefined
      ? this.session.output.encoder.request(head, scheme, this.#sensitiveNames)
      : this.session.output.encoder.connect(head, scheme, protocol, this.#sensitiveNames)
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

  /** Whether an extended CONNECT may be sent is known once the settings of the upstream are. */
  override mayOpen(): boolean {
    if (this.#protocol === undefined) return true
    if (!this.#upstream.isSettled) return false
    if (!this.#upstream.admitsConnect) queueMicrotask(() => this.#refuseTunnel())
    return this.#upstream.admitsConnect
  }

  /** The settings of the upstream are there. */
  settled(): void {
    if (this.#protocol !== undefined && !this.output.isClosed) this.output.flush()
  }

  #refuseTunnel(): void {
    if (this.#handler === undefined) return
    this.closeBoth()
    this.#upstream.leave(this)
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

  /** Nothing goes either way any more: for a tunnel that is what a closed connection is. */
  #endIfComplete(): void {
    if (!this.output.isClosed || !this.isReceiveClosed || this.#handler === undefined) return
    this.#upstream.finished(this)
    this.fail(new GatewayError('upstream_reset', 'the tunnel is complete'))
  }

  onSendDrain(): void {
    this.#handler?.onUpstreamDrain()
  }

  // --- the response ---

  /** A head was decoded. */
  onHead(fields: ResponseFields, isLast: boolean): void {
    const handler = this.#handler
    if (handler === undefined) return
    this.hasAnswered = true
    const reader = this.#upstream.reader
    const isInterim = fields.status < 200
    if (!fields.check() || (isInterim && isLast)) {
      this.broken('malformed response')
      return
    }
    const text = this.#opensTunnel(fields.status) ? this.#switchText(fields) : fields.text()
    const code = reader.readResponseText(text, this.#upstream.maxHeadBytes)
    if (code !== 0) {
      this.broken('malformed response head')
      return
    }
    handler.responseHead.load(reader, reader.textBytes, reader.textStart, true)
    if (isInterim) {
      this.#interims++
      if (this.#interims > interimLimit) this.broken('too many interim responses')
      else handler.onInterim()
    } else this.#onFinalHead(handler, isLast)
  }

  get hasHead(): boolean {
    return this.#hasHead
  }

  /** Before a final head there is nothing that data could belong to (RFC 9113 8.1). */
  override onData(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.#hasHead || this.#handler === undefined) super.onData(bytes, start, end, isLast)
    else this.broken('data before a head')
  }

  #opensTunnel(status: number): boolean {
    return this.#protocol !== undefined && status >= 200 && status < 300
  }

  /** The switch of HTTP/1.1 that says the same as a successful CONNECT, which has no body. */
  #switchText(fields: ResponseFields): string {
    const text = fields.text()
    const lines = text.slice(text.indexOf('\r\n') + 2)
    const accept = createHash('sha1').update(`${this.#key}${webSocketGuid}`).digest('base64')
    return (
      `HTTP/1.1 101 \r\nconnection: upgrade\r\nupgrade: ${this.#protocol}\r\n` +
      (this.#key === '' ? '' : `sec-websocket-accept: ${accept}\r\n`) +
      lines.replace(/^(?:sec-websocket-accept|content-length):.*\r\n/gim, '')
    )
  }

  /** Data that comes before the tunnel is open waits for it. */
  #onSwitch(handler: UpstreamHandler, isLast: boolean): void {
    if (isLast) this.isReceiveClosed = true
    handler.responseSource.start('none', 0, false)
    handler.onResponseHead(this)
    if (this.#handler !== handler) return
    handler.responseHead.detach()
    handler.onReadEnd()
  }

  #onFinalHead(handler: UpstreamHandler, isLast: boolean): void {
    const head = handler.responseHead
    this.#hasHead = true
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
    // The handler may be done with the response, and the head may belong to another request.
    if (this.#handler !== handler) return
    if (kind === 'none') handler.onResponseBody(this)
    if (this.#handler !== handler) return
    head.detach()
    handler.onReadEnd()
  }

  protected onFed(): void {
    this.#handler?.onResponseBody(this)
  }

  resumeBody(): void {
    this.resumeReceiving()
  }

  // --- ends ---

  release(): void {
    const isComplete = this.output.isClosed && this.isReceiveClosed
    this.#handler = undefined
    if (isComplete) this.#upstream.finished(this)
    else this.#giveUp(errorCodes.noError)
  }

  close(): void {
    this.#handler = undefined
    this.#giveUp(errorCodes.cancel)
  }

  #giveUp(code: number): void {
    if (this.id === 0) {
      this.closeBoth()
      this.#upstream.leave(this)
    } else this.session.reset(this, code)
  }

  onBroken(error: GatewayError): void {
    this.fail(error)
  }

  /** All of the response has arrived, though some of it may still wait to be taken. */
  get #isWhole(): boolean {
    if (!this.#hasHead || this.isTunnel) return false
    return this.isReceiveClosed || this.#handler?.responseSource.ended === true
  }

  /** A server that needs no more of a request says so by a reset behind its response (RFC 9113 8.1). */
  override closeReset(): void {
    this.#wasWhole = this.#isWhole
    if (this.#wasWhole) this.output.close()
    else this.closeBoth()
  }

  onReset(code: number): void {
    this.isUnprocessed = code === errorCodes.refusedStream
    // A response that is complete stays so, whatever becomes of the rest of the request.
    if (this.#wasWhole) return
    this.fail(new GatewayError('upstream_reset', `stream reset with code ${code}`))
  }

  onSessionGone(error: GatewayError): void {
    if (!this.#wasWhole) this.fail(error)
  }

  /** The stream is no more; tells the user. */
  fail(error: GatewayError): void {
    const handler = this.#handler
    this.#handler = undefined
    // Each request gets an error of its own, which knows where it went.
    const { code, cause, detail } = error
    handler?.onUpstreamFailure(this, this.#upstream.place(new GatewayError(code, detail, cause)))
  }
}
