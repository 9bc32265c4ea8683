/**
 * Responses that a client of HTTP/2 does not take. Each holds a read buffer of its upstream for as
 * long as it waits, and one connection may have many: with windows that never open, a few clients
 * could take the buffers of everybody (CVE-2019-9517 is of that kind). Others bound the time without
 * a byte (nginx's send_timeout: 60 s; Envoy's stream_idle_timeout: 5 min). Here the time depends on
 * what a stream costs, so that a reader that has paused may go on pausing:
 *
 *   no byte was ever admitted (a window of 0 from the start)       15 s
 *   others, beyond the first 16 that stand still on a connection   60 s
 *   any, while buffers are scarce                                  10 s
 *   else                                                           the engine's limit of progress
 *
 * A connection on which 16 stand still begins no more streams: those are refused in the way that
 * lets clients ask again (RFC 9113 8.7).
 */
import type { EngineParts } from '../contracts/engine-parts.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'

/** How often streams that wait are looked at. */
const lookMs = 5_000
const neverMs = 15_000
const crowdedMs = 60_000
const scarceMs = 10_000
/** Streams of one connection that may stand still. */
export const mostStalled = 16

/** One response as far as this cares. */
interface StallingStream {
  /** Bytes that wait for the client. */
  readonly backlog: number
  /** Octets of the response that have been sent. */
  readonly sentBytes: number
  readonly stall: Stall
  /** Something is still to come from the client: data, or room for ours. */
  readonly awaitsClient: boolean
  /** Octets moved both ways, and how many when `dropMotionless` looked last. */
  readonly moved: number
  progress: number
}

/** What is known of a stream that waits. */
export class Stall {
  /** `sentBytes` when it was looked at last; -1 before. */
  sentBytes = -1
  /** Milliseconds at the first look that found no progress since the one before. */
  since = 0
  isStill = false
}

export interface StallOwner<Stream> {
  /** All streams of the connection. */
  stallingStreams(): Iterable<Stream>
  /** Gives a stream up. */
  dropStalled(stream: Stream): void
}

/** Those of one connection. */
export class StalledStreams<Stream extends StallingStream> implements TimerOwner {
  readonly #parts: EngineParts
  readonly #owner: StallOwner<Stream>
  readonly #timer = new Timer(this)
  #isLooking = false
  /** At the last look. */
  #still = 0

  constructor(parts: EngineParts, owner: StallOwner<Stream>) {
    this.#parts = parts
    this.#owner = owner
  }

  /** A stream has something that it may not send now. */
  onWait(): void {
    if (this.#isLooking) return
    this.#isLooking = true
    this.#parts.timers.arm(this.#timer, lookMs)
  }

  /** Do so many stand still that no other may begin? Looks at them only where that may be. */
  get isCrowded(): boolean {
    if (this.#still < mostStalled) return false
    let still = 0
    for (const stream of this.#owner.stallingStreams()) if (isStill(stream)) still++
    this.#still = still
    return still >= mostStalled
  }

  stop(): void {
    this.#parts.timers.disarm(this.#timer)
  }

  onTimer(): void {
    const now = this.#parts.clock.now()
    const still: Stream[] = []
    let isAnyWaiting = false
    for (const stream of this.#owner.stallingStreams()) {
      if (stream.backlog === 0) continue
      isAnyWaiting = true
      const { stall } = stream
      if (isStill(stream)) still.push(stream)
      else if (stall.sentBytes === stream.sentBytes) {
        stall.isStill = true
        stall.since = now - lookMs
        still.push(stream)
      } else stall.isStill = false
      stall.sentBytes = stream.sentBytes
    }
    this.#still = still.length
    this.#isLooking = isAnyWaiting
    if (isAnyWaiting) this.#parts.timers.arm(this.#timer, lookMs)
    this.#drop(still, now)
  }

  /** Gives up the streams whose client has done nothing since the last call. */
  dropMotionless(): void {
    for (const stream of [...this.#owner.stallingStreams()]) {
      if (!stream.awaitsClient || stream.moved !== stream.progress) stream.progress = stream.moved
      else this.#give(stream)
    }
  }

  #give(stream: Stream): void {
    if (stream.backlog > 0) this.#parts.counters.http2StreamsStalled++
    this.#owner.dropStalled(stream)
  }

  /** Those that have stood still for longest go first. */
  #drop(still: Stream[], now: number): void {
    const isScarce = this.#parts.readBuffers.isScarce
    let left = still.length
    still.sort((a, b) => a.stall.since - b.stall.since)
    for (const stream of still) {
      const ms = limitOf(stream, left > mostStalled, isScarce)
      if (now - stream.stall.since < ms) continue
      left--
      this.#give(stream)
    }
    this.#still = left
  }
}

/** Was the stream found without progress, and has had none since? */
function isStill({ backlog, sentBytes, stall }: StallingStream): boolean {
  return backlog > 0 && stall.isStill && stall.sentBytes === sentBytes
}

function limitOf({ sentBytes }: StallingStream, isOneTooMany: boolean, isScarce: boolean): number {
  if (isScarce) return scarceMs
  if (sentBytes === 0) return neverMs
  return isOneTooMany ? crowdedMs : Number.POSITIVE_INFINITY
}
