import { PieceQueue } from '../../base/piece-queue.ts'
import type { GatewayError } from '../../errors.ts'
import type { BodyTap } from '../bytes/body-sink.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { UpstreamLink, UpstreamUser } from '../contracts/upstream.ts'
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

class MirrorCopy implements UpstreamUser, TimerOwner {
  readonly #parts: EngineParts
  readonly response = undefined
  readonly responseHead = new ResponseHeadView()
  readonly responseSource: MessageBody
  readonly isHead: boolean
  readonly upgrade = undefined
  readonly borrower = undefined
  readonly #isChunked: boolean
  readonly #timer = new Timer(this)
  readonly #resends: Resends
  readonly #race: AddressRace | undefined
  #address: UpstreamAddress
  #link: UpstreamLink | undefined
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
    this.#resends = new Resends(parts.turns)
    this.#address = address
    this.#race = race
    parts.timers.arm(this.#timer, patienceMs)
    this.#connect(undefined)
  }

  #connect(after: UpstreamLink | undefined): void {
    const options = { connectTimeoutMs: 0, race: this.#race }
    const link = this.#parts.links.acquire(this.#address, this, options, after)
    this.#link = link
    if (link.isIdle) link.use(this)
  }

  onElsewhere(address: UpstreamAddress): void {
    this.#address = address
  }

  send(bytes: Buffer, start: number, end: number): void {
    const link = this.#link
    if (link === undefined) return
    if (this.#waiting.size + link.backlog > backlogLimit) {
      this.#giveUp()
      return
    }
    this.#waiting.push(bytes, start, end)
    if (this.#isReady && !this.#isSlow) this.#sendWaiting(link)
  }

  sendEnd(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    if (this.#isReady && !this.#isSlow && this.#link !== undefined) this.#sendWaiting(this.#link)
  }

  abandon(): void {
    if (!this.#hasEnded) this.#giveUp()
  }

  #sendWaiting(link: UpstreamLink): void {
    for (let piece = this.#waiting.shift(); piece !== undefined; piece = this.#waiting.shift()) {
      this.#write(link, piece)
    }
    if (this.#hasEnded && !this.isRequestSent) this.#writeEnd(link)
    this.#isSlow = !link.sink.flush()
  }

  resumeBody(): void {
    this.#link?.resumeBody()
  }

  onUpstreamReady(link: UpstreamLink): void {
    this.#link = link
    this.#isReady = true
    link.sendHead(this.#head)
    this.#sendWaiting(link)
  }

  onInterim(): void {
    // Nobody waits for it.
  }

  onResponseHead(): void {
    this.responseSource.discard()
  }

  onReadEnd(): void {
    // Nothing is written anywhere.
  }

  onResponseBody(link: UpstreamLink): void {
    if (!this.responseSource.ended) return
    this.#parts.timers.disarm(this.#timer)
    this.#link = undefined
    link.release()
  }

  onUpstreamFailure(link: UpstreamLink, error: GatewayError): void {
    if (this.#repeat(link, error)) return
    this.#parts.timers.disarm(this.#timer)
    this.#link = undefined
    this.#waiting.clear()
  }

  /** Until the connection stands, all of the copy waits for it, and may wait for another one. */
  #repeat(died: UpstreamLink, error: GatewayError): boolean {
    if (this.#isReady || !this.#resends.admits(died, error, false)) return false
    return unlessOverloaded(() => this.#connect(died))
  }

  onUpstreamDrain(): void {
    this.#isSlow = false
    if (this.#isReady && this.#link !== undefined) this.#sendWaiting(this.#link)
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

  #write(link: UpstreamLink, piece: Buffer): void {
    const isChunked = this.#isChunked && !link.framesBodies
    if (isChunked) link.sink.appendText(`${piece.length.toString(16)}\r\n`)
    link.sink.appendBytes(piece, 0, piece.length)
    if (isChunked) link.sink.appendText('\r\n')
  }

  #writeEnd(link: UpstreamLink): void {
    this.isRequestSent = true
    if (this.#isChunked && !link.framesBodies) link.sink.appendText('0\r\n\r\n')
    link.sink.endBody('')
  }

  #giveUp(): void {
    this.#parts.timers.disarm(this.#timer)
    this.#waiting.clear()
    const link = this.#link
    this.#link = undefined
    link?.close()
  }
}
