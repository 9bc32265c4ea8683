import { GatewayError } from '../../../ground/errors/index.ts'
import type { ClientConnection, OpenConnection } from '../contracts/connections.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import { dateLine } from '../message/status-line.ts'
import { acceptTransport } from '../sockets/accept-transport.ts'
import { ConnectionAddresses } from '../sockets/connection-ends.ts'
import type { Transport } from '../sockets/transport.ts'
import { ConnectionAge } from '../time/connection-age.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'
import type { SecureSocket } from '../tls/tls-handshake.ts'
import { Http2DownstreamStream } from './downstream-stream.ts'
import {
  ConnectionError,
  clientPreface,
  errorCodes,
  floodError,
  goawayFrame,
  pingFrame,
  protocolError,
  rstStreamFrame,
  settingIds,
  windowLimit,
} from './frames.ts'
import { Keepalive } from './keepalive.ts'
import { RequestFields, readHttp2Request } from './message-fields.ts'
import { Http2Session } from './session.ts'
import { SlowBodies } from './slow-bodies.ts'
import { StalledStreams } from './stalled-streams.ts'

/** How long a client may take to read the last frames before its connection is dropped. */
const lingerMs = 2_000
/** Payload of the PING whose acknowledgement shows that the client has read our GOAWAY. */
const endPing = 'goodbye!'
/**
 * Maximum number of bytes that may wait for a client that begins another request. Data waits for
 * windows and for the socket, so more than this can only be response heads that the client does not
 * read.
 */
const unreadHeadsLimit = 1024 * 1024

/** The event that the timer of a session waits for. */
type Waiting = 'preface' | 'block' | 'request' | 'progress' | 'close'

/** A connection that turned out to speak HTTP/2. */
interface Http2Accepted {
  readonly limits: EngineLimits
  readonly port: number
  readonly tls: TlsChoice | undefined
}

/** One HTTP/2 connection of a client. */
class DownstreamSession
  extends Http2Session<Http2DownstreamStream>
  implements OpenConnection, ClientConnection, TimerOwner
{
  readonly port: number
  readonly tls: TlsChoice | undefined
  readonly transport: Transport
  readonly addresses: ConnectionAddresses
  readonly #engineLimits: EngineLimits
  readonly #timer = new Timer(this)
  readonly #keepalive: Keepalive
  readonly #stalled: StalledStreams
  readonly #slow: SlowBodies
  readonly #age: ConnectionAge | undefined
  #waiting: Waiting = 'preface'
  #prefaceRead = 0
  readonly #fields: RequestFields
  /** Whether the GOAWAY without a limit was sent, and whether the one with the last served stream was. */
  #isAnnounced = false
  #isEnding = false

  /** `open` makes or hands over the transport, with the session as its owner. */
  constructor(
    parts: EngineParts,
    { limits, port, tls }: Http2Accepted,
    open: (owner: DownstreamSession) => Transport,
  ) {
    const { maxHeadBytes = limits.maxHeadBytes } = limits.http2
    super(parts, limits.http2, maxHeadBytes, parts.uploadBudget)
    this.port = port
    this.tls = tls
    this.#engineLimits = limits
    this.#fields = new RequestFields(maxHeadBytes)
    this.transport = open(this)
    this.addresses = new ConnectionAddresses(this.transport.socket)
    this.#stalled = new StalledStreams(parts, this.streams)
    this.#slow = new SlowBodies(parts, limits, this.streams)
    this.#keepalive = new Keepalive(parts.timers, limits.http2, this)
    this.#age = ConnectionAge.of(this, limits, parts.timers)
    parts.connections.add(this)
    parts.counters.http2Connections++
    this.output.writeStart('', [
      [settingIds.maxConcurrentStreams, limits.http2.maxConcurrentStreams],
      [settingIds.maxHeaderListSize, maxHeadBytes],
      [settingIds.enableConnectProtocol, 1],
    ])
    this.#wait('preface')
    if (parts.isDraining) this.announceEnd()
  }

  get #scheme(): 'http' | 'https' {
    return this.tls === undefined ? 'http' : 'https'
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

  /** Decides what to wait for next; called once for all bytes that arrived together. */
  protected onRead(): void {
    if (this.#waiting === 'close') return
    if (this.frames.isInBlock) {
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
      this.onTrailers(stream, bytes, start, end, isLast)
      return
    }
    const fields = this.#fields
    fields.start()
    this.decoder.decode(bytes, start, end, fields)
    if ((id & 1) === 0) throw protocolError('stream of a server')
    if (id <= this.lastStream) {
      const wasReset = this.past.wasReset(id)
      if (wasReset === true) {
        this.flood('late')
        return
      }
      const code = wasReset === false ? errorCodes.streamClosed : errorCodes.protocol
      throw new ConnectionError(code, 'HEADERS on a stream that is over')
    }
    // The last GOAWAY tells the client that this request is not served and may be sent elsewhere.
    if (this.#isEnding) {
      this.flood('late')
      return
    }
    this.lastStream = id
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
    const stream = new Http2DownstreamStream(this, id, this.peerWindow)
    this.streams.set(id, stream)
    if (!fields.isTooLarge) fields.check()
    if (fields.isMalformed) {
      this.#reportBadHead(new GatewayError('bad_request', 'malformed HTTP/2 request'))
      this.abortStream(stream, errorCodes.protocol, 'malformed request')
      return
    }
    if (isLast) stream.isReceiveClosed = true
    const refused = readHttp2Request(this.parts.reader, this.#engineLimits, fields, isLast)
    if (refused !== undefined) {
      this.#reportBadHead(refused)
      const { status, text, proxyError } = refused.row
      const head =
        `HTTP/1.1 ${status} \r\ncontent-type: text/plain\r\ncontent-length: ${text.length}\r\n` +
        `proxy-status: sluice; error=${proxyError}\r\n${dateLine()}`
      stream.respond(head, text)
      if (fields.isTooLarge) for (let n = fields.timesLimit; n > 0; n--) this.flood('oversized')
      return
    }
    const { reader } = this.parts
    if (isLast && reader.contentLength > 0) {
      this.#reportBadHead(new GatewayError('bad_request', 'less data than content-length'))
      this.abortStream(stream, errorCodes.protocol, 'no data')
      return
    }
    const exchange = this.parts.takeExchange()
    const { request } = exchange
    request.load(reader, reader.textBytes, reader.textStart)
    request.scheme = this.#scheme
    request.isHttp2 = true
    request.wasConnect = fields.isConnect
    request.sensitiveNames = fields.sensitiveNames
    const hasBody = !isLast && !fields.isConnect
    if (hasBody) this.#slow.onBody(stream)
    stream.begin(exchange, hasBody ? 'stream' : 'none')
  }

  #reportBadHead(error: GatewayError): void {
    this.parts.counters.badHeads++
    this.parts.handler.onBadHead(this.port, error, this.addresses.source, this.#scheme)
  }

  /** Counts resets: too many of them are an attack (CVE-2023-44487). */
  override onReset(id: number, code: number): void {
    if (this.streams.has(id)) this.flood('reset')
    super.onReset(id, code)
  }

  protected faultOf(detail: string): GatewayError {
    return new GatewayError('bad_request', detail)
  }

  onGoaway(): void {
    // The client will not begin more requests; those under way are served.
    this.closeSoon()
  }

  // --- endings ---

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
   * Announces the end. The last request that is served is named only when the client has read the
   * announcement, so that no request under way is lost (RFC 9113 6.8).
   */
  closeSoon(): void {
    if (this.isOver || this.#isEnding || this.#waiting === 'close') return
    this.announceEnd()
    this.output.write(pingFrame(endPing, false))
    this.#wait('close')
  }

  protected onPong(payload: string): void {
    if (payload === endPing && this.#waiting === 'close') this.#endSoon()
  }

  /** Accepts no more requests. The connection closes after the last one that is being served. */
  #endSoon(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    this.output.write(goawayFrame(this.lastStream, errorCodes.noError, ''))
    if (this.streams.size === 0) this.close()
    else this.#wait('progress')
  }

  protected fail(code: number, reason: string): void {
    if (this.isOver) return
    this.transport.appendText(goawayFrame(this.lastStream, code, reason))
    this.close()
  }

  /** Sends what is written, then closes. What still arrives is read and dropped for a limited time. */
  close(): void {
    if (this.isOver) return
    this.isOver = true
    this.output.endReceiving()
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
    this.output.endReceiving()
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
    this.#age?.stop()
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

  onWait(): void {
    this.#stalled.onWait()
  }
}

/**
 * Whether HTTP/2 may begin although the handshake did not select it (RFC 9113 3.2): the client offered
 * no protocols, and the listener supports HTTP/2.
 */
export function admitsPreface({ socket, choice }: SecureSocket): boolean {
  return typeof socket.alpnProtocol !== 'string' && choice.alpn?.includes('h2') !== false
}

/** Takes over a connection whose first bytes are the HTTP/2 preface; it already counts as open. */
export function handOver(
  parts: EngineParts,
  accepted: Http2Accepted,
  transport: Transport,
): DownstreamSession {
  return new DownstreamSession(parts, accepted, (owner) => {
    transport.owner = owner
    transport.resume()
    return transport
  })
}

/** Creates the session of a connection whose handshake has selected HTTP/2 (RFC 9113 3.2). */
export function overTls(
  parts: EngineParts,
  { limits, port }: Pick<Http2Accepted, 'limits' | 'port'>,
  { choice, raw, socket }: SecureSocket,
): DownstreamSession {
  parts.counters.connectionsTotal++
  parts.counters.connectionsOpen++
  return new DownstreamSession(parts, { limits, port, tls: choice }, (owner) =>
    acceptTransport(parts, { socket, raw }, owner, parts.tlsMeter),
  )
}
