import type { Socket } from 'node:net'
import { GatewayError } from '../../errors/index.ts'
import type { HttpVersion } from '../../exchange/connection.ts'
import { type ReadBuffer, type ReadInto, readBufferSize } from '../bytes/read-buffers.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { UpstreamHandler } from '../contracts/upstream.ts'
import { connectTimeout, idleTimeoutMs } from '../limits/connection-times.ts'
import { defaultHttp2Limits } from '../limits/http2-limits.ts'
import type { HeadReader } from '../message/head-reader.ts'
import { dialError, lostError, selectedVersion } from '../sockets/dial.ts'
import { type OpeningOwner, openTransport } from '../sockets/open-transport.ts'
import type { Transport } from '../sockets/transport.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'
import { ConnectionError, clientPreface, errorCodes, goawayFrame, settingIds } from './frames.ts'
import { TrailerFields } from './request-fields.ts'
import { ResponseFields } from './response-fields.ts'
import { Http2Session } from './session.ts'
import { Http2UpstreamStream } from './upstream-stream.ts'

/** Streams of one connection, however many the upstream admits: more of them share its losses. */
const streamsLimit = 100
/** Numbers of streams run out (RFC 9113 5.1.1). */
const lastNumber = 2 ** 31 - 3
const trailerLimit = 8 * 1024

type State = 'connecting' | 'ready' | 'leaving' | 'closed'

/** Who keeps the sessions to one address. */
export interface SessionOwner {
  readonly address: UpstreamAddress
  /** False if the address negotiates and the server has not selected this version. */
  accepts(version: HttpVersion, socket: Socket): boolean
  /** The session takes no more requests. */
  sessionLeft(session: UpstreamSession): void
  sessionClosed(session: UpstreamSession): void
  /** It is connected to another address of the name. Returns who keeps it from now on. */
  sessionMoved(session: UpstreamSession, address: UpstreamAddress): SessionOwner
}

/** One HTTP/2 connection to an upstream, shared by many requests (RFC 9113 9.1). */
export class UpstreamSession extends Http2Session implements OpeningOwner, TimerOwner {
  #owner: SessionOwner
  readonly transport: Transport
  readonly #buffer: ReadBuffer
  readonly #timer = new Timer(this)
  readonly #startedAt: number
  #state: State = 'connecting'
  #lastStream = -1
  #isSettled = false
  /** Requests that wait for the connection, or that have not sent their heads. */
  readonly #unopened = new Set<Http2UpstreamStream>()
  readonly #fields: ResponseFields
  /** Requests that were answered completely. */
  #served = 0
  lostTick: number | undefined
  readonly serial: number

  constructor(parts: EngineParts, owner: SessionOwner, { connectTimeoutMs, race }: ConnectOptions) {
    super(parts, defaultHttp2Limits, parts.limits.maxHeadBytes * 4)
    this.#owner = owner
    this.#fields = new ResponseFields(parts.limits.maxHeadBytes)
    this.#buffer = parts.readBuffers.lease()
    this.#startedAt = parts.clock.now()
    const { address } = owner
    this.transport = openTransport(parts, { address, race, into: this.#readInto(), owner: this })
    parts.timers.arm(this.#timer, connectTimeout(connectTimeoutMs))
    this.serial = ++parts.counters.upstreamConnectionsTotal
    parts.counters.upstreamConnectionsOpen++
  }

  #readInto(): ReadInto {
    const { memory, start } = this.#buffer
    return {
      buffer: memory.subarray(start, start + readBufferSize),
      callback: (length: number) => {
        this.transport.received(memory, start, start + length)
        return true
      },
    }
  }

  /** Settings of the upstream have come. */
  get isSettled(): boolean {
    return this.#isSettled
  }

  /** The upstream takes extended CONNECT (RFC 8441 3). */
  get admitsConnect(): boolean {
    return this.peerConnects
  }

  override onSettingsEnd(): void {
    super.onSettingsEnd()
    if (this.#isSettled) return
    this.#isSettled = true
    for (const stream of [...this.#unopened]) stream.settled()
  }

  get isReady(): boolean {
    return this.#state === 'ready'
  }

  get scheme(): 'http' | 'https' {
    return this.#owner.address.tls === undefined ? 'http' : 'https'
  }

  get reader(): HeadReader {
    return this.parts.reader
  }

  get maxHeadBytes(): number {
    return this.parts.limits.maxHeadBytes
  }

  /** The error, with the place where it happened. */
  place(error: GatewayError): GatewayError {
    const { host, port } = this.#owner.address
    return error.at(`endpoint ${host}:${port}`)
  }

  /** Requests that are under way or wait for the connection. */
  get streamCount(): number {
    return this.streams.size + this.#unopened.size
  }

  /** Another request may begin here. */
  get hasRoom(): boolean {
    const limit = Math.min(streamsLimit, this.peerStreams)
    const isOpen = this.#state === 'ready' || this.#state === 'connecting'
    return isOpen && this.streams.size + this.#unopened.size < limit
  }

  /** A place for one request; `onUpstreamReady` follows once the connection stands. */
  begin(handler: UpstreamHandler): Http2UpstreamStream {
    const stream = new Http2UpstreamStream(this, handler, this.#served)
    this.#unopened.add(stream)
    if (this.#state === 'ready') this.parts.timers.disarm(this.#timer)
    return stream
  }

  onAlternateAddress(address: UpstreamAddress): void {
    this.#owner = this.#owner.sessionMoved(this, address)
    for (const stream of [...this.#unopened]) stream.elsewhere(address)
  }

  onReady(): void {
    if (this.#state !== 'connecting') return
    if (!this.#isSelected()) return
    const { clock, onUpstreamConnected, timers } = this.parts
    onUpstreamConnected((clock.now() - this.#startedAt) / 1_000)
    timers.disarm(this.#timer)
    this.#state = 'ready'
    this.output.writeStart(clientPreface, [[settingIds.enablePush, 0]])
    for (const stream of [...this.#unopened]) stream.ready()
    this.#rest()
  }

  /** If the server may select HTTP/1.1 and does, the requests are sent on other connections. */
  #isSelected(): boolean {
    const { socket } = this.transport
    if (!this.#owner.accepts('2', socket)) {
      for (const stream of this.#unopened) stream.isUnprocessed = true
      this.#finish(new GatewayError('upstream_reset', 'the server selected HTTP/1.1'))
      return false
    }
    if (this.scheme === 'http' || selectedVersion(socket) === '2') return true
    this.#finish(new GatewayError('upstream_tls_failed', 'HTTP/2 was not agreed on'))
    return false
  }

  /** A head leaves: the stream gets its number. */
  open(stream: Http2UpstreamStream): void {
    this.#unopened.delete(stream)
    this.#lastStream += 2
    stream.id = this.#lastStream
    stream.output.sendWindow = this.peerWindow
    this.streams.set(stream.id, stream)
    if (this.#lastStream >= lastNumber) this.#leave()
  }

  /** A request was given up before its head left. */
  leave(stream: Http2UpstreamStream): void {
    this.#unopened.delete(stream)
    this.onStreamGone()
  }

  /** Request and response are complete. */
  finished(stream: Http2UpstreamStream): void {
    this.#served++
    this.forget(stream)
  }

  // --- reading ---

  protected get lastPeerStream(): number {
    return 0
  }

  protected isUnused(id: number): boolean {
    return id > this.#lastStream || (id & 1) === 0
  }

  protected onRead(): void {
    // Deadlines of requests are kept elsewhere.
  }

  onHeaders(id: number, bytes: Buffer, start: number, end: number, isLast: boolean): void {
    const stream = this.streams.get(id)
    if (!(stream instanceof Http2UpstreamStream) || !stream.hasHead) {
      const fields = this.#fields
      fields.start()
      this.#decode(bytes, start, end, fields)
      if (stream instanceof Http2UpstreamStream) stream.onHead(fields, isLast)
      else if (this.isUnused(id)) throw new ConnectionError(errorCodes.protocol, 'idle stream')
      else this.flood('late')
      return
    }
    const trailers = new TrailerFields(trailerLimit)
    this.#decode(bytes, start, end, trailers)
    if (stream.isReceiveClosed) this.abortStream(stream, errorCodes.streamClosed, 'after the end')
    else if (!isLast || trailers.isMalformed || this.#isForbidden(trailers.lines)) {
      this.abortStream(stream, errorCodes.protocol, 'malformed trailers')
    } else stream.endReceiving(trailers.lines)
  }

  #decode(bytes: Buffer, start: number, end: number, into: ResponseFields | TrailerFields): void {
    if (this.decoder.decode(bytes, start, end, into)) return
    throw new ConnectionError(errorCodes.compression, 'broken header block')
  }

  #isForbidden(trailers: string): boolean {
    return trailers !== '' && this.reader.checkTrailerText(trailers) < 0
  }

  override onSetting(id: number, value: number): void {
    // Push is not admitted, and a server does not ask for it (RFC 9113 6.5.2).
    if (id === settingIds.enablePush && value !== 0) {
      throw new ConnectionError(errorCodes.protocol, 'a server cannot enable push')
    }
    super.onSetting(id, value)
  }

  protected faultOf(detail: string): GatewayError {
    return new GatewayError('upstream_malformed', detail)
  }

  /** Requests above the last stream were not looked at: they are sent again elsewhere. */
  onGoaway(lastStream: number): void {
    this.#leave()
    for (const stream of [...this.streams.values(), ...this.#unopened]) {
      if (!(stream instanceof Http2UpstreamStream)) continue
      if (stream.id !== 0 && stream.id <= lastStream) continue
      this.streams.delete(stream.id)
      this.#unopened.delete(stream)
      stream.closeBoth()
      stream.isUnprocessed = true
      stream.fail(new GatewayError('upstream_reset', 'the connection is being closed'))
    }
    this.onStreamGone()
  }

  onWriteLost(): void {
    this.lostTick = this.parts.loopTicks.current
    this.#leave()
  }

  protected onPong(): void {
    // None is asked for.
  }

  // --- ends ---

  #leave(): void {
    if (this.#state !== 'ready') return
    this.#state = 'leaving'
    this.#owner.sessionLeft(this)
  }

  protected onStreamGone(): void {
    if (this.streams.size + this.#unopened.size > 0 || this.isOver) return
    if (this.#state === 'leaving') this.#end()
    else this.#rest()
  }

  /** Without requests the connection waits for the next one, for a while. */
  #rest(): void {
    if (this.#state !== 'ready' || this.streams.size + this.#unopened.size > 0) return
    this.parts.timers.arm(this.#timer, idleTimeoutMs)
  }

  #end(): void {
    if (this.isOver) return
    this.transport.appendText(goawayFrame(0, errorCodes.noError, ''))
    this.#finish(new GatewayError('upstream_reset'))
  }

  /** Closes at once, and fails the requests that wait. */
  #finish(error: GatewayError): void {
    if (this.#state === 'closed') return
    const isNew = this.#state === 'connecting'
    this.#state = 'closed'
    this.isOver = true
    this.parts.timers.disarm(this.#timer)
    this.parts.counters.upstreamConnectionsOpen--
    this.#owner.sessionClosed(this)
    this.#giveBackBuffer()
    if (!this.transport.closed) {
      this.transport.flush()
      this.transport.destroy()
    }
    const left = [...this.streams.values(), ...this.#unopened]
    this.streams.clear()
    this.#unopened.clear()
    for (const stream of left) {
      stream.closeReset()
      if (stream instanceof Http2UpstreamStream && stream.id === 0 && !isNew)
        stream.isUnprocessed = true
      stream.onSessionGone(error)
    }
  }

  #giveBackBuffer(): void {
    const giveBack = (): void => this.parts.readBuffers.giveBack(this.#buffer)
    if (this.transport.isPending || this.transport.socket.closed) giveBack()
    else this.transport.socket.once('close', giveBack)
  }

  /** The upstream has broken the rules of the connection. */
  protected override fail(code: number, reason: string): void {
    if (this.isOver) return
    this.transport.appendText(goawayFrame(0, code, reason))
    this.#finish(new GatewayError('upstream_malformed', reason))
  }

  protected close(): void {
    this.#end()
  }

  /** The gateway stops. */
  shutDown(): void {
    this.#end()
  }

  onEnd(): void {
    const isNew = this.#state === 'connecting'
    const error = isNew
      ? dialError(this.#owner.address, undefined)
      : new GatewayError('upstream_reset')
    this.#finish(error)
  }

  onClose(error: Error | undefined): void {
    const isNew = this.#state === 'connecting'
    this.#finish(isNew ? dialError(this.#owner.address, error) : lostError(error))
  }

  onTimer(): void {
    if (this.#state === 'connecting') this.#finish(new GatewayError('connect_timeout'))
    else this.#end()
  }
}
