import type { EngineLimits } from '../limits/engine-limits.ts'
import { Timer, type TimerOwner, type TimerWheel } from './timer-wheel.ts'

/** A connection that can close after the requests under way. */
interface ClosableConnection {
  closeSoon(): void
}

/** Connections end earlier by up to this share of the duration, so that clients do not all reconnect at once. */
const spread = 0.1

/** Closes a client connection that reaches its maximum duration. */
export class ConnectionAge implements TimerOwner {
  readonly #timers: TimerWheel
  readonly #timer = new Timer(this)
  readonly #connection: ClosableConnection

  private constructor(connection: ClosableConnection, durationMs: number, timers: TimerWheel) {
    this.#timers = timers
    this.#connection = connection
    timers.arm(this.#timer, durationMs * (1 - spread * Math.random()))
  }

  /** Begins to watch a new connection. Returns undefined if its duration is not limited. */
  static of(
    connection: ClosableConnection,
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
