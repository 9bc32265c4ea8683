/**
 * A request that the gateway itself makes, such as a callout of a policy. It uses the same pools,
 * protocols and TLS settings as requests of clients.
 */

import { bufferOf } from '../../../ground/base/buffers.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { BodySink } from '../bytes/body-sink.ts'
import type { CallListener, CallRequest, OpenCall } from '../contracts/calls.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { UpstreamHandler, UpstreamStream } from '../contracts/upstream.ts'
import type { CallResponse } from '../message/call-response.ts'
import type { MessageBody } from '../message/message-body.ts'
import type { ResponseHeadView } from '../message/response-head.ts'
import type { UpstreamAddress } from '../sockets/upstream-address.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'
import { isOverload, Resends, unlessOverloaded } from './attempt.ts'

/** Maximum number of bytes that are kept to repeat a call on another connection. */
const replayLimit = 64 * 1024

const none: Uint8Array[] = []

/** Adds a piece. Most calls have a body of one piece, for which no array has to grow. */
function withPiece(pieces: Uint8Array[], piece: Uint8Array): Uint8Array[] {
  if (pieces.length === 0) return [piece]
  pieces.push(piece)
  return pieces
}

export class UpstreamCall implements OpenCall, UpstreamHandler, BodySink, TimerOwner {
  readonly #parts: EngineParts
  readonly #request: CallRequest
  /** Receives the response, which is ignored if this is undefined. */
  readonly #listener: CallListener | undefined
  readonly #timer = new Timer(this)
  /** Belongs to another call once this one is over. */
  readonly #response: CallResponse
  readonly upgrade = undefined
  readonly bufferHolder = undefined
  isRequestSent = false
  #address: UpstreamAddress
  #fallbackAddresses: readonly UpstreamAddress[]
  #stream: UpstreamStream | undefined
  #isReady = false
  #isOver = false
  #isPaused = false
  #isSlow = false
  readonly #resends = new Resends()
  /** Everything that was written, as long as it can be resent; undefined afterwards. */
  #written: Uint8Array[] | undefined = none
  #writtenBytes = 0
  /** Pieces of the body that wait for the connection. */
  #waiting: Uint8Array[] = none
  #trailers = ''

  constructor(parts: EngineParts, request: CallRequest, listener?: CallListener) {
    this.#parts = parts
    this.#request = request
    this.#address = request.address
    this.#fallbackAddresses = request.fallbackAddresses ?? []
    this.#listener = listener
    this.#response = parts.callResponses.take(this)
    if (request.body !== undefined) this.write(request.body)
    if (request.isOpen !== true) this.end()
    this.limit(request.timeoutMs)
  }

  get responseHead(): ResponseHeadView {
    return this.#response.head
  }

  get responseSource(): MessageBody {
    return this.#response.body
  }

  get isHead(): boolean {
    return this.#request.head.startsWith('HEAD ')
  }

  /** Connects. A failure is reported only after this method has returned. */
  start(): this {
    try {
      this.#connect(undefined)
    } catch (thrown) {
      if (!isOverload(thrown)) throw thrown
      queueMicrotask(() => this.#fail(thrown))
    }
    return this
  }

  #connect(after: UpstreamStream | undefined): void {
    const stream = this.#parts.upstreams.acquire(this.#address, this, this.#request, after)
    this.#stream = stream
    this.#resends.onAcquired(stream, this.#request.isOnce === true)
    if (stream.isIdle) stream.use(this)
  }

  // --- the request ---

  write(bytes: Uint8Array): boolean {
    if (this.#isOver || this.isRequestSent || bytes.length === 0) return true
    this.#writtenBytes += bytes.length
    if (this.#writtenBytes > replayLimit) this.#written = undefined
    else if (this.#written !== undefined) this.#written = withPiece(this.#written, bytes)
    if (!this.#isReady || this.#stream === undefined) {
      this.#waiting = withPiece(this.#waiting, bytes)
      return false
    }
    this.#send(this.#stream, bytes)
    this.#isSlow = !this.#stream.sink.flush()
    return !this.#isSlow
  }

  end(): void {
    if (this.#isOver || this.isRequestSent) return
    this.isRequestSent = true
    if (this.#isReady && this.#stream !== undefined) this.#sendEnd(this.#stream)
  }

  /** Number of written bytes that were not sent yet; all of them until the connection is made. */
  get backlog(): number {
    return this.#isReady ? (this.#stream?.backlog ?? 0) : this.#writtenBytes
  }

  #isCoded({ framesBodies }: UpstreamStream): boolean {
    return this.#request.isChunked === true && !framesBodies
  }

  #send(stream: UpstreamStream, piece: Uint8Array): void {
    const bytes = bufferOf(piece)
    const isCoded = this.#isCoded(stream)
    if (isCoded) stream.sink.appendText(`${bytes.length.toString(16)}\r\n`)
    stream.sink.appendBytes(bytes, 0, bytes.length)
    if (isCoded) stream.sink.appendText('\r\n')
  }

  #sendEnd(stream: UpstreamStream): void {
    if (this.#isCoded(stream)) stream.sink.appendText('0\r\n\r\n')
    stream.sink.endBody('')
    stream.sink.flush()
  }

  onAlternateAddress(address: UpstreamAddress): void {
    this.#address = address
    this.#request.onAlternateAddress?.(address)
  }

  onUpstreamReady(stream: UpstreamStream): void {
    this.#stream = stream
    this.#isReady = true
    stream.sendHead(this.#request.head)
    const waiting = this.#waiting
    this.#waiting = none
    for (const piece of waiting) this.#send(stream, piece)
    if (this.isRequestSent) this.#sendEnd(stream)
    else if (stream.sink.flush()) {
      if (waiting.length > 0) this.#listener?.onDrain?.()
    } else this.#isSlow = true
  }

  onUpstreamDrain(): void {
    if (!this.#isSlow) return
    this.#isSlow = false
    this.#listener?.onDrain?.()
  }

  // --- the response ---

  onInterim(): void {
    // Interim responses are ignored.
  }

  onResponseHead(): void {
    this.#written = undefined
    this.#listener?.onHead(this.responseHead.status, this.responseHead.headers)
    if (this.#isOver) return
    if (this.#listener === undefined) this.responseSource.discard()
    else this.responseSource.flow(this, false, true)
  }

  onReadEnd(): void {
    // A call does not forward its response, so there is nothing to flush.
  }

  appendText(latin1: string): void {
    if (!this.#isOver) this.#listener?.onBytes(Buffer.from(latin1, 'latin1'))
  }

  appendBytes(bytes: Buffer, start: number, end: number): void {
    if (this.#isOver) return
    const copy = Buffer.allocUnsafe(end - start)
    bytes.copy(copy, 0, start, end)
    this.#listener?.onBytes(copy)
  }

  endBody(trailers: string): void {
    this.#trailers = trailers
  }

  flush(): boolean {
    return !this.#isPaused
  }

  onResponseBody(stream: UpstreamStream): void {
    if (!this.responseSource.ended || this.#isOver) return
    if (this.#request.endsWithResponse === true) this.end()
    this.#over()
    stream.release()
    this.#parts.callResponses.keep(this.#response)
    this.#listener?.onEnd(this.#trailers)
  }

  resumeBody(): void {
    this.#stream?.resumeBody()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    if (!this.#isPaused || this.#isOver) return
    this.#isPaused = false
    this.responseSource.drained()
  }

  onTunnelBytes(): void {
    // A call never asks for an upgrade.
  }

  onTunnelEnd(): void {
    // A call never asks for an upgrade.
  }

  // --- endings ---

  limit(ms: number): void {
    if (this.#isOver) return
    if (ms > 0) this.#parts.timers.arm(this.#timer, ms)
    else this.#parts.timers.disarm(this.#timer)
  }

  onTimer(): void {
    // Closed first, so that a call which replaces this one does not use a connection that is silent.
    this.#stream?.close()
    this.#fail(new GatewayError('upstream_timeout'))
  }

  onUpstreamFailure(stream: UpstreamStream, error: GatewayError): void {
    // The whole request waits until the connection has been made, whatever its length.
    const whole = this.#isReady ? this.#written : this.#waiting
    if (whole !== undefined && this.#repeat(whole, stream, error)) return
    if (error.code === 'connect_failed' && this.#tryNext()) return
    this.responseSource.fail(error)
    this.#fail(error)
  }

  /** Tries the next address. Returns false if there is none. The whole request still waits. */
  #tryNext(): boolean {
    const [next, ...left] = this.#fallbackAddresses
    if (next === undefined || this.#isOver) return false
    this.#fallbackAddresses = left
    this.#address = next
    return unlessOverloaded(() => this.#connect(undefined))
  }

  /** Resends the whole request on another connection if that is safe. Returns false otherwise. */
  #repeat(
    written: readonly Uint8Array[],
    lostStream: UpstreamStream,
    error: GatewayError,
  ): boolean {
    if (this.#isOver) return false
    if (!this.#resends.admits(lostStream, error, this.#request.isOnce !== true)) return false
    this.#isReady = false
    this.#waiting = [...written]
    return unlessOverloaded(() => this.#connect(lostStream))
  }

  close(): void {
    if (this.#isOver) return
    const stream = this.#stream
    this.#over()
    stream?.close()
  }

  #over(): void {
    this.#isOver = true
    this.#stream = undefined
    this.#waiting = none
    this.#written = undefined
    this.#parts.timers.disarm(this.#timer)
  }

  #fail(error: GatewayError): void {
    if (this.#isOver) return
    this.#over()
    this.#listener?.onFailure(error)
  }
}
