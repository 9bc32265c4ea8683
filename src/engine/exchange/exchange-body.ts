import { PieceQueue } from '../../base/piece-queue.ts'
import { GatewayError } from '../../errors/index.ts'
import type { BodyDetour, BodyOutlet } from '../../exchange/exchange.ts'
import type { BodySink, BodySource } from '../bytes/body-sink.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import { MessageBody } from '../message/message-body.ts'
import type { Flushable } from '../sockets/flush-queue.ts'

/** Called for bodies that take a detour. */
export interface DetourOwner {
  /** Something has come back, perhaps the last of it. */
  onOutletFed(): void
  /** The rest does not come back. */
  onOutletFailed(error: GatewayError): void
}

/**
 * A body that may take a detour: its bytes leave for somewhere else, and what comes back from there is
 * a body of its own, which is sent on in its place.
 *
 *   connection --feed--> source --flow--> detour ... outlet --flow--> connection
 */
export class ExchangeBody extends MessageBody {
  readonly #parts: EngineParts
  readonly #owner: DetourOwner
  #outlet: OutletBody | undefined
  #recordLimit = 0

  constructor(parts: EngineParts, source: BodySource, owner: DetourOwner) {
    super(parts.reader, source)
    this.#parts = parts
    this.#owner = owner
  }

  /** What is sent on: this body, or what came back from its last detour. */
  get outgoing(): ExchangeBody {
    return this.#outlet === undefined ? this : this.#outlet.outgoing
  }

  override start(kind: MessageBody['kind'], length: number, isReplayable: boolean): void {
    super.start(kind, length, isReplayable)
    this.#outlet = undefined
    this.#recordLimit = 0
  }

  override record(maxBytes: number): void {
    this.#recordLimit = maxBytes
    super.record(maxBytes)
  }

  /** This body and whatever came back of it. */
  failAll(error: GatewayError): void {
    this.fail(error)
    this.#outlet?.failAll(error)
  }

  detour(detour: BodyDetour): BodyOutlet {
    if (this.#outlet !== undefined) throw new GatewayError('bug', 'the body is on its way already')
    const outlet = new OutletBody(this.#parts, detour, this.#owner)
    outlet.start('stream', -1, true)
    if (this.#recordLimit > 0) outlet.record(this.#recordLimit)
    this.#outlet = outlet
    this.stopRecording()
    const sink = new DetourSink(this.#parts, detour, outlet)
    outlet.resume = () => {
      sink.isSlow = false
      this.drained()
    }
    this.flow(sink, false, false)
    return outlet
  }
}

/** What comes back from a detour; its length is not known beforehand. */
class OutletBody extends ExchangeBody implements BodyOutlet {
  readonly #owner: DetourOwner
  resume: () => void = () => {}

  constructor(parts: EngineParts, detour: BodyDetour, owner: DetourOwner) {
    super(parts, { resumeBody: () => detour.drained() }, owner)
    this.#owner = owner
  }

  override get framing(): MessageBody['framing'] {
    const own = super.framing
    return own === 'as-is' ? 'chunked' : own
  }

  /** It is not being taken for now. */
  get isFull(): boolean {
    return !this.ended && !this.wantsBytes
  }

  write(bytes: Uint8Array): boolean {
    if (this.ended) return true
    this.feed(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0, bytes.length)
    this.#owner.onOutletFed()
    return !this.isFull
  }

  end(trailers = ''): void {
    if (this.ended) return
    this.finish(trailers)
    this.#owner.onOutletFed()
  }

  abort(error: GatewayError): void {
    if (this.ended && this.sent) return
    this.#owner.onOutletFailed(error)
  }
}

/**
 * Hands a body to its detour in pieces of their own: all that came in a turn of the event loop is one
 * piece, because each costs the detour a message, however small it is.
 */
class DetourSink implements BodySink, Flushable {
  readonly #parts: EngineParts
  readonly #detour: BodyDetour
  readonly #outlet: BodyOutlet
  readonly #waiting = new PieceQueue()
  #isQueued = false
  #trailers: string | undefined
  isSlow = false

  constructor(parts: EngineParts, detour: BodyDetour, outlet: BodyOutlet) {
    this.#parts = parts
    this.#detour = detour
    this.#outlet = outlet
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
      this.#detour.end(this.#waiting.takeWhole(), trailers)
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
      if (!this.#detour.push(this.#waiting.takeWhole())) this.isSlow = true
    } catch (thrown) {
      this.#outlet.abort(this.#parts.toError(thrown))
    }
  }
}
