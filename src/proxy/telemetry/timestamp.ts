// The global is looked up by an accessor each time.
import { performance } from 'node:perf_hooks'

/** Every number below 1,000 in three digits: writing a number takes longer than looking it up. */
const threeDigits = Array.from({ length: 1_000 }, (_, number) => `${number}`.padStart(3, '0'))

/**
 * RFC 3339 UTC with microseconds, as the access log writes it. The part up to the second is made
 * once a second; the finer part comes from the monotonic clock, set by the wall clock each second.
 */
export class Timestamps {
  readonly #wallMs: () => number
  readonly #monotonicMs: () => number
  #second = Number.NaN
  #prefix = ''
  #offsetMs: number

  constructor(wallMs: () => number = Date.now, monotonicMs = () => performance.now()) {
    this.#wallMs = wallMs
    this.#monotonicMs = monotonicMs
    this.#offsetMs = wallMs() - monotonicMs()
  }

  now(): string {
    return this.at(this.#monotonicMs())
  }

  /** The same for a moment of the monotonic clock that has just been. */
  at(monotonicMs: number): string {
    let micros = Math.floor((this.#offsetMs + monotonicMs) * 1_000)
    let second = Math.floor(micros / 1_000_000)
    if (second !== this.#second) {
      this.#offsetMs = this.#wallMs() - this.#monotonicMs()
      micros = Math.floor((this.#offsetMs + monotonicMs) * 1_000)
      second = Math.floor(micros / 1_000_000)
      this.#second = second
      this.#prefix = new Date(second * 1_000).toISOString().slice(0, 20)
    }
    const fraction = micros - second * 1_000_000
    const millis = Math.floor(fraction / 1_000)
    return `${this.#prefix}${threeDigits[millis]}${threeDigits[fraction - millis * 1_000]}Z`
  }
}
