import { PieceQueue } from '../../base/piece-queue.ts'
import type { GatewayError } from '../../errors/index.ts'
import type { MessageBody } from '../message/message-body.ts'
import { errorCodes } from './frames.ts'
import type { SessionOutput } from './session-output.ts'
import { type OutputStream, StreamOutput } from './stream-output.ts'
import { StreamTunnel } from './stream-tunnel.ts'

/** What a stream needs from its connection. */
export interface StreamSession {
  readonly output: SessionOutput
  /** What we admit to one stream. */
  readonly streamWindow: number
  /** Tells the peer that a stream is over, and forgets it. */
  reset(stream: Http2Stream, code: number): void
  /** The same for a fault of the peer. */
  abortStream(stream: Http2Stream, code: number, detail: string): void
  /** Both sides have ended a stream. */
  forget(stream: Http2Stream): void
  toError(thrown: unknown): GatewayError
}

/**
 * One request and its response on a connection. Received data goes on into a body while that wants
 * it, and else waits here, bounded by the window that we have given. The window is given back as data
 * is taken, so that a slow reader at the other end slows the peer down (RFC 9113 5.2).
 */
export abstract class Http2Stream implements OutputStream {
  /** 0 while the stream is not open. */
  id: number
  protected readonly session: StreamSession
  readonly output: StreamOutput
  /** Made for streams that leave HTTP. */
  #tunnel: StreamTunnel | undefined
  receiveWindow: number
  /** END_STREAM has arrived, or nothing more is taken. */
  isReceiveClosed = false
  readonly #held = new PieceQueue()
  #trailers = ''
  /** Content-Length; negative if the head named none. */
  #announced = -1
  #received = 0
  #uncredited = 0
  #isFinished = false

  constructor(session: StreamSession, id: number, sendWindow: number, receiveWindow: number) {
    this.session = session
    this.id = id
    this.output = new StreamOutput(session.output, this, sendWindow)
    this.receiveWindow = receiveWindow
  }

  /** Where data goes; undefined drops it. */
  protected abstract get body(): MessageBody | undefined
  /** The peer has broken the rules of this stream; it was reset already. */
  abstract onBroken(error: GatewayError): void
  /** The body has taken something, perhaps the last of it. */
  protected abstract onFed(): void
  /** The peer has reset the stream. */
  abstract onReset(code: number): void
  /** The connection is gone. */
  abstract onSessionGone(error: GatewayError): void
  abstract encodeHead(head: string): string
  abstract onSendEnd(): void
  abstract onSendDrain(): void
  abstract onTunnelBytes(bytes: Buffer, start: number, end: number): void
  /** The peer sends nothing more into the tunnel. */
  abstract onTunnelEnd(): void

  /** Streams of a peer are open from the start. */
  mayOpen(): boolean {
    return true
  }

  open(): void {
    // Streams of a peer have their numbers.
  }

  /** The end of a tunnel through this stream. */
  get tunnelEnd(): StreamTunnel {
    this.#tunnel ??= new StreamTunnel(this)
    return this.#tunnel
  }

  /** Data goes into a tunnel. */
  protected get isTunnel(): boolean {
    return this.#tunnel?.isOpen === true
  }

  /** Octets of data received. */
  get receivedBytes(): number {
    return this.#received
  }

  /** A head has been read; data may follow. */
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
      this.broken('more data than content-length')
      return
    }
    if (isLast && !this.#close()) return
    const { body } = this
    if (body === undefined) this.credit(end - start)
    else if (this.#held.size > 0 || !body.wantsBytes) {
      this.#held.push(bytes, start, end)
    } else this.#feed(body, bytes, start, end)
  }

  /** Data and trailers are complete. */
  endReceiving(trailers: string): void {
    this.#trailers = trailers
    if (this.isReceiveClosed || this.#close()) {
      if (this.#held.size === 0) this.#finish()
    }
    this.#tunnel?.endIfReceived()
  }

  /** Nothing more will come; false where something is missing (RFC 9113 8.1.1). */
  #close(): boolean {
    this.isReceiveClosed = true
    if (this.#announced < 0 || this.#received === this.#announced) return true
    this.broken('less data than content-length')
    return false
  }

  /** The body wants (more of) its bytes. */
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
      this.session.reset(this, errorCodes.internal)
      this.onBroken(this.session.toError(thrown))
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
      this.session.reset(this, errorCodes.internal)
      this.onBroken(this.session.toError(thrown))
      return
    }
    this.onFed()
  }

  /** Resets the stream for what the peer has done. */
  protected broken(detail: string, code: number = errorCodes.protocol): void {
    this.session.abortStream(this, code, detail)
  }

  /** Data has been taken: the peer may send as much again. */
  credit(length: number): void {
    this.session.output.credit(length)
    this.#uncredited += length
    if (this.isReceiveClosed || this.#uncredited * 2 < this.session.streamWindow) return
    this.receiveWindow += this.#uncredited
    this.session.output.updateWindow(this.id, this.#uncredited)
    this.#uncredited = 0
  }

  /** Takes out a piece that waits, for a tunnel. */
  takeHeld(): Buffer | undefined {
    return this.#held.shift()
  }

  /** Drops what waits. */
  protected closeReceiving(): void {
    this.isReceiveClosed = true
    this.#isFinished = true
    const waiting = this.#held.size
    this.#held.take()
    const dropped = waiting + (this.#tunnel?.drop() ?? 0)
    if (dropped > 0) this.session.output.credit(dropped)
  }

  /** The peer has reset the stream. */
  closeReset(): void {
    this.closeBoth()
  }

  /** Nothing is sent or taken any more. */
  closeBoth(): void {
    this.output.close()
    this.closeReceiving()
  }
}
