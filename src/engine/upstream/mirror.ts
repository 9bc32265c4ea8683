import { PieceQueue } from '../../base/piece-queue.ts'
import type { GatewayError } from '../../errors/index.ts'
import type { BodyTap } from '../bytes/body-sink.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { UpstreamHandler, UpstreamStream } from '../contracts/upstream.ts'
import type { FramingFields } from '../message/head-output.ts'
import { MessageBody } from '../message/message-body.ts'
import type { RequestHeadView } from '../message/request-head.ts'
import { ResponseHeadView } from '../message/response-head.ts'
import type { AddressRace, UpstreamAddress } from '../sockets/upstream-address.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'
import { isOverload, Resends, unlessOverloaded } from './resends.ts'

/** Bytes that may wait for a mirror; one that falls further behind is given up. */
const backlogLimit = 256 * 1024
/** Milliseconds from start to the end of its response; then a mirror is given up. */
const patienceMs = 30_000

/** Where a copy goes, with the head that it has. */
export interface MirrorTarget {
  readonly address: UpstreamAddress
  /** The other addresses of its name, if there are any. */
  readonly race?: AddressRace | undefined
  /** As HTTP/1.1 has it, without what frames the body and without its empty line. */
  readonly head: string
  readonly isHead: boolean
}

/** A request that is about to be forwarded. */
interface Forwarded {
  readonly request: RequestHeadView
  readonly requestBody: MessageBody
  readonly requestFraming: FramingFields
}

/** Sends copies of a request that is about to be forwarded. */
export function startMirror(
  parts: EngineParts,
  to: readonly MirrorTarget[],
  { request, requestBody, requestFraming }: Forwarded,
): void {
  // The copies get the body that is sent, whatever it was when they were asked for.
  const end = `${request.framingLine(requestFraming)}\r\n`
  try {
    requestBody.tap = new Mirror(parts, to, end, request.isSentChunked(requestFraming))
  } catch (thrown) {
    // A mirror never matters to the request.
    if (!isOverload(thrown)) throw thrown
  }
}

/** Copies of one request to other addresses. Nothing that happens to them reaches the exchange. */
class Mirror implements BodyTap {
  readonly #copies: MirrorCopy[]

  /** `end`: what completes the heads. */
  constructor(
    parts: EngineParts,
    targets: readonly MirrorTarget[],
    end: string,
    isChunked: boolean,
  ) {
    this.#copies = targets.map((target) => new MirrorCopy(parts, target, end, isChunked))
  }

  onSent(bytes: Buffer, start: number, end: number): void {
    for (const copy of this.#copies) copy.send(bytes, start, end)
  }

  onSentEnd(): void {
    for (const copy of this.#copies) copy.sendEnd()
  }

  onAbandon(): void {
    for (const copy of this.#copies) copy.abandon()
  }
}

class MirrorCopy implements UpstreamHandler, TimerOwner {
  readonly #parts: EngineParts
  readonly response = undefined
  readonly responseHead = new ResponseHeadView()
  readonly responseSource: MessageBody
  readonly isHead: boolean
  readonly upgrade = undefined
  readonly bufferHolder = undefined
  readonly #isChunked: boolean
  readonly #timer = new Timer(this)
  readonly #resends: Resends
  readonly #race: AddressRace | undefined
  #address: UpstreamAddress
  #stream: UpstreamStream | undefined
  readonly #head: string
  #isReady = false
  /** Bytes of the body that wait for the connection, or for room in it. */
  readonly #waiting = new PieceQueue()
  #isSlow = false
  /** Nothing more comes of the body. */
  #hasEnded = false
  isRequestSent = false

  constructor(parts: EngineParts, target: MirrorTarget, end: string, isChunked: boolean) {
    const { address, race, head, isHead } = target
    this.#parts = parts
    this.isHead = isHead
    this.#isChunked = isChunked
    this.responseSource = new MessageBody(parts.reader, this)
    this.#head = head + end
    this.#resends = new Resends(parts.loopTicks)
    this.#address = address
    this.#race = race
    parts.timers.arm(this.#timer, patienceMs)
    this.#connect(undefined)
  }

  #connect(after: UpstreamStream | undefined): void {
    const options = { connectTimeoutMs: 0, race: this.#race }
    const stream = this.#parts.upstreams.acquire(this.#address, this, options, after)
    this.#stream = stream
    if (stream.isIdle) stream.use(this)
  }

  onAlternateAddress(address: UpstreamAddress): void {
    this.#address = address
  }

  send(bytes: Buffer, start: number, end: number): void {
    const stream = this.#stream
    if (stream === undefined) return
    if (this.#waiting.size + stream.backlog > backlogLimit) {
      this.#giveUp()
      return
    }
    this.#waiting.push(bytes, start, end)
    if (this.#isReady && !this.#isSlow) this.#sendWaiting(stream)
  }

  sendEnd(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    if (this.#isReady && !this.#isSlow && this.#stream !== undefined)
      this.#sendWaiting(this.#stream)
  }

  abandon(): void {
    if (!this.#hasEnded) this.#giveUp()
  }

  #sendWaiting(stream: UpstreamStream): void {
    for (let piece = this.#waiting.shift(); piece !== undefined; piece = this.#waiting.shift()) {
      this.#write(stream, piece)
    }
    if (this.#hasEnded && !this.isRequestSent) this.#writeEnd(stream)
    this.#isSlow = !stream.sink.flush()
  }

  resumeBody(): void {
    this.#stream?.resumeBody()
  }

  onUpstreamReady(stream: UpstreamStream): void {
    this.#stream = stream
    this.#isReady = true
    stream.sendHead(this.#head)
    this.#sendWaiting(stream)
  }

  onInterim(): void {
    // Interim responses are ignored.
  }

  onResponseHead(): void {
    this.responseSource.discard()
  }

  onReadEnd(): void {
    // Nothing is written anywhere.
  }

  onResponseBody(stream: UpstreamStream): void {
    if (!this.responseSource.ended) return
    this.#parts.timers.disarm(this.#timer)
    this.#stream = undefined
    stream.release()
  }

  onUpstreamFailure(stream: UpstreamStream, error: GatewayError): void {
    if (this.#repeat(stream, error)) return
    this.#parts.timers.disarm(this.#timer)
    this.#stream = undefined
    this.#waiting.clear()
  }

  /** Until the connection stands, all of the copy waits for it, and may wait for another one. */
  #repeat(died: UpstreamStream, error: GatewayError): boolean {
    if (this.#isReady || !this.#resends.admits(died, error, false)) return false
    return unlessOverloaded(() => this.#connect(died))
  }

  onUpstreamDrain(): void {
    this.#isSlow = false
    if (this.#isReady && this.#stream !== undefined) this.#sendWaiting(this.#stream)
  }

  onTunnelBytes(): void {
    // Mirrors never ask for an upgrade.
  }

  onTunnelEnd(): void {
    // Mirrors never ask for an upgrade.
  }

  onTimer(): void {
    this.#giveUp()
  }

  #write(stream: UpstreamStream, piece: Buffer): void {
    const isChunked = this.#isChunked && !stream.framesBodies
    if (isChunked) stream.sink.appendText(`${piece.length.toString(16)}\r\n`)
    stream.sink.appendBytes(piece, 0, piece.length)
    if (isChunked) stream.sink.appendText('\r\n')
  }

  #writeEnd(stream: UpstreamStream): void {
    this.isRequestSent = true
    if (this.#isChunked && !stream.framesBodies) stream.sink.appendText('0\r\n\r\n')
    stream.sink.endBody('')
  }

  #giveUp(): void {
    this.#parts.timers.disarm(this.#timer)
    this.#waiting.clear()
    const stream = this.#stream
    this.#stream = undefined
    stream?.close()
  }
}
