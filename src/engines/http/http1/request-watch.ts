import type { DownstreamHandler } from '../contracts/downstream.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import { BodyPace, paceCheckMs } from '../message/body-pace.ts'
import type { Timer } from '../time/timer-wheel.ts'

/** `stalled`: no byte has moved for too long. `slow`: the request body arrives too slowly. */
type Progress = 'fine' | 'stalled' | 'slow'

/** Checks the progress of an HTTP/1.1 request with the timer of its connection. */
export class RequestWatch {
  readonly #parts: EngineParts
  readonly #timer: Timer
  readonly #limits: EngineLimits
  readonly #pace = new BodyPace()
  /** Bytes moved until the last check that found progress, and the time of that check. */
  #movedBytes = 0
  #movedAt = 0

  constructor(parts: EngineParts, timer: Timer, limits: EngineLimits) {
    this.#parts = parts
    this.#timer = timer
    this.#limits = limits
  }

  /** Called when a request begins whose body has not arrived yet. */
  begin(exchange: DownstreamHandler): void {
    const now = this.#parts.clock.now()
    this.#pace.start(now)
    this.#note(exchange, now)
    this.#arm(this.#isPaced(exchange, false), now)
  }

  /** Replaces the limit for the time without progress. */
  limit(exchange: DownstreamHandler, ms: number): void {
    const now = this.#parts.clock.now()
    this.#note(exchange, now + ms - this.#limits.stallTimeoutMs)
    this.#arm(false, now)
  }

  /** Called when reading is paused. */
  pause(): void {
    this.#pace.pause()
  }

  /** Called when the timer is due. The pace of the body is not checked once the response has begun. */
  check(exchange: DownstreamHandler, isAnswered: boolean): Progress {
    const now = this.#parts.clock.now()
    const isPaced = this.#isPaced(exchange, isAnswered)
    const { receivedBytes, wantsBytes } = exchange.requestSource
    const { minBodyBytesPerSecond, stallTimeoutMs } = this.#limits
    if (isPaced && !this.#pace.keepsUp(receivedBytes, wantsBytes, minBodyBytesPerSecond, now)) {
      return 'slow'
    }
    if (exchange.requestBytes + exchange.responseBytes !== this.#movedBytes)
      this.#note(exchange, now)
    else if (now - this.#movedAt >= stallTimeoutMs) return 'stalled'
    this.#arm(isPaced, now)
    return 'fine'
  }

  #isPaced({ requestSource }: DownstreamHandler, isAnswered: boolean): boolean {
    return this.#limits.minBodyBytesPerSecond > 0 && !requestSource.ended && !isAnswered
  }

  #note(exchange: DownstreamHandler, now: number): void {
    this.#movedBytes = exchange.requestBytes + exchange.responseBytes
    this.#movedAt = now
  }

  #arm(isPaced: boolean, now: number): void {
    const { stallTimeoutMs } = this.#limits
    const leftMs = this.#movedAt + stallTimeoutMs - now
    this.#parts.timers.arm(this.#timer, isPaced ? Math.min(leftMs, paceCheckMs) : leftMs, now)
  }
}
