/**
 * Aborts responses that a client of HTTP/2 does not read. While such a response waits, it occupies a
 * read buffer of its upstream connection, and one connection may have many streams: with windows that
 * never open, a few clients could occupy all buffers (as in CVE-2019-9517). Other proxies limit the
 * time without a byte (nginx's send_timeout: 60 s; Envoy's stream_idle_timeout: 5 min). Here the limit
 * depends on what a stream costs, so that a slow reader may pause for long if it harms no other
 * client:
 *
 *   the client has never opened the window (0 from the start)      15 s
 *   streams beyond the first 16 stalled ones of a connection       60 s
 *   any stream, while buffers are scarce                           10 s
 *   all other streams                                              the engine's limit of progress
 *
 * A connection with 16 stalled streams cannot begin another: new streams are refused with a code that
 * lets clients retry (RFC 9113 8.7).
 */
import type { EngineParts } from '../contracts/engine-parts.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'
import type { Http2DownstreamStream } from './downstream-stream.ts'

/** How often waiting streams are checked. */
const checkMs = 5_000
const unopenedMs = 15_000
const crowdedMs = 60_000
const scarceMs = 10_000
/** Maximum number of stalled streams on one connection. */
export const mostStalled = 16

type Streams = ReadonlyMap<number, Http2DownstreamStream>

/** Finds and aborts the stalled streams of one connection. */
export class StalledStreams implements TimerOwner {
  readonly #parts: EngineParts
  readonly #streams: Streams
  readonly #timer = new Timer(this)
  #isChecking = false
  /** Number of stalled streams at the last check. */
  #stalledCount = 0

  constructor(parts: EngineParts, streams: Streams) {
    this.#parts = parts
    this.#streams = streams
  }

  /** Called when a stream has something to send that may not be sent now. */
  onWait(): void {
    if (this.#isChecking) return
    this.#isChecking = true
    this.#parts.timers.arm(this.#timer, checkMs)
  }

  /** Whether too many streams are stalled for another to begin. Counts again only if the last count was. */
  get isCrowded(): boolean {
    if (this.#stalledCount < mostStalled) return false
    let stalled = 0
    for (const stream of this.#streams.values()) if (isStalled(stream)) stalled++
    this.#stalledCount = stalled
    return stalled >= mostStalled
  }

  stop(): void {
    this.#parts.timers.disarm(this.#timer)
  }

  onTimer(): void {
    const now = this.#parts.clock.now()
    const stalled: Http2DownstreamStream[] = []
    let isAnyWaiting = false
    for (const stream of this.#streams.values()) {
      if (stream.backlog === 0) continue
      isAnyWaiting = true
      const { stall } = stream
      if (isStalled(stream)) stalled.push(stream)
      else if (stall.sentBytes === stream.sentBytes) {
        stall.isStalled = true
        stall.since = now - checkMs
        stalled.push(stream)
      } else stall.isStalled = false
      stall.sentBytes = stream.sentBytes
    }
    this.#stalledCount = stalled.length
    this.#isChecking = isAnyWaiting
    if (isAnyWaiting) this.#parts.timers.arm(this.#timer, checkMs)
    this.#drop(stalled, now)
  }

  /** Aborts streams whose client has done nothing since the last call. */
  dropMotionless(): void {
    for (const stream of [...this.#streams.values()]) {
      if (!stream.awaitsClient || stream.moved !== stream.progress) stream.progress = stream.moved
      else this.#giveUp(stream)
    }
  }

  #giveUp(stream: Http2DownstreamStream): void {
    if (stream.backlog > 0) this.#parts.counters.http2StreamsStalled++
    stream.drop()
  }

  /** Aborts streams that were stalled for too long, those that stalled first before the rest. */
  #drop(stalled: Http2DownstreamStream[], now: number): void {
    const isScarce = this.#parts.readBuffers.isScarce
    let left = stalled.length
    stalled.sort((a, b) => a.stall.since - b.stall.since)
    for (const stream of stalled) {
      const ms = limitOf(stream, left > mostStalled, isScarce)
      if (now - stream.stall.since < ms) continue
      left--
      this.#giveUp(stream)
    }
    this.#stalledCount = left
  }
}

/** Whether the last check found the stream without progress, and it has made none since. */
function isStalled({ backlog, sentBytes, stall }: Http2DownstreamStream): boolean {
  return backlog > 0 && stall.isStalled && stall.sentBytes === sentBytes
}

function limitOf(
  { sentBytes }: Http2DownstreamStream,
  isOneTooMany: boolean,
  isScarce: boolean,
): number {
  if (isScarce) return scarceMs
  if (sentBytes === 0) return unopenedMs
  return isOneTooMany ? crowdedMs : Number.POSITIVE_INFINITY
}
