import { GatewayError } from '../../../errors.ts'
import type { BodyKind, MessageBody } from '../message-body.ts'
import type { TunnelEnd } from '../tunnel.ts'
import type { UpstreamLink, UpstreamUser } from '../upstream-link.ts'
import { errorCodes } from './frames.ts'
import { Http2Stream } from './http2-stream.ts'
import type { ResponseFields } from './response-fields.ts'
import type { UpstreamSession } from './upstream-session.ts'

/** Interim responses that one request may get before its final one. */
const interimLimit = 32

/** One request to an upstream that speaks HTTP/2, and its response. */
export class UpstreamStream extends Http2Stream implements UpstreamLink {
  readonly #upstream: UpstreamSession
  readonly framesBodies = true
  isUnprocessed = false
  isLent = false
  hasAnswered = false
  readonly served: number
  #user: UpstreamUser | undefined
  #sensitiveNames: ReadonlySet<string> | undefined
  #interims = 0
  /** The final head has come. */
  #hasHead = false

  constructor(session: UpstreamSession, user: UpstreamUser, served: number) {
    super(session, 0, 0, session.streamWindow)
    this.#upstream = session
    this.#user = user
    this.served = served
  }

  get sink(): this {
    return this
  }

  get isIdle(): boolean {
    return this.#upstream.isReady
  }

  /** Upgrades are not sent over HTTP/2, so no tunnel ever begins. */
  get tunnelEnd(): TunnelEnd {
    return noTunnel
  }

  startTunnel(): void {
    // See `tunnelEnd`.
  }

  protected get body(): MessageBody | undefined {
    return this.#hasHead ? this.#user?.responseSource : undefined
  }

  use(user: UpstreamUser): void {
    this.#user = user
    this.ready()
  }

  /** The connection stands. */
  ready(): void {
    this.#user?.onUpstreamReady(this)
  }

  protected override open(): void {
    this.#upstream.open(this)
  }

  protected encodeHead(head: string): string {
    return this.session.encoder.request(head, this.#upstream.scheme, this.#sensitiveNames)
  }

  sendHead(head: string, sensitiveNames?: ReadonlySet<string>): void {
    this.#sensitiveNames = sensitiveNames
    this.setHead(head)
  }

  override onSendDrain(): void {
    this.#user?.onUpstreamDrain()
  }

  // --- the response ---

  /** A head was decoded. */
  onHead(fields: ResponseFields, isLast: boolean): void {
    const user = this.#user
    if (user === undefined) return
    this.hasAnswered = true
    const reader = this.#upstream.reader
    const isInterim = fields.status < 200
    if (!fields.check() || (isInterim && isLast)) {
      this.broken('malformed response')
      return
    }
    const code = reader.readResponseText(fields.text(), this.#upstream.maxHeadBytes)
    if (code !== 0) {
      this.broken('malformed response head')
      return
    }
    user.responseHead.load(reader, reader.textBytes, reader.textStart, true)
    if (isInterim) {
      this.#interims++
      if (this.#interims > interimLimit) this.broken('too many interim responses')
      else user.onInterim()
    } else this.#onFinalHead(user, isLast)
  }

  get hasHead(): boolean {
    return this.#hasHead
  }

  #onFinalHead(user: UpstreamUser, isLast: boolean): void {
    const head = user.responseHead
    this.#hasHead = true
    const { contentLength, status } = head
    const isBodiless = user.isHead || status === 204 || status === 304
    if (isLast && contentLength > 0 && !isBodiless) {
      this.broken('less data than content-length')
      return
    }
    this.expect(isBodiless ? 0 : contentLength)
    if (isLast) this.isReceiveClosed = true
    const kind: BodyKind = isLast || isBodiless ? 'none' : 'stream'
    user.responseSource.start(kind, contentLength, false)
    user.onResponseHead(this)
    // Whoever asked may be done with the response, and the head may be another's.
    if (this.#user !== user) return
    if (kind === 'none') user.onResponseBody(this)
    if (this.#user !== user) return
    head.detach()
    user.onReadEnd()
  }

  protected onFed(): void {
    this.#user?.onResponseBody(this)
  }

  resumeBody(): void {
    this.resumeReceiving()
  }

  pause(): void {
    // Windows hold the upstream back.
  }

  // --- ends ---

  release(): void {
    const isComplete = this.isSendClosed && this.isReceiveClosed
    this.#user = undefined
    if (isComplete) this.#upstream.finished(this)
    else this.#giveUp(errorCodes.noError)
  }

  close(): void {
    this.#user = undefined
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

  onReset(code: number): void {
    this.isUnprocessed = code === errorCodes.refusedStream
    // A response that is complete stays so, whatever becomes of the rest of the request.
    if (this.#hasHead && this.#user?.responseSource.ended === true) return
    this.fail(new GatewayError('upstream_reset', `stream reset with code ${code}`))
  }

  onSessionGone(error: GatewayError): void {
    this.fail(error)
  }

  /** The stream is no more; tells the user. */
  fail(error: GatewayError): void {
    const user = this.#user
    this.#user = undefined
    // Each request gets an error of its own, which knows where it went.
    const { code, cause, detail } = error
    user?.onUpstreamFailure(this, this.#upstream.place(new GatewayError(code, detail, cause)))
  }
}

const noTunnel: TunnelEnd = {
  appendBytes: () => {},
  flush: () => true,
  pause: () => {},
  resume: () => {},
  end: () => {},
}
