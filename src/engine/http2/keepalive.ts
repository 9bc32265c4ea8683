import type { Http2Limits } from '../limits/http2-limits.ts'
import { Timer, type TimerOwner, type TimerWheel } from '../time/timer-wheel.ts'

interface KeepaliveOwner {
  ping(payload: string): void
  /** The peer does not answer. */
  onSilence(): void
}

const payload = 'areuwell'

/** Asks a silent peer whether it is there (RFC 9113 6.7); without an interval it does nothing. */
export class Keepalive implements TimerOwner {
  readonly #timers: TimerWheel
  readonly #limits: Http2Limits
  readonly #owner: KeepaliveOwner
  readonly #timer = new Timer(this)
  #isAsking = false

  constructor(timers: TimerWheel, limits: Http2Limits, owner: KeepaliveOwner) {
    this.#timers = timers
    this.#limits = limits
    this.#owner = owner
    this.#rest()
  }

  /** Something has arrived: that is as good as an answer. */
  onActivity(): void {
    if (this.#limits.keepaliveIntervalMs > 0) this.#rest()
  }

  stop(): void {
    this.#timers.disarm(this.#timer)
  }

  #rest(): void {
    this.#isAsking = false
    const { keepaliveIntervalMs } = this.#limits
    if (keepaliveIntervalMs > 0) this.#timers.arm(this.#timer, keepaliveIntervalMs)
  }

  onTimer(): void {
    if (this.#isAsking) {
      this.#owner.onSilence()
      return
    }
    this.#isAsking = true
    this.#owner.ping(payload)
    this.#timers.arm(this.#timer, this.#limits.keepaliveTimeoutMs)
  }
}
