import { GatewayError } from '../../errors/index.ts'
import type { OpenConnection } from '../contracts/connections.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import { ConnectionAddresses } from '../sockets/connection-ends.ts'
import type { Transport } from '../sockets/transport.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'
import type { Http2Accepted } from './accepted.ts'
import { Http2DownstreamStream } from './downstream-stream.ts'
import {
  ConnectionError,
  clientPreface,
  errorCodes,
  floodError,
  goawayFrame,
  pingFrame,
  rstStreamFrame,
  settingIds,
  windowLimit,
} from './frames.ts'
import type { Http2Stream } from './http2-stream.ts'
import { Keepalive } from './keepalive.ts'
import { readHttp2Request } from './read-request.ts'
import { RequestFields, TrailerFields } from './request-fields.ts'
import { Http2Session } from './session.ts'
import { SlowBodies } from './slow-bodies.ts'
import { StalledStreams, type StallOwner } from './stalled-streams.ts'

/** How long a client may take to read the last frames before its connection is dropped. */
const lingerMs = 2_000
/** Payload of the PING whose answer says that a client has read our GOAWAY. */
const endPing = 'goodbye!'
const trailerLimit = 8 * 1024
/**
 * Bytes that may wait for a client that begins another request. Data waits for windows and for the
 * socket, so that more than this can only be heads of responses that the client does not read.
 */
const unreadHeadsLimit = 1024 * 1024

/** What the session's timer waits for. */
type Waiting = 'preface' | 'block' | 'request' | 'progress' | 'close'

/** One HTTP/2 connection of a client. */
export class DownstreamSession
  extends Http2Session
  implements OpenConnection, TimerOwner, StallOwner<Http2DownstreamStream>
{
  readonly port: number
  readonly tls: TlsChoice | undefined
  readonly transport: Transport
  readonly #engineLimits: EngineLimits
  readonly #timer = new Timer(this)
  readonly #keepalive: Keepalive
  readonly #stalled: StalledStreams<Http2DownstreamStream>
  readonly #slow: SlowBodies<Http2DownstreamStream>
  #waiting: Waiting = 'preface'
  #prefaceRead = 0
  #lastStream = 0
  readonly #fields: RequestFields
  /** GOAWAY was sent: without a limit, and with the last stream that is served. */
  #isAnnounced = false
  #isEnding = false
  readonly ends: ConnectionAddresses

  /** `open` makes the transport, or hands one over, with the session as its owner. */
  constructor(
    parts: EngineParts,
    { limits, port, tls }: Http2Accepted,
    open: (owner: DownstreamSession) => Transport,
  ) {
    super(parts, limits.http2, limits.maxHeadBytes * 4)
    this.port = port
    this.tls = tls
    this.#engineLimits = limits
    this.#fields = new RequestFields(limits.maxHeadBytes)
    this.transport = open(this)
    this.ends = new ConnectionAddresses(this.transport.socket)
    this.#stalled = new StalledStreams(parts, this)
    this.#slow = new SlowBodies(parts, limits, () => this.stallingStreams())
    this.#keepalive = new Keepalive(parts.timers, limits.http2, this)
    parts.connections.add(this)
    parts.counters.http2Connections++
    this.output.writeStart('', [
      [settingIds.maxConcurrentStreams, limits.http2.maxConcurrentStreams],
      [settingIds.maxHeaderListSize, limits.maxHeadBytes],
      [settingIds.enableConnectProtocol, 1],
    ])
    this.#wait('preface')
    if (parts.isDraining) this.announceEnd()
  }

  get #scheme(): 'http' | 'https' {
    return this.tls === undefined ? 'http' : 'https'
  }

  protected get lastPeerStream(): number {
    return this.#lastStream
  }

  protected isUnused(id: number): boolean {
    return id > this.#lastStream || (id & 1) === 0
  }

  // --- reading ---

  override onBytes(bytes: Buffer, start: number, end: number): void {
    let at = start
    while (this.#prefaceRead < clientPreface.length && at < end) {
      if (bytes[at] !== clientPreface.charCodeAt(this.#prefaceRead)) {
        this.fail(errorCodes.protocol, 'bad preface')
        return
      }
      this.#prefaceRead++
      at++
    }
    if (at === end) return
    this.#keepalive.onActivity()
    super.onBytes(bytes, at, end)
  }

  /** Looks what to wait for next, once for everything that arrived together. */
  protected onRead(): void {
    if (this.#waiting === 'close') return
    if (this.isInBlock) {
      if (this.#waiting !== 'block') this.#wait('block')
    } else if (this.#waiting === 'block' || this.#waiting === 'preface') this.#waitOn()
    else if ((this.#waiting === 'progress') !== this.streams.size > 0) this.#waitOn()
  }

  onHeaders(
    id: number,
    bytes: Buffer,
    start: number,
    end: number,
    isLast: boolean,
    dependency: number,
  ): void {
    const stream = this.streams.get(id)
    if (stream !== undefined) {
      this.#onTrailers(stream, bytes, start, end, isLast)
      return
    }
    const fields = this.#fields
    fields.start()
    if (!this.decoder.decode(bytes, start, end, fields)) {
      throw new ConnectionError(errorCodes.compression, 'broken header block')
    }
    if ((id & 1) === 0) throw new ConnectionError(errorCodes.protocol, 'stream of a server')
    if (id <= this.#lastStream) {
      const wasReset = this.pastOf(id)
      if (wasReset === true) {
        this.flood('late')
        return
      }
      const code = wasReset === false ? errorCodes.streamClosed : errorCodes.protocol
      throw new ConnectionError(code, 'HEADERS on a stream that is over')
    }
    // After the last GOAWAY the client knows that this is not served, and may retry elsewhere.
    if (this.#isEnding) {
      this.flood('late')
      return
    }
    this.#lastStream = id
    if (this.transport.backlog > unreadHeadsLimit) throw floodError('unread')
    if (dependency === id) this.#refuseStream(id, errorCodes.protocol)
    else if (this.streams.size >= this.limits.maxConcurrentStreams) {
      this.#refuseStream(id, errorCodes.refusedStream)
    } else if (this.#stalled.isCrowded) {
      this.parts.counters.http2StreamsRefused++
      this.#refuseStream(id, errorCodes.refusedStream)
    } else this.#onRequest(id, isLast)
  }

  #refuseStream(id: number, code: number): void {
    this.remember(id, true)
    this.flood('reset')
    this.output.control(rstStreamFrame(id, code))
  }

  #onRequest(id: number, isLast: boolean): void {
    const fields = this.#fields
    this.parts.counters.http2Streams++
    const stream = new Http2DownstreamStream(this, id, this.peerWindow, this.streamWindow)
    this.streams.set(id, stream)
    if (!fields.isTooLarge) fields.check()
    if (fields.isMalformed) {
      this.#tellBad(new GatewayError('bad_request', 'malformed HTTP/2 request'))
      this.abortStream(stream, errorCodes.protocol, 'malformed request')
      return
    }
    if (isLast) stream.isReceiveClosed = true
    const refused = readHttp2Request(this.parts.reader, this.#engineLimits, fields, isLast)
    if (refused !== undefined) {
      this.#tellBad(refused)
      const { status, text } = refused.row
      const head = `HTTP/1.1 ${status} \r\ncontent-type: text/plain\r\ncontent-length: ${text.length}\r\n`
      stream.answer(head, text)
      return
    }
    const { exchanges, reader } = this.parts
    if (isLast && reader.contentLength > 0) {
      this.#tellBad(new GatewayError('bad_request', 'less data than content-length'))
      this.abortStream(stream, errorCodes.protocol, 'no data')
      return
    }
    const exchange = exchanges.take()
    const { request } = exchange
    request.load(reader, reader.textBytes, reader.textStart)
    request.scheme = this.#scheme
    request.isHttp2 = true
    request.wasConnect = fields.protocol !== undefined
    request.sensitiveNames = fields.sensitiveNames
    const hasBody = !isLast && fields.protocol === undefined
    if (hasBody) this.#slow.onBody(stream)
    stream.begin(exchange, hasBody ? 'stream' : 'none')
  }

  #tellBad(error: GatewayError): void {
    this.parts.counters.badHeads++
    this.parts.handler.onBadHead(this.port, error, this.ends.source, this.#scheme)
  }

  #onTrailers(
    stream: Http2Stream,
    bytes: Buffer,
    start: number,
    end: number,
    isLast: boolean,
  ): void {
    const fields = new TrailerFields(trailerLimit)
    if (!this.decoder.decode(bytes, start, end, fields)) {
      throw new ConnectionError(errorCodes.compression, 'broken header block')
    }
    if (stream.isReceiveClosed) {
      this.abortStream(stream, errorCodes.streamClosed, 'HEADERS behind the end')
    } else if (!isLast || fields.isMalformed || this.#isForbidden(fields.lines)) {
      this.abortStream(stream, errorCodes.protocol, 'malformed trailers')
    } else stream.endReceiving(fields.lines)
  }

  #isForbidden(trailers: string): boolean {
    return trailers !== '' && this.parts.reader.checkTrailerText(trailers) < 0
  }

  /** Many streams that end so are an attack (CVE-2023-44487). */
  override onReset(id: number, code: number): void {
    if (this.streams.has(id)) this.flood('reset')
    super.onReset(id, code)
  }

  protected faultOf(detail: string): GatewayError {
    return new GatewayError('bad_request', detail)
  }

  onGoaway(): void {
    // The client begins nothing more; what it has begun is served.
    this.closeSoon()
  }

  // --- ends ---

  exchangeOver(): void {
    this.parts.onActivityEnded()
  }

  protected onStreamGone(): void {
    this.parts.counters.http2Streams--
    if (this.streams.size > 0 || this.isOver) return
    if (this.#isEnding) this.close()
    else if (this.#waiting === 'progress') this.#waitOn()
  }

  announceEnd(): void {
    if (this.#isAnnounced || this.isOver) return
    this.#isAnnounced = true
    this.output.write(goawayFrame(windowLimit, errorCodes.noError, ''))
  }

  /**
   * First says that the end is near, and only when the client has read that, which requests are
   * served: what was under way is not lost (RFC 9113 6.8).
   */
  closeSoon(): void {
    if (this.isOver || this.#waiting === 'close') return
    this.announceEnd()
    this.output.write(pingFrame(endPing, false))
    this.#wait('close')
  }

  protected onPong(payload: string): void {
    if (payload === endPing && this.#waiting === 'close') this.#endSoon()
  }

  /** No more requests; the connection ends with the last one that is served. */
  #endSoon(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    this.output.write(goawayFrame(this.#lastStream, errorCodes.noError, ''))
    if (this.streams.size === 0) this.close()
    else this.#wait('progress')
  }

  /** Sends what is written, then ends; what still comes is read away for a while. */
  protected close(): void {
    if (this.isOver) return
    this.isOver = true
    this.#dropStreams()
    this.transport.end()
    this.#keepalive.stop()
    this.parts.timers.arm(this.#timer, lingerMs)
  }

  #dropStreams(): void {
    for (const stream of [...this.streams.values()]) {
      this.streams.delete(stream.id)
      stream.closeBoth()
      stream.onSessionGone(new GatewayError('client_closed'))
      this.parts.counters.http2Streams--
    }
  }

  abort(): void {
    this.isOver = true
    if (!this.transport.closed) this.transport.destroy()
    this.#dropStreams()
    this.#gone()
  }

  onEnd(): void {
    this.abort()
  }

  onClose(): void {
    this.abort()
  }

  #gone(): void {
    if (!this.parts.connections.delete(this)) return
    this.#keepalive.stop()
    this.#stalled.stop()
    this.#slow.stop()
    this.parts.timers.disarm(this.#timer)
    this.parts.counters.connectionsOpen--
    this.parts.counters.http2Connections--
    this.parts.onActivityEnded()
  }

  // --- time ---

  #wait(waiting: Waiting): void {
    this.#waiting = waiting
    const { stallTimeoutMs, headTimeoutMs } = this.#engineLimits
    const isHead = waiting === 'preface' || waiting === 'block'
    const ms = waiting === 'close' ? lingerMs : isHead ? headTimeoutMs : stallTimeoutMs
    this.parts.timers.arm(this.#timer, ms)
  }

  #waitOn(): void {
    this.#wait(this.streams.size > 0 ? 'progress' : 'request')
  }

  onTimer(): void {
    if (this.isOver) this.abort()
    else if (this.#waiting === 'progress') {
      this.#stalled.dropMotionless()
      if (!this.isOver) this.#waitOn()
    } else if (this.#waiting === 'request' || this.#waiting === 'close') this.#endSoon()
    else this.fail(errorCodes.noError, 'timeout')
  }

  override onWait(): void {
    this.#stalled.onWait()
  }

  *stallingStreams(): Generator<Http2DownstreamStream> {
    for (const stream of this.streams.values())
      if (stream instanceof Http2DownstreamStream) yield stream
  }

  dropStalled(stream: Http2DownstreamStream): void {
    this.reset(stream, errorCodes.cancel)
    stream.onReset(errorCodes.cancel)
  }

  // --- keepalive ---

  ping(payload: string): void {
    this.output.write(pingFrame(payload, false))
  }

  onSilence(): void {
    this.abort()
  }
}
