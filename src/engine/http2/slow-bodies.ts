import type { EngineParts } from '../contracts/engine-parts.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import { type BodyPace, paceCheckMs } from '../message/body-pace.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'

/** A stream as far as this cares. */
interface PacedStream {
  readonly pace: BodyPace
  /** The body of the request is not complete, and nothing has been answered. */
  readonly isPaced: boolean
  readonly receivedBytes: number
  /** More of the body would be taken now. */
  readonly wantsBody: boolean
  /** The client is too slow. */
  onSlowBody(): void
}

/** Looks after the bodies of requests on one HTTP/2 connection, all with one timer. */
export class SlowBodies<Stream extends PacedStream> implements TimerOwner {
  readonly #parts: EngineParts
  readonly #limits: EngineLimits
  readonly #streams: () => Iterable<Stream>
  readonly #timer = new Timer(this)

  constructor(parts: EngineParts, limits: EngineLimits, streams: () => Iterable<Stream>) {
    this.#parts = parts
    this.#limits = limits
    this.#streams = streams
  }

  /** A request begins whose body is not there yet. */
  onBody(stream: Stream): void {
    if (this.#limits.minBodyBytesPerSecond === 0) return
    const now = this.#parts.clock.now()
    stream.pace.start(now)
    if (!this.#timer.isArmed) this.#parts.timers.arm(this.#timer, paceCheckMs, now)
  }

  stop(): void {
    this.#parts.timers.disarm(this.#timer)
  }

  onTimer(): void {
    const now = this.#parts.clock.now()
    const { minBodyBytesPerSecond: lowest } = this.#limits
    if (lowest === 0) return
    const paced = [...this.#streams()].filter(({ isPaced }) => isPaced)
    if (paced.length > 0) this.#parts.timers.arm(this.#timer, paceCheckMs, now)
    for (const stream of paced) {
      const { pace, receivedBytes, wantsBody } = stream
      if (!pace.keepsUp(receivedBytes, wantsBody, lowest, now)) stream.onSlowBody()
    }
  }
}
