import type { GatewayError } from '../../../ground/errors/index.ts'
import { PieceQueue } from '../bytes/piece-queue.ts'
import type { TunnelEnd } from '../bytes/tunnel.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { Http2Limits } from '../limits/engine-limits.ts'
import type { MessageBody } from '../message/message-body.ts'
import { errorCodes } from './frames.ts'
import { type OutputStream, type SessionOutput, StreamOutput } from './output.ts'

/** The members of a connection that its streams use. */
export interface StreamSession {
  readonly parts: EngineParts
  readonly limits: Http2Limits
  readonly output: SessionOutput
  /** Resets a stream with this error code and forgets it. */
  reset(stream: Http2Stream, code: number): void
  /** Like `reset`, for a protocol violation of the peer. */
  abortStream(stream: Http2Stream, code: number, detail: string): void
  /** Forgets a stream that both sides have ended. */
  forget(stream: Http2Stream): void
}

/**
 * One request and its response on a connection. Received data goes into a body while the body wants
 * it, and otherwise waits here, bounded by the window. The window is reopened as data is taken, so
 * that a slow reader at the other end slows the peer down (RFC 9113 5.2).
 */
export abstract class Http2Stream<Session extends StreamSession = StreamSession>
  implements OutputStream
{
  /** Number of the stream; 0 until it is opened. */
  id: number
  protected readonly session: Session
  readonly output: StreamOutput
  /** Set for streams that become tunnels. */
  #tunnel: StreamTunnel | undefined
  receiveWindow: number
  /** Whether END_STREAM has arrived, or no more data is accepted. */
  isReceiveClosed = false
  readonly #held = new PieceQueue()
  #trailers = ''
  /** Value of Content-Length; negative if the head has none. */
  #announced = -1
  #received = 0
  #uncredited = 0
  #isFinished = false

  constructor(session: Session, id: number, sendWindow: number) {
    this.session = session
    this.id = id
    this.output = new StreamOutput(session.output, this, sendWindow)
    this.receiveWindow = session.limits.streamWindowBytes
  }

  /** The body that receives the data; if undefined, data is dropped. */
  protected abstract get body(): MessageBody | undefined
  /** Called when the peer has violated the protocol; the stream was reset already. */
  abstract onBroken(error: GatewayError): void
  /** Called when the body has received data, perhaps its last. */
  protected abstract onFed(): void
  /** Called when the peer has reset the stream. */
  abstract onReset(code: number): void
  /** Called when the connection is gone. */
  abstract onSessionGone(error: GatewayError): void
  abstract encodeHead(head: string): string
  abstract onSendEnd(): void
  abstract onSendDrain(): void
  abstract onTunnelBytes(bytes: Buffer, start: number, end: number): void
  /** Called when the peer sends nothing more into the tunnel. */
  abstract onTunnelEnd(): void

  get sink(): StreamOutput {
    return this.output
  }

  /** Number of bytes that wait for the peer. */
  get backlog(): number {
    return this.output.backlog
  }

  /** The end of the tunnel through this stream. */
  get tunnelEnd(): StreamTunnel {
    this.#tunnel ??= new StreamTunnel(this)
    return this.#tunnel
  }

  /** Whether data goes into a tunnel. */
  protected get isTunnel(): boolean {
    return this.#tunnel?.isOpen === true
  }

  /** Whether data of the tunnel waits for the other end. */
  protected get hasUndelivered(): boolean {
    return this.#tunnel?.hasWaiting === true
  }

  /** Number of octets of data received. */
  get receivedBytes(): number {
    return this.#received
  }

  /** Called when a head has been read after which data may follow. */
  protected expect(contentLength: number): void {
    this.#announced = contentLength
  }

  onData(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.#tunnel?.isOpen === true) {
      this.#tunnel.take(bytes, start, end)
      if (isLast) this.endReceiving('')
      return
    }
    this.#received += end - start
    if (this.#announced >= 0 && this.#received > this.#announced) {
      this.session.output.credit(end - start)
      this.broken('more data than content-length')
      return
    }
    if (isLast && !this.#close()) {
      this.session.output.credit(end - start)
      return
    }
    const { body } = this
    if (body === undefined) this.credit(end - start)
    else if (this.#held.size > 0 || !body.wantsBytes) {
      this.#held.push(bytes, start, end)
    } else this.#feed(body, bytes, start, end)
  }

  /** Called when data and trailers are complete. */
  endReceiving(trailers: string): void {
    if (trailers !== '' && this.isTunnel) {
      // RFC 9113 8.5: only DATA and frames that manage the stream may follow.
      this.broken('trailers in a tunnel')
      return
    }
    this.#trailers = trailers
    if (this.isReceiveClosed || this.#close()) {
      if (this.#held.size === 0) this.#finish()
    }
    this.#tunnel?.endIfReceived()
  }

  /** Closes the receiving side. Returns false if data is missing (RFC 9113 8.1.1). */
  #close(): boolean {
    this.isReceiveClosed = true
    if (this.#announced < 0 || this.#received === this.#announced) return true
    this.broken('less data than content-length')
    return false
  }

  /** Lets the peer send more data, because the reader of the body needs it. */
  protected resumeReceiving(): void {
    for (let body = this.body; body?.wantsBytes === true; body = this.body) {
      const piece = this.#held.shift()
      if (piece === undefined) break
      this.#feed(body, piece, 0, piece.length)
    }
    if (this.isReceiveClosed && this.#held.size === 0) this.#finish()
  }

  #feed(body: MessageBody, bytes: Buffer, start: number, end: number): void {
    const isLast = this.isReceiveClosed && this.#held.size === 0 && this.#trailers === ''
    this.#isFinished = isLast
    this.credit(end - start)
    try {
      body.feed(bytes, start, end, isLast)
    } catch (thrown) {
      this.#abort(thrown)
      return
    }
    this.onFed()
  }

  #finish(): void {
    if (this.#isFinished) return
    this.#isFinished = true
    const { body } = this
    if (body === undefined || body.ended) return
    try {
      body.finish(this.#trailers)
    } catch (thrown) {
      this.#abort(thrown)
      return
    }
    this.onFed()
  }

  /** Called when a transform of the body has thrown. */
  #abort(thrown: unknown): void {
    this.session.reset(this, errorCodes.internal)
    this.onBroken(this.session.parts.toError(thrown))
  }

  /** Resets the stream because the peer has violated the protocol. */
  protected broken(detail: string, code: number = errorCodes.protocol): void {
    this.session.abortStream(this, code, detail)
  }

  /** Called when data has been taken, so that the peer may send as much again. */
  credit(length: number): void {
    this.session.output.credit(length)
    this.#uncredited += length
    if (this.isReceiveClosed || this.#uncredited * 2 < this.session.limits.streamWindowBytes) return
    this.receiveWindow += this.#uncredited
    this.session.output.updateWindow(this.id, this.#uncredited)
    this.#uncredited = 0
  }

  /** Removes and returns a waiting piece of data, for a tunnel. */
  takeHeld(): Buffer | undefined {
    return this.#held.shift()
  }

  /** Drops waiting data and accepts no more. */
  protected closeReceiving(): void {
    this.isReceiveClosed = true
    this.#isFinished = true
    const waiting = this.#held.size
    this.#held.take()
    const dropped = waiting + (this.#tunnel?.drop() ?? 0)
    if (dropped > 0) this.session.output.credit(dropped)
  }

  /** Called when the peer has reset the stream. */
  closeReset(): void {
    this.closeBoth()
  }

  /** Stops sending and receiving. */
  closeBoth(): void {
    this.output.close()
    this.closeReceiving()
  }
}

/**
 * The end of a tunnel that an extended CONNECT has opened through a stream (RFC 8441). Data that
 * arrives before the tunnel is open waits in the stream. Data waits here while the other end is slow.
 */
class StreamTunnel implements TunnelEnd {
  readonly #stream: Http2Stream
  /** Whether data goes into the tunnel. */
  isOpen = false
  #isPaused = false
  #hasEnded = false
  readonly #waiting = new PieceQueue()

  constructor(stream: Http2Stream) {
    this.#stream = stream
  }

  get hasWaiting(): boolean {
    return this.#waiting.size > 0
  }

  /** Opens the tunnel. Data that has waited goes into it first. */
  open(): void {
    const stream = this.#stream
    this.isOpen = true
    this.#isPaused = false
    for (let piece = stream.takeHeld(); piece !== undefined; piece = stream.takeHeld()) {
      this.take(piece, 0, piece.length)
    }
    this.endIfReceived()
  }

  take(bytes: Buffer, start: number, end: number): void {
    if (this.#isPaused) this.#waiting.push(bytes, start, end)
    else this.#passOn(bytes, start, end)
  }

  /** Forwards the end of the stream once no data waits. */
  endIfReceived(): void {
    if (!this.isOpen || !this.#stream.isReceiveClosed) return
    if (this.#waiting.size > 0 || this.#hasEnded) return
    this.#hasEnded = true
    this.#stream.onTunnelEnd()
  }

  appendBytes(bytes: Buffer, start: number, end: number): void {
    this.#stream.output.appendBytes(bytes, start, end)
  }

  flush(): boolean {
    return this.#stream.output.flush()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    while (!this.#isPaused) {
      const piece = this.#waiting.shift()
      if (piece === undefined) break
      this.#passOn(piece, 0, piece.length)
    }
    this.endIfReceived()
  }

  end(): void {
    this.#stream.output.end()
  }

  #passOn(bytes: Buffer, start: number, end: number): void {
    this.#stream.credit(end - start)
    this.#stream.onTunnelBytes(bytes, start, end)
  }

  /** Drops waiting data and returns its size. */
  drop(): number {
    const dropped = this.#waiting.size
    this.#waiting.take()
    return dropped
  }
}
