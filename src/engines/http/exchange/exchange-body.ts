import { bufferOf } from '../../../ground/base/buffers.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { ReturnStream, SideStream } from '../../../ground/exchange/side-stream.ts'
import type { BodySink, BodySource } from '../bytes/body-sink.ts'
import { PieceQueue } from '../bytes/piece-queue.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import { MessageBody } from '../message/message-body.ts'
import type { Flushable } from '../sockets/flush-queue.ts'

/** Handles what comes back from side streams. */
export interface SideStreamOwner {
  /** Called when bytes have come back, perhaps the last ones. */
  onReturned(): void
  /** Called when the rest will not come back. */
  onReturnFailed(error: GatewayError): void
}

/**
 * A body that can be diverted into a side stream. The side stream returns another body, which is
 * forwarded in its place.
 *
 *   connection --feed--> source --flow--> side stream ... returned body --flow--> connection
 */
export class ExchangeBody extends MessageBody {
  readonly #parts: EngineParts
  readonly #owner: SideStreamOwner
  #returned: ReturnedBody | undefined
  #recordLimit = 0

  constructor(parts: EngineParts, source: BodySource, owner: SideStreamOwner) {
    super(parts.reader, source)
    this.#parts = parts
    this.#owner = owner
  }

  /** The body that is forwarded: this one, or the one that came back from the last side stream. */
  get outgoing(): ExchangeBody {
    return this.#returned === undefined ? this : this.#returned.outgoing
  }

  override start(kind: MessageBody['kind'], length: number, isReplayable: boolean): void {
    super.start(kind, length, isReplayable)
    this.#returned = undefined
    this.#recordLimit = 0
  }

  override record(maxBytes: number): void {
    this.#recordLimit = maxBytes
    super.record(maxBytes)
  }

  /** Fails this body and all bodies that came back from side streams. */
  failAll(error: GatewayError): void {
    this.fail(error)
    this.#returned?.failAll(error)
  }

  divert(stream: SideStream): ReturnStream {
    if (this.#returned !== undefined) throw new GatewayError('bug', 'the body is diverted already')
    const returned = new ReturnedBody(this.#parts, stream, this.#owner)
    returned.start('stream', -1, true)
    if (this.#recordLimit > 0) returned.record(this.#recordLimit)
    this.#returned = returned
    this.stopRecording()
    const sink = new SideStreamSink(this.#parts, stream, returned)
    returned.resume = () => {
      if (!sink.isSlow) return
      sink.isSlow = false
      this.drained()
    }
    this.flow(sink, false, false)
    return returned
  }
}

/** The body that comes back from a side stream; its length is not known beforehand. */
class ReturnedBody extends ExchangeBody implements ReturnStream {
  readonly #owner: SideStreamOwner
  resume: () => void = () => {}

  constructor(parts: EngineParts, stream: SideStream, owner: SideStreamOwner) {
    super(parts, { resumeBody: () => stream.drained() }, owner)
    this.#owner = owner
  }

  override get framing(): MessageBody['framing'] {
    const own = super.framing
    return own === 'as-is' ? 'chunked' : own
  }

  write(bytes: Uint8Array): boolean {
    if (this.ended) return true
    this.feed(bufferOf(bytes), 0, bytes.length)
    this.#owner.onReturned()
    return this.ended || this.wantsBytes
  }

  end(trailers = ''): void {
    if (this.ended) return
    this.finish(trailers)
    this.#owner.onReturned()
  }

  abort(error: GatewayError): void {
    if (this.ended && this.sent) return
    this.#owner.onReturnFailed(error)
  }
}

/**
 * Passes a body to its side stream. All bytes of one tick of the event loop become one piece, because
 * each piece costs the side stream a message, however small it is.
 */
class SideStreamSink implements BodySink, Flushable {
  readonly #parts: EngineParts
  readonly #stream: SideStream
  readonly #returned: ReturnStream
  readonly #waiting = new PieceQueue()
  #isQueued = false
  #trailers: string | undefined
  isSlow = false

  constructor(parts: EngineParts, stream: SideStream, returned: ReturnStream) {
    this.#parts = parts
    this.#stream = stream
    this.#returned = returned
  }

  appendText(latin1: string): void {
    this.#waiting.push(Buffer.from(latin1, 'latin1'), 0, latin1.length)
  }

  appendBytes(bytes: Buffer, start: number, end: number): void {
    this.#waiting.push(bytes, start, end)
  }

  endBody(trailers: string): void {
    this.#trailers = trailers
  }

  flush(): boolean {
    const trailers = this.#trailers
    if (trailers !== undefined) {
      this.#trailers = undefined
      // Nothing is left to resume.
      this.isSlow = false
      this.#stream.end(this.#waiting.takeWhole(), trailers)
    } else if (this.#waiting.size > 0 && !this.#isQueued) {
      this.#isQueued = true
      this.#parts.flushes.add(this)
    }
    return !this.isSlow
  }

  flushNow(): void {
    this.#isQueued = false
    if (this.#waiting.size === 0) return
    try {
      if (!this.#stream.push(this.#waiting.takeWhole())) this.isSlow = true
    } catch (thrown) {
      this.#returned.abort(this.#parts.toError(thrown))
    }
  }
}
