import { GatewayError } from '../../../ground/errors/index.ts'
import type { ReadBuffer } from '../bytes/read-buffers.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { ConnectionOwner, UpstreamHandler } from '../contracts/upstream.ts'
import { connectTimeout, defaultHttp2Limits, idleTimeoutMs } from '../limits/engine-limits.ts'
import { dialError, lostError, selectedVersion } from '../sockets/dial.ts'
import { type OpeningOwner, openTransport } from '../sockets/open-transport.ts'
import type { Transport } from '../sockets/transport.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'
import { currentLoopTick } from '../time/loop-ticks.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'
import { clientPreface, errorCodes, goawayFrame, protocolError, settingIds } from './frames.ts'
import { Liveness } from './liveness.ts'
import { ResponseFields } from './message-fields.ts'
import { Http2Session } from './session.ts'
import { Http2UpstreamStream } from './upstream-stream.ts'

/** Maximum number of streams of one connection, to limit how many requests are lost with it. */
const streamsLimit = 100
/** The last number that a stream can have (RFC 9113 5.1.1). */
const lastNumber = 2 ** 31 - 3

type State = 'connecting' | 'ready' | 'leaving' | 'closed'

/** One HTTP/2 connection to an upstream, shared by many requests (RFC 9113 9.1). */
export class UpstreamSession
  extends Http2Session<Http2UpstreamStream>
  implements OpeningOwner, TimerOwner
{
  #owner: ConnectionOwner<UpstreamSession>
  readonly transport: Transport
  readonly #buffer: ReadBuffer
  readonly #timer = new Timer(this)
  readonly #startedAt: number
  readonly #liveness: Liveness
  #state: State = 'connecting'
  /** Whether the settings of the upstream have arrived. */
  isSettled = false
  /** Requests that wait for the connection, or whose heads were not sent yet. */
  readonly #unopened = new Set<Http2UpstreamStream>()
  readonly #fields: ResponseFields
  /** Number of requests with a complete response. */
  #served = 0
  lostTick: number | undefined
  readonly serial: number

  constructor(
    parts: EngineParts,
    owner: ConnectionOwner<UpstreamSession>,
    { connectTimeoutMs, race }: ConnectOptions,
  ) {
    super(parts, defaultHttp2Limits, parts.limits.maxHeadBytes, parts.responseBudget)
    this.lastStream = -1
    this.#owner = owner
    this.#fields = new ResponseFields(parts.limits.maxHeadBytes)
    this.#buffer = parts.readBuffers.lease()
    this.#startedAt = parts.clock.now()
    this.#liveness = new Liveness(parts.timers, () => parts.clock.now(), this)
    const { address } = owner
    this.transport = openTransport(parts, { address, race, reads: this.#buffer, owner: this })
    parts.timers.arm(this.#timer, connectTimeout(connectTimeoutMs))
    this.serial = ++parts.counters.upstreamConnectionsTotal
    parts.counters.upstreamConnectionsOpen++
  }

  override onSettingsEnd(): void {
    super.onSettingsEnd()
    if (this.peerStreams > 0) this.#owner.expectedStreams = this.peerStreams
    if (this.isSettled) return
    this.isSettled = true
    for (const stream of [...this.#unopened]) stream.settled()
  }

  get isReady(): boolean {
    return this.#state === 'ready'
  }

  get maxStreams(): number {
    return this.peerStreams
  }

  get scheme(): 'http' | 'https' {
    return this.#owner.address.tls === undefined ? 'http' : 'https'
  }

  /** Adds the address of the upstream to an error. */
  withEndpoint(error: GatewayError): GatewayError {
    const { host, port } = this.#owner.address
    return error.at(`endpoint ${host}:${port}`)
  }

  /** Number of requests that are under way or wait for the connection. */
  get streamCount(): number {
    return this.streams.size + this.#unopened.size
  }

  /** Whether no request is under way. */
  get isIdle(): boolean {
    return this.streamCount === 0
  }

  /** Whether another request may begin here. */
  get hasRoom(): boolean {
    const allowed = this.isSettled ? this.peerStreams : this.#owner.expectedStreams
    if (this.streamCount >= Math.min(streamsLimit, allowed)) return false
    if (this.#state === 'connecting') return true
    return this.#state === 'ready' && this.#liveness.takesRequests && !this.output.isReceiveBlocked
  }

  /** Begins a stream for one request; `onUpstreamReady` is called once the connection has been made. */
  begin(handler: UpstreamHandler): Http2UpstreamStream {
    const stream = new Http2UpstreamStream(this, handler, this.#served)
    this.#unopened.add(stream)
    if (this.#state !== 'ready') return stream
    this.parts.timers.disarm(this.#timer)
    this.#liveness.onRequest()
    return stream
  }

  onAlternateAddress(address: UpstreamAddress): void {
    this.#owner = this.#owner.moved(this, address)
    for (const stream of [...this.#unopened]) stream.onAlternateAddress(address)
  }

  onReady(): void {
    if (this.#state !== 'connecting') return
    if (!this.#isSelected()) return
    const { clock, onUpstreamConnected, timers } = this.parts
    onUpstreamConnected((clock.now() - this.#startedAt) / 1_000)
    timers.disarm(this.#timer)
    this.#state = 'ready'
    this.output.writeStart(clientPreface, [[settingIds.enablePush, 0]])
    this.#liveness.start()
    for (const stream of [...this.#unopened]) stream.ready()
    this.#waitForRequest()
  }

  /** Returns false if the server has selected HTTP/1.1; the requests then move to other connections. */
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

  /** Opens a stream whose head is about to be sent: gives it a number. */
  open(stream: Http2UpstreamStream): void {
    this.#unopened.delete(stream)
    this.lastStream += 2
    stream.id = this.lastStream
    stream.output.sendWindow = this.peerWindow
    this.streams.set(stream.id, stream)
    if (this.lastStream >= lastNumber) this.#leave()
  }

  /** Called when a request was aborted before its head was sent. */
  leave(stream: Http2UpstreamStream): void {
    this.#unopened.delete(stream)
    this.onStreamGone()
  }

  /** Called when request and response are complete. */
  finished(stream: Http2UpstreamStream): void {
    this.#served++
    this.forget(stream)
  }

  /** Called when a request was abandoned whose head had been sent. */
  abandoned(): void {
    if (this.#state === 'ready') this.#liveness.onAbandoned()
  }

  // --- reading ---

  override onBytes(bytes: Buffer, start: number, end: number): void {
    this.#liveness.onActivity()
    super.onBytes(bytes, start, end)
  }

  override onDataFrame(id: number, flowLength: number): void {
    this.#liveness.onResponseFrame()
    super.onDataFrame(id, flowLength)
  }

  protected onRead(): void {
    // Exchanges have the deadlines of requests.
  }

  onHeaders(id: number, bytes: Buffer, start: number, end: number, isLast: boolean): void {
    this.#liveness.onResponseFrame()
    const stream = this.streams.get(id)
    if (stream?.hasHead === true) {
      this.onTrailers(stream, bytes, start, end, isLast)
      return
    }
    const fields = this.#fields
    fields.start()
    this.decoder.decode(bytes, start, end, fields)
    if (stream !== undefined) stream.onHead(fields, isLast)
    else if (this.isUnused(id)) throw protocolError('idle stream')
    else this.flood('late')
  }

  override onSetting(id: number, value: number): void {
    // Push is never allowed, and a server must not enable it (RFC 9113 6.5.2).
    if (id === settingIds.enablePush && value !== 0) {
      throw protocolError('a server cannot enable push')
    }
    super.onSetting(id, value)
  }

  protected faultOf(detail: string): GatewayError {
    return new GatewayError('upstream_malformed', detail)
  }

  /** The upstream has not processed requests above `lastStream`, so they are sent to another connection. */
  onGoaway(lastStream: number): void {
    this.#leave()
    for (const stream of [...this.streams.values(), ...this.#unopened]) {
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
    this.lostTick = currentLoopTick()
    this.#leave()
  }

  protected onPong(): void {
    // Any bytes show that the upstream is alive.
  }

  onUnanswered(): void {
    const missing = this.isSettled ? 'response to PING' : 'SETTINGS'
    this.#finish(new GatewayError('upstream_reset', `no ${missing} in time`))
  }

  retire(): void {
    this.#leave()
    if (this.isIdle) this.close()
  }

  // --- ends ---

  #leave(): void {
    if (this.#state !== 'ready') return
    this.#state = 'leaving'
    this.#owner.forget(this)
  }

  protected onStreamGone(): void {
    if (!this.isIdle || this.isOver) return
    if (this.#state === 'leaving') this.close()
    else this.#waitForRequest()
  }

  /** Keeps a connection without requests open for a limited time. */
  #waitForRequest(): void {
    if (this.#state !== 'ready' || !this.isIdle) return
    this.parts.timers.arm(this.#timer, idleTimeoutMs)
  }

  /** Sends GOAWAY and closes; requests that are under way fail. */
  close(): void {
    if (this.isOver) return
    this.transport.appendText(goawayFrame(0, errorCodes.noError, ''))
    this.#finish(new GatewayError('upstream_reset'))
  }

  /** Closes at once and fails all requests. */
  #finish(error: GatewayError): void {
    if (this.#state === 'closed') return
    const isNew = this.#state === 'connecting'
    this.#state = 'closed'
    this.isOver = true
    this.output.endReceiving()
    this.#liveness.stop()
    this.parts.timers.disarm(this.#timer)
    this.parts.counters.upstreamConnectionsOpen--
    this.#owner.closed(this)
    const { isPending } = this.transport
    const socket = isPending ? undefined : this.transport.socket
    this.parts.readBuffers.giveBackAfterClose(this.#buffer, socket)
    if (!this.transport.closed) {
      this.transport.flush()
      this.transport.destroy()
    }
    const left = [...this.streams.values(), ...this.#unopened]
    this.streams.clear()
    this.#unopened.clear()
    for (const stream of left) {
      stream.closeReset()
      if (stream.id === 0 && !isNew) stream.isUnprocessed = true
      stream.onSessionGone(error)
    }
  }

  /** Called when the upstream has violated the rules of the connection. */
  protected fail(code: number, reason: string): void {
    if (this.isOver) return
    this.transport.appendText(goawayFrame(0, code, reason))
    this.#finish(new GatewayError('upstream_malformed', reason))
  }

  onEnd(): void {
    this.onClose(undefined)
  }

  onClose(error: Error | undefined): void {
    const isNew = this.#state === 'connecting'
    this.#finish(isNew ? dialError(this.#owner.address, error) : lostError(error))
  }

  onTimer(): void {
    if (this.#state === 'connecting') this.#finish(new GatewayError('connect_timeout'))
    else this.close()
  }
}
