import type { EngineLimits } from '../limits/engine-limits.ts'
import { Timer, type TimerOwner, type TimerWheel } from './timer-wheel.ts'

/** A connection that can end with the requests under way. */
interface Ending {
  closeSoon(): void
}

/** The part of the duration by which a connection may end earlier, so that clients do not come back all at once. */
const spread = 0.1

/** Ends a client connection that has been open for a maximum time. */
export class ConnectionAge implements TimerOwner {
  readonly #timers: TimerWheel
  readonly #timer = new Timer(this)
  readonly #connection: Ending

  private constructor(connection: Ending, durationMs: number, timers: TimerWheel) {
    this.#timers = timers
    this.#connection = connection
    timers.arm(this.#timer, durationMs * (1 - spread * Math.random()))
  }

  /** Begins to watch a new connection. Returns undefined if its duration is not limited. */
  static of(
    connection: Ending,
    { connectionDurationMs }: EngineLimits,
    timers: TimerWheel,
  ): ConnectionAge | undefined {
    if (connectionDurationMs === 0) return undefined
    return new ConnectionAge(connection, connectionDurationMs, timers)
  }

  onTimer(): void {
    this.#connection.closeSoon()
  }

  stop(): void {
    this.#timers.disarm(this.#timer)
  }
}
