import { GatewayError } from '../../errors.ts'
import type { BodyDetour, BodyOutlet } from '../../exchange/exchange.ts'
import type { BodySink, BodySource } from '../bytes/body-sink.ts'
import type { HeadReader } from '../message/head-reader.ts'
import { MessageBody } from '../message/message-body.ts'

/** Who hears of bodies that took a detour. */
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
  readonly #reader: HeadReader
  readonly #owner: DetourOwner
  #outlet: OutletBody | undefined
  #recordLimit = 0

  constructor(reader: HeadReader, source: BodySource, owner: DetourOwner) {
    super(reader, source)
    this.#reader = reader
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
    const outlet = new OutletBody(this.#reader, detour, this.#owner)
    outlet.start('stream', -1, true)
    if (this.#recordLimit > 0) outlet.record(this.#recordLimit)
    this.#outlet = outlet
    this.stopRecording()
    const sink = new DetourSink(detour)
    outlet.resume = () => {
      sink.isSlow = false
      this.drained()
    }
    this.flow(sink, false, false)
    return outlet
  }
}

/** What comes back from a detour; of a length that nobody knows beforehand. */
class OutletBody extends ExchangeBody implements BodyOutlet {
  readonly #owner: DetourOwner
  resume: () => void = () => {}

  constructor(reader: HeadReader, detour: BodyDetour, owner: DetourOwner) {
    super(reader, { resumeBody: () => detour.drained() }, owner)
    this.#owner = owner
  }

  override get framing(): MessageBody['framing'] {
    const own = super.framing
    return own === 'as-is' ? 'chunked' : own
  }

  /** Nobody takes it for now. */
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

/** Hands a body to its detour in pieces of their own. */
class DetourSink implements BodySink {
  readonly #detour: BodyDetour
  #pieces: Buffer[] = []
  #end: string | undefined
  isSlow = false

  constructor(detour: BodyDetour) {
    this.#detour = detour
  }

  appendText(latin1: string): void {
    this.#pieces.push(Buffer.from(latin1, 'latin1'))
  }

  appendBytes(bytes: Buffer, start: number, end: number): void {
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)))
  }

  endBody(trailers: string): void {
    this.#end = trailers
  }

  flush(): boolean {
    const pieces = this.#pieces
    this.#pieces = []
    const [first] = pieces
    const all = pieces.length === 1 ? first : Buffer.concat(pieces)
    if (this.#end !== undefined) {
      const trailers = this.#end
      this.#end = undefined
      this.#detour.end(all ?? Buffer.alloc(0), trailers)
    } else if (all !== undefined && all.length > 0 && !this.#detour.push(all)) this.isSlow = true
    return !this.isSlow
  }
}
