import { HTTP2_PREFACE, INCOMPLETE } from '../../core/index.ts'
import { GatewayError } from '../../errors/index.ts'
import { UnreadBytes } from '../bytes/unread-bytes.ts'
import type { AcceptedConnection, OpenConnection } from '../contracts/connections.ts'
import type { DownstreamHandler } from '../contracts/downstream.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import { admitsPreface, handOver } from '../http2/open-session.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import { refusedRequest } from '../message/head-reader.ts'
import type { MessageBody } from '../message/message-body.ts'
import { reasonPhrase } from '../message/status-line.ts'
import { unservedHead } from '../message/unserved-head.ts'
import { overReadSocket } from '../sockets/read-socket.ts'
import { Transport, type TransportOwner } from '../sockets/transport.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'
import { discardLimit, Http1DownstreamStream } from './downstream-stream.ts'
import { LingeringClose } from './lingering-close.ts'
import { RequestWatch } from './request-watch.ts'

/** `open`: requests are read. `tunnel`: bytes are copied. `closed`: gone, or in other hands. */
type State = 'open' | 'tunnel' | 'closed'

/** Bytes that may wait unread before the socket is paused. */
const unreadLimit = 16 * 1024
/** How long a tunnel may stay open in one direction only. */
const halfOpenMs = 60_000

/** One HTTP/1.1 client connection: requests strictly one after the other (RFC 9112 9.3). */
export class DownstreamConnection implements OpenConnection, TransportOwner, TimerOwner {
  readonly #parts: EngineParts
  readonly #limits: EngineLimits
  readonly port: number
  readonly tls: TlsChoice | undefined
  readonly transport: Transport
  readonly #stream: Http1DownstreamStream
  readonly #timer = new Timer(this)
  #state: State = 'open'
  #exchange: DownstreamHandler | undefined
  /** The exchange is over; the rest of its request is read away. */
  #isDiscarding = false
  #discardFrom = 0
  readonly #unread = new UnreadBytes()
  /** The preface of HTTP/2 may come: no head has been read so far, and TLS has agreed on nothing else. */
  #mayBeHttp2: boolean
  #isPumping = false
  #isFeeding = false
  /** Head bytes of the next request have arrived, and its time runs. */
  #isHeadTimed = false
  /** How far the head that is arriving has been read. */
  #resume = 0
  readonly #watch: RequestWatch

  constructor(parts: EngineParts, { limits, port, socket, secure, wasRead }: AcceptedConnection) {
    this.#parts = parts
    this.port = port
    this.tls = secure?.choice
    this.#limits = limits
    this.#mayBeHttp2 = secure === undefined || admitsPreface(secure)
    const meter = secure === undefined ? parts.clientMeter : parts.tlsMeter
    this.transport =
      wasRead !== true
        ? Transport.overShared(parts, socket, this, meter, secure?.raw)
        : overReadSocket(parts, socket, this, meter)
    this.#stream = new Http1DownstreamStream(parts, this)
    this.#watch = new RequestWatch(parts, this.#timer, limits)
    parts.connections.add(this)
    parts.counters.connectionsTotal++
    parts.counters.connectionsOpen++
    parts.timers.arm(this.#timer, limits.idleTimeoutMs)
  }

  get #scheme(): 'http' | 'https' {
    return this.tls === undefined ? 'http' : 'https'
  }

  /** A request is being served. */
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

  /** Reads on: heads while no request is served, else what is wanted of the body. */
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

  /** Reads no more for now, and so cannot hear that the client goes: not without a limit. */
  #pause(): void {
    this.transport.pause()
    this.#watch.rest()
    const exchange = this.#exchange
    if (exchange !== undefined && this.isBusy && !this.#timer.isArmed) this.#watch.begin(exchange)
  }

  /** One step; false when there is nothing to do before more bytes or a drain. */
  #step(): boolean {
    if (this.#exchange !== undefined) return this.#feedBody()
    if (this.#unread.size === 0) {
      this.#unread.clear()
      return false
    }
    return !this.transport.needsDrain && this.#readHead()
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
    this.#parts.timers.rest(this.#timer)
    const exchange = this.#parts.exchanges.take()
    exchange.request.load(reader, this.#unread.bytes, this.#unread.start)
    exchange.request.scheme = this.#scheme
    this.#unread.start += reader.headLength
    this.#exchange = exchange
    const isLast = this.#parts.isDraining || this.#isLast || !exchange.request.isPersistent
    this.#stream.begin(isLast)
    exchange.begin(this.#stream, exchange.request.bodyKind)
    if (this.isBusy && !exchange.requestSource.ended) this.#watch.begin(exchange)
    return true
  }

  /** The preface of HTTP/2 where a first request was expected (RFC 9113 3.3). */
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

  /** The body of the request is wanted now. */
  wantBody(): void {
    if (this.#exchange === undefined) return
    this.#watch.rest()
    if (this.awaitsContinue && !this.#isDiscarding && !this.transport.closed) {
      this.#stream.sendContinue()
    }
    if (!this.#isPumping) this.#pump()
    // Inside the pump the body is fed at once, so that head and body leave together.
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

  /** One side of the tunnel has ended its stream: the other one gets this long to do so. */
  limitTunnel(): void {
    if (this.#exchange !== undefined) this.#watch.limit(this.#exchange, halfOpenMs)
  }

  /** The exchange has ended; called once for each. */
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

  /** Answers a head that is not served, and closes. */
  #refuse(error: GatewayError, isSilent = false): void {
    this.#parts.counters.badHeads++
    this.#parts.handler.onBadHead(this.port, error, this.#stream.source, this.#scheme)
    const { status, text } = error.row
    const body = isSilent ? '' : text
    this.transport.appendText(
      `HTTP/1.1 ${status} ${reasonPhrase(status)}\r\ncontent-type: text/plain\r\n` +
        `content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
    )
    this.close()
  }

  /** Responses tell it already. */
  announceEnd(): void {}

  #isLast = false

  /** Closes now if nothing is served, else after the response under way. */
  closeSoon(): void {
    this.#isLast = true
    if (this.isBusy) this.#stream.mustClose = true
    else if (this.#unread.size === 0 && this.#state === 'open') this.close()
  }

  /** Sends what is written, then ends; what still comes is read away for a while. */
  close(): void {
    if (this.#state === 'closed') return
    this.#leave()
    this.#isDiscarding = false
    const exchange = this.#exchange
    if (exchange !== undefined) this.#release(exchange)
    new LingeringClose(this.#parts, this)
  }

  /** The transport gets another owner. */
  #leave(): void {
    this.#state = 'closed'
    this.#unread.clear()
    this.#parts.timers.disarm(this.#timer)
    this.#parts.connections.delete(this)
  }

  /** Drops the connection and whatever is served on it. */
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
    // Nothing is awaited of a client that has sent all and can be heard.
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
