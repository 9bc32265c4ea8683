import type { EngineParts } from '../contracts/engine-parts.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import { paceCheckMs } from '../message/body-pace.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'
import type { Http2DownstreamStream } from './downstream-stream.ts'

type Streams = ReadonlyMap<number, Http2DownstreamStream>

/** Checks the pace of the request bodies on one HTTP/2 connection, all with one timer. */
export class SlowBodies implements TimerOwner {
  readonly #parts: EngineParts
  readonly #limits: EngineLimits
  readonly #streams: Streams
  readonly #timer = new Timer(this)

  constructor(parts: EngineParts, limits: EngineLimits, streams: Streams) {
    this.#parts = parts
    this.#limits = limits
    this.#streams = streams
  }

  /** Called when a request begins whose body has not arrived yet. */
  onBody(stream: Http2DownstreamStream): void {
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
    const paced = [...this.#streams.values()].filter(({ isPaced }) => isPaced)
    if (paced.length > 0) this.#parts.timers.arm(this.#timer, paceCheckMs, now)
    for (const stream of paced) {
      const { pace, receivedBytes, wantsBody } = stream
      if (!pace.keepsUp(receivedBytes, wantsBody, lowest, now)) stream.onSlowBody()
    }
  }
}
