import type { Http2Limits } from '../limits/engine-limits.ts'
import { Timer, type TimerOwner, type TimerWheel } from '../time/timer-wheel.ts'
import { pingFrame } from './frames.ts'

/** The connection that is kept alive. */
interface PingedSession {
  readonly output: { write(frames: string): void }
  abort(): void
}

const payload = 'areuwell'

/** Pings a silent peer (RFC 9113 6.7) and drops it if it does not respond. An interval of 0 disables it. */
export class Keepalive implements TimerOwner {
  readonly #timers: TimerWheel
  readonly #limits: Http2Limits
  readonly #session: PingedSession
  readonly #timer = new Timer(this)
  #isAsking = false

  constructor(timers: TimerWheel, limits: Http2Limits, session: PingedSession) {
    this.#timers = timers
    this.#limits = limits
    this.#session = session
    this.#restart()
  }

  /** Called when bytes have arrived, which counts as a response. */
  onActivity(): void {
    if (this.#limits.keepaliveIntervalMs > 0) this.#restart()
  }

  stop(): void {
    this.#timers.disarm(this.#timer)
  }

  #restart(): void {
    this.#isAsking = false
    const { keepaliveIntervalMs } = this.#limits
    if (keepaliveIntervalMs > 0) this.#timers.arm(this.#timer, keepaliveIntervalMs)
  }

  onTimer(): void {
    if (this.#isAsking) {
      this.#session.abort()
      return
    }
    this.#isAsking = true
    this.#session.output.write(pingFrame(payload, false))
    this.#timers.arm(this.#timer, this.#limits.keepaliveTimeoutMs)
  }
}
