import { GatewayError } from '../../../ground/errors/index.ts'
import { HTTP2_PREFACE, INCOMPLETE } from '../../core/index.ts'
import { UnreadBytes } from '../bytes/unread-bytes.ts'
import type { AcceptedConnection, OpenConnection } from '../contracts/connections.ts'
import type { DownstreamHandler } from '../contracts/downstream.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import { admitsPreface, handOver } from '../http2/downstream-session.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import type { MessageBody } from '../message/message-body.ts'
import { refusedRequest, unservedHead } from '../message/refusals.ts'
import { dateLine, reasonPhrase } from '../message/status-line.ts'
import { acceptTransport } from '../sockets/accept-transport.ts'
import { ConnectionAddresses } from '../sockets/connection-ends.ts'
import type { Transport, TransportOwner } from '../sockets/transport.ts'
import { ConnectionAge } from '../time/connection-age.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'
import { discardLimit, Http1DownstreamStream } from './downstream-stream.ts'
import { LingeringClose } from './lingering-close.ts'
import { RequestWatch } from './request-watch.ts'

/** `open`: requests are read. `tunnel`: bytes are copied. `closed`: closed, or owned by another object. */
type State = 'open' | 'tunnel' | 'closed'

/** Maximum number of unread bytes before the socket is paused. */
const unreadLimit = 16 * 1024
/** Maximum number of empty lines that are ignored before a request line. */
const maxEmptyLines = 4
/** How long a tunnel may stay open after one side has ended its stream. */
const halfOpenMs = 60_000

/** One HTTP/1.1 client connection, which serves one request after the other (RFC 9112 9.3). */
export class DownstreamConnection implements OpenConnection, TransportOwner, TimerOwner {
  readonly #parts: EngineParts
  readonly #limits: EngineLimits
  readonly port: number
  readonly tls: TlsChoice | undefined
  readonly transport: Transport
  readonly addresses: ConnectionAddresses
  readonly #stream: Http1DownstreamStream
  readonly #timer = new Timer(this)
  #state: State = 'open'
  #exchange: DownstreamHandler | undefined
  /** Whether the exchange has ended, and the rest of its request is read and dropped. */
  #isDiscarding = false
  #discardFrom = 0
  readonly #unread = new UnreadBytes()
  /** Whether the HTTP/2 preface may follow: nothing was read yet, and ALPN has not selected HTTP/1.1. */
  #mayBeHttp2: boolean
  #isPumping = false
  #isFeeding = false
  /** Whether bytes of the next head have arrived, so that the time limit for the head runs. */
  #isHeadTimed = false
  /** Number of empty lines that were skipped before the next head. */
  #skippedLines = 0
  /** Offset at which reading the incomplete head continues. */
  #resume = 0
  readonly #watch: RequestWatch
  readonly #age: ConnectionAge | undefined
  /** Whether the connection closes after the current response. */
  #isLast = false

  constructor(parts: EngineParts, { limits, port, socket, secure, wasRead }: AcceptedConnection) {
    this.#parts = parts
    this.port = port
    this.tls = secure?.choice
    this.#limits = limits
    this.#mayBeHttp2 = secure === undefined || admitsPreface(secure)
    const meter = secure === undefined ? parts.clientMeter : parts.tlsMeter
    this.transport = acceptTransport(parts, { socket, raw: secure?.raw, wasRead }, this, meter)
    this.addresses = new ConnectionAddresses(this.transport.socket)
    this.#stream = new Http1DownstreamStream(parts, this)
    this.#watch = new RequestWatch(parts, this.#timer, limits)
    this.#age = ConnectionAge.of(this, limits, parts.timers)
    parts.connections.add(this)
    parts.counters.connectionsTotal++
    parts.counters.connectionsOpen++
    parts.timers.arm(this.#timer, limits.idleTimeoutMs)
  }

  get #scheme(): 'http' | 'https' {
    return this.tls === undefined ? 'http' : 'https'
  }

  /** Whether a request is being served. */
  get isBusy(): boolean {
    return this.#exchange !== undefined && !this.#isDiscarding
  }

  onBytes(bytes: Buffer, start: number, end: number): void {
    if (this.#state === 'tunnel') {
      this.#exchange?.onClientTunnelBytes(bytes, start, end)
      return
    }
    if (this.#state !== 'open') return
    this.#unread.add(bytes, start, end)
    this.#pump()
    this.#unread.keep(bytes)
  }

  /** Reads heads while no request is served, otherwise as much of the body as is wanted. */
  #pump(): void {
    if (this.#isPumping) return
    this.#isPumping = true
    while (this.#state === 'open' && this.#step()) {
      // Each step takes one head or one piece of a body.
    }
    this.#isPumping = false
    if (this.#state !== 'open') return
    const isFull = this.#unread.size >= unreadLimit
    if (isFull || this.#exchange?.requestSource.blocked === true) this.#pause()
    else this.transport.resume()
  }

  /** Pauses reading. The time is limited, because a close of the connection is not noticed meanwhile. */
  #pause(): void {
    this.transport.pause()
    this.#watch.pause()
    const exchange = this.#exchange
    if (exchange !== undefined && this.isBusy && !this.#timer.isArmed) this.#watch.begin(exchange)
  }

  /** Takes one step. Returns false if more bytes or a drain must come first. */
  #step(): boolean {
    if (this.#exchange !== undefined) return this.#feedBody()
    if (this.#resume === 0) this.#skipEmptyLines()
    if (this.#unread.size === 0) {
      this.#unread.clear()
      return false
    }
    return !this.transport.needsDrain && this.#readHead()
  }

  /** Skips empty lines before a request line (RFC 9112 2.2). They do not begin the time limit for the head. */
  #skipEmptyLines(): void {
    const unread = this.#unread
    while (
      this.#skippedLines < maxEmptyLines &&
      unread.size >= 2 &&
      unread.bytes[unread.start] === 0x0d &&
      unread.bytes[unread.start + 1] === 0x0a
    ) {
      unread.start += 2
      this.#skippedLines++
      this.#mayBeHttp2 = false
    }
  }

  #readHead(): boolean {
    const { reader } = this.#parts
    let code: number
    try {
      const { bytes, start, end } = this.#unread
      code = reader.readRequest(bytes, start, end, this.#limits.maxHeadBytes, this.#resume)
    } catch (thrown) {
      this.#refuse(this.#parts.toError(thrown))
      return false
    }
    this.#resume = code === INCOMPLETE ? reader.resume : 0
    if (code === INCOMPLETE) {
      if (!this.#isHeadTimed) {
        this.#isHeadTimed = true
        this.#parts.timers.arm(this.#timer, this.#limits.headTimeoutMs)
      }
      return false
    }
    const error =
      code < 0 ? refusedRequest(code) : unservedHead(reader, this.#limits, this.#limits.maxHeaders)
    if (error !== undefined) {
      if (code === HTTP2_PREFACE && this.#mayBeHttp2) this.#becomeHttp2()
      else this.#refuse(error, code === HTTP2_PREFACE)
      return false
    }
    this.#mayBeHttp2 = false
    this.#isHeadTimed = false
    this.#skippedLines = 0
    this.#parts.timers.disarmLazily(this.#timer)
    const exchange = this.#parts.takeExchange()
    exchange.request.load(reader, this.#unread.bytes, this.#unread.start)
    exchange.request.scheme = this.#scheme
    this.#unread.start += reader.headLength
    this.#exchange = exchange
    const { isPersistent, isConnect } = exchange.request
    // After a refused CONNECT, bytes that the client meant for the tunnel must not become a request.
    this.#stream.begin(this.#parts.isDraining || this.#isLast || !isPersistent || isConnect)
    exchange.begin(this.#stream, exchange.request.bodyKind)
    if (this.isBusy && !exchange.requestSource.ended) this.#watch.begin(exchange)
    return true
  }

  /** Called when the client has sent the HTTP/2 preface in place of a first request (RFC 9113 3.3). */
  #becomeHttp2(): void {
    const { bytes, start, end } = this.#unread
    this.#leave()
    const { port, tls, transport } = this
    const session = handOver(this.#parts, { limits: this.#limits, port, tls }, transport)
    session.onBytes(bytes, start, end)
  }

  #feedBody(): boolean {
    const exchange = this.#exchange
    if (exchange === undefined || this.#isFeeding) return false
    const body = exchange.requestSource
    if (this.#unread.size === 0) return false
    if (!body.wantsBytes && exchange.request.expectsContinue) exchange.onUnaskedBody()
    if (!body.wantsBytes) return false
    this.#isFeeding = true
    const next = this.#feed(body)
    this.#isFeeding = false
    if (typeof next !== 'number') {
      this.#unread.clear()
      if (this.#isDiscarding) this.close()
      else exchange.onBadRequestBody(next)
      return false
    }
    this.#unread.start = next
    if (this.#isDiscarding) this.#afterDiscard(body)
    return true
  }

  #feed(body: MessageBody): number | GatewayError {
    try {
      const next = body.feed(this.#unread.bytes, this.#unread.start, this.#unread.end)
      return next < 0 ? refusedRequest(next) : next
    } catch (thrown) {
      return this.#parts.toError(thrown)
    }
  }

  get awaitsContinue(): boolean {
    const exchange = this.#exchange
    if (exchange?.request.expectsContinue !== true || this.#stream.hasContinued) return false
    const { ended, receivedBytes } = exchange.requestSource
    return !ended && receivedBytes === 0 && this.#unread.size === 0
  }

  /** Called when the body of the request is wanted now. */
  wantBody(): void {
    if (this.#exchange === undefined) return
    this.#watch.pause()
    if (this.awaitsContinue && !this.#isDiscarding && !this.transport.closed) {
      this.#stream.sendContinue()
    }
    if (!this.#isPumping) this.#pump()
    // Inside the pump the body is read at once, so that head and body are sent together.
    else for (let isFed = true; isFed; ) isFed = this.#feedBody()
  }

  openTunnel(): void {
    this.#parts.timers.disarm(this.#timer)
    this.#state = 'tunnel'
    const { bytes, start, end } = this.#unread
    this.#unread.clear()
    this.transport.resume()
    if (start < end) this.#exchange?.onClientTunnelBytes(bytes, start, end)
  }

  /** Called when one side of the tunnel has ended its stream; limits the time for the other side. */
  limitTunnel(): void {
    if (this.#exchange !== undefined) this.#watch.limit(this.#exchange, halfOpenMs)
  }

  /** Called once for each exchange, when it has ended. */
  exchangeOver(exchange: DownstreamHandler): void {
    const body = exchange.requestSource
    if (!body.ended && !this.#stream.mustClose && !this.transport.closed) {
      this.#isDiscarding = true
      this.#discardFrom = body.receivedBytes
      this.#parts.timers.arm(this.#timer, this.#limits.headTimeoutMs)
      body.discard()
      return
    }
    const { endedAt } = exchange
    this.#release(exchange)
    if (this.transport.closed) this.#gone()
    else if (this.#stream.mustClose) this.close()
    else {
      this.#parts.timers.arm(this.#timer, this.#limits.idleTimeoutMs, endedAt)
      this.#pump()
    }
  }

  #afterDiscard(body: MessageBody): void {
    const exchange = this.#exchange
    if (exchange === undefined) return
    if (body.ended) {
      this.#isDiscarding = false
      this.#release(exchange)
      if (this.#parts.isDraining || this.#isLast) this.close()
      else this.#parts.timers.arm(this.#timer, this.#limits.idleTimeoutMs)
    } else if (body.receivedBytes - this.#discardFrom > discardLimit) this.close()
  }

  #release(exchange: DownstreamHandler): void {
    this.#exchange = undefined
    exchange.recycle()
    this.#parts.onActivityEnded()
  }

  /** Responds to a head that is refused, and closes. */
  #refuse(error: GatewayError, isSilent = false): void {
    this.#parts.counters.badHeads++
    this.#parts.handler.onBadHead(this.port, error, this.addresses.source, this.#scheme)
    const { status, text, proxyError } = error.row
    const body = isSilent ? '' : text
    this.transport.appendText(
      `HTTP/1.1 ${status} ${reasonPhrase(status)}\r\ncontent-type: text/plain\r\n` +
        `content-length: ${body.length}\r\nproxy-status: sluice; error=${proxyError}\r\n` +
        `${dateLine()}connection: close\r\n\r\n${body}`,
    )
    this.close()
  }

  /** Does nothing, because responses announce the end themselves. */
  announceEnd(): void {}

  /** Closes at once if no request is being served, otherwise after the current response. */
  closeSoon(): void {
    this.#isLast = true
    if (this.isBusy) this.#stream.mustClose = true
    else if (this.#unread.size === 0 && this.#state === 'open') this.close()
  }

  /** Sends what is written, then closes. What still arrives is read and dropped for a limited time. */
  close(): void {
    if (this.#state === 'closed') return
    this.#leave()
    this.#isDiscarding = false
    const exchange = this.#exchange
    if (exchange !== undefined) this.#release(exchange)
    new LingeringClose(this.#parts, this)
  }

  /** Ends the use of the transport, which another owner takes over. */
  #leave(): void {
    this.#state = 'closed'
    this.#unread.clear()
    this.#parts.timers.disarm(this.#timer)
    this.#age?.stop()
    this.#parts.connections.delete(this)
  }

  /** Drops the connection and the request that is being served. */
  abort(): void {
    const exchange = this.#exchange
    if (!this.transport.closed) this.transport.destroy()
    if (exchange !== undefined && !this.#isDiscarding) exchange.onClientGone()
    else this.#gone()
  }

  onEnd(): void {
    if (this.#state !== 'tunnel') this.abort()
    else {
      this.#exchange?.onClientTunnelEnd()
      this.limitTunnel()
    }
  }

  onClose(): void {
    this.abort()
  }

  onDrain(): void {
    const exchange = this.#exchange
    if (exchange !== undefined && !this.#isDiscarding) exchange.onClientDrain()
    this.#pump()
  }

  onTimer(): void {
    const isOpen = this.#state === 'open'
    if (isOpen && this.#isHeadTimed) this.#refuse(new GatewayError('request_timeout'))
    else if (isOpen && this.#exchange === undefined) this.close()
    else if (this.#exchange === undefined || !this.isBusy) this.abort()
    else this.#checkProgress(this.#exchange)
  }

  #checkProgress(exchange: DownstreamHandler): void {
    const progress = this.#watch.check(exchange, this.#stream.isAnswered)
    if (progress === 'slow') exchange.onBadRequestBody(new GatewayError('request_body_timeout'))
    if (progress !== 'stalled') return
    // A client that has sent its whole request may wait, as long as a close would be noticed.
    const isAwaited = this.#state !== 'open' || !exchange.requestSource.ended
    if (isAwaited || this.transport.paused) this.abort()
  }

  #gone(): void {
    if (this.#state === 'closed') return
    this.#leave()
    const exchange = this.#exchange
    this.#exchange = undefined
    exchange?.recycle()
    this.#parts.counters.connectionsOpen--
    this.#parts.onActivityEnded()
  }
}
