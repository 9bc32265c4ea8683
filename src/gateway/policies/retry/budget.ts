import type { RetryBudget } from '../../../ground/exchange/forwarding.ts'

interface BudgetConfig {
  readonly percent: number
  readonly intervalMs: number
  readonly minRetries: { readonly count: number; readonly intervalMs: number }
}

/** Counts events of about the last `lengthMs` milliseconds, without a timer. */
class SlidingCount {
  readonly #lengthMs: number
  #beganAt = Number.NEGATIVE_INFINITY
  #previous = 0
  #current = 0

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs
  }

  add(at: number): void {
    this.#roll(at)
    this.#current++
  }

  /** Returns the events of the current period, and the share of the previous ones that is still within the length. */
  count(at: number): number {
    this.#roll(at)
    return this.#current + this.#previous * (1 - (at - this.#beganAt) / this.#lengthMs)
  }

  #roll(at: number): void {
    const periods = Math.floor((at - this.#beganAt) / this.#lengthMs)
    if (periods < 1) return
    this.#previous = periods === 1 ? this.#current : 0
    this.#current = 0
    this.#beganAt = periods === 1 ? this.#beganAt + this.#lengthMs : at
  }
}

/** Permits retries up to a percentage of the requests, and always up to a minimum rate (GEP-3388). */
export class SlidingRetryBudget implements RetryBudget {
  readonly #percent: number
  readonly #minRetries: number
  readonly #requests: SlidingCount
  readonly #retries: SlidingCount
  readonly #recent: SlidingCount
  readonly #now: () => number

  /** `now` returns the milliseconds of a monotonic clock. */
  constructor({ percent, intervalMs, minRetries }: BudgetConfig, now: () => number) {
    this.#percent = percent
    this.#minRetries = minRetries.count
    this.#requests = new SlidingCount(intervalMs)
    this.#retries = new SlidingCount(intervalMs)
    this.#recent = new SlidingCount(minRetries.intervalMs)
    this.#now = now
  }

  /** Counts a request. */
  countRequest(): void {
    this.#requests.add(this.#now())
  }

  take(): boolean {
    const at = this.#now()
    const isWithin = (this.#retries.count(at) + 1) * 100 <= this.#requests.count(at) * this.#percent
    if (!isWithin && this.#recent.count(at) + 1 > this.#minRetries) return false
    this.#retries.add(at)
    this.#recent.add(at)
    return true
  }
}
