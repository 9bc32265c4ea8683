import type { EngineClock } from '../../src/engines/http/time/timer-wheel.ts'

/** A clock that stands still until it is advanced; for tests of deadlines. */
export class ManualClock implements EngineClock {
  #now = 1_000_000
  #wakeAt = Number.POSITIVE_INFINITY
  #callback: (() => void) | undefined

  now(): number {
    return this.#now
  }

  wakeAfter(ms: number, callback: () => void): void {
    this.#wakeAt = this.#now + ms
    this.#callback = callback
  }

  sleep(): void {
    this.#wakeAt = Number.POSITIVE_INFINITY
    this.#callback = undefined
  }

  /** Lets `ms` pass and runs every wake-up that falls into them. */
  advance(ms: number): void {
    const end = this.#now + ms
    while (this.#wakeAt <= end) {
      this.#now = Math.max(this.#now, this.#wakeAt)
      this.#wakeAt = Number.POSITIVE_INFINITY
      this.#callback?.()
    }
    this.#now = end
  }
}
