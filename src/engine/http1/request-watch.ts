import type { DownstreamHandler } from '../contracts/downstream.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import { BodyPace, paceCheckMs } from '../message/body-pace.ts'
import type { EngineClock, Timer, TimerWheel } from '../time/timer-wheel.ts'

/** `stalled`: nothing has moved for too long. `slow`: the body of the request comes too slowly. */
type Progress = 'fine' | 'stalled' | 'slow'

interface WatchParts {
  readonly timers: TimerWheel
  readonly clock: EngineClock
}

/** Looks after the request that a connection of HTTP/1.1 serves, by the connection's timer. */
export class RequestWatch {
  readonly #parts: WatchParts
  readonly #timer: Timer
  readonly #limits: EngineLimits
  readonly #pace = new BodyPace()
  /** Bytes moved, and when that was seen to have changed. */
  #moved = 0
  #movedAt = 0

  constructor(parts: WatchParts, timer: Timer, limits: EngineLimits) {
    this.#parts = parts
    this.#timer = timer
    this.#limits = limits
  }

  /** A request with a body that is not there yet. */
  begin(exchange: DownstreamHandler): void {
    const now = this.#parts.clock.now()
    this.#pace.start(now)
    this.#note(exchange, now)
    this.#arm(this.#isPaced(exchange, false), now)
  }

  /** Nothing of a request may move for longer than this, whatever the limit is otherwise. */
  limit(exchange: DownstreamHandler, ms: number): void {
    const now = this.#parts.clock.now()
    this.#note(exchange, now + ms - this.#limits.stallTimeoutMs)
    this.#arm(false, now)
  }

  /** Nothing is read for now. */
  rest(): void {
    this.#pace.rest()
  }

  /** The timer is due. `isAnswered`: a response is on its way, and the body may take its time. */
  check(exchange: DownstreamHandler, isAnswered: boolean): Progress {
    const now = this.#parts.clock.now()
    const isPaced = this.#isPaced(exchange, isAnswered)
    const { receivedBytes, wantsBytes } = exchange.requestSource
    const { minBodyBytesPerSecond, stallTimeoutMs } = this.#limits
    if (isPaced && !this.#pace.keepsUp(receivedBytes, wantsBytes, minBodyBytesPerSecond, now)) {
      return 'slow'
    }
    if (exchange.requestBytes + exchange.responseBytes !== this.#moved) this.#note(exchange, now)
    else if (now - this.#movedAt >= stallTimeoutMs) return 'stalled'
    this.#arm(isPaced, now)
    return 'fine'
  }

  #isPaced({ requestSource }: DownstreamHandler, isAnswered: boolean): boolean {
    return this.#limits.minBodyBytesPerSecond > 0 && !requestSource.ended && !isAnswered
  }

  #note(exchange: DownstreamHandler, now: number): void {
    this.#moved = exchange.requestBytes + exchange.responseBytes
    this.#movedAt = now
  }

  #arm(isPaced: boolean, now: number): void {
    const { stallTimeoutMs } = this.#limits
    const leftMs = this.#movedAt + stallTimeoutMs - now
    this.#parts.timers.arm(this.#timer, isPaced ? Math.min(leftMs, paceCheckMs) : leftMs, now)
  }
}
