// The global `performance` is a getter, which is slower.
import { performance } from 'node:perf_hooks'
import type { LineBytes } from './line-bytes.ts'

/**
 * Writes RFC 3339 timestamps in UTC with microseconds. The part up to the second is cached until the second
 * ends. The fraction comes from the monotonic clock, which is set by the wall clock once per second.
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

  /** Writes the timestamp of a recent time of the monotonic clock, or of now. */
  write(line: LineBytes, monotonicMs = this.#monotonicMs()): void {
    let micros = Math.floor((this.#offsetMs + monotonicMs) * 1_000)
    let second = Math.floor(micros / 1_000_000)
    if (second !== this.#second) {
      this.#offsetMs = this.#wallMs() - this.#monotonicMs()
      micros = Math.floor((this.#offsetMs + monotonicMs) * 1_000)
      second = Math.floor(micros / 1_000_000)
      this.#second = second
      this.#prefix = new Date(second * 1_000).toISOString().slice(0, 20)
    }
    line.ascii(this.#prefix)
    line.digits(micros - second * 1_000_000, 6)
    line.ascii('Z')
  }
}
