/**
 * Caches a value that expires and fetches it again before it expires, with one fetch at a time. A timer
 * renews a value that is in use, so that no request waits for it.
 */
import { timerDelay } from '../../ground/base/timer-delay.ts'

export interface Expiring {
  /** Time of expiry in milliseconds since the epoch; omitted if it is not known. */
  readonly expiresAt?: number
}

/** Values are renewed this long before they expire: clouds issue new ones five minutes before the expiry. */
const aheadMs = 300_000
/** A value without a known expiry is fetched again after this time, because its file may be edited. */
const refetchMs = 300_000
/** Pause after a fetch that failed or found no source. A value that is still valid stays in use. */
const pauseMs = 10_000
/** Shortest time between renewals, whatever lifetime a service reports. */
const minRenewalMs = 1_000

export class Renewed<Value extends Expiring> {
  readonly #find: () => Promise<Value | undefined>
  readonly #now: () => number
  #current: Value | undefined
  /** Whether the last fetch found that no source is configured. */
  #isAbsent = false
  #renewAt = 0
  #pending: Promise<Value | undefined> | undefined
  #timer: NodeJS.Timeout | undefined
  /** Whether `get` was called since the value was fetched. */
  #isUsed = false

  /** `find` resolves to undefined if no source is configured. `now` returns milliseconds since the epoch. */
  constructor(find: () => Promise<Value | undefined>, now: () => number = Date.now) {
    this.#find = find
    this.#now = now
  }

  /**
   * Returns the current value if it is valid, otherwise a promise of a new one. The value is undefined if no
   * source is configured. The promise rejects with an Error if a source is configured but not usable.
   */
  get(): Value | undefined | Promise<Value | undefined> {
    this.#isUsed = true
    const now = this.#now()
    const current = this.#current
    const isValid = current !== undefined && (current.expiresAt ?? Number.POSITIVE_INFINITY) > now
    const isKnown = isValid || this.#isAbsent
    if (isKnown && now < this.#renewAt) return current
    const pending = this.#renew()
    if (!isKnown) return pending
    // The request uses the old value while a new one is fetched.
    pending.catch(() => {})
    return isValid ? current : undefined
  }

  #renew(): Promise<Value | undefined> {
    this.#pending ??= this.#fetch().finally(() => {
      this.#pending = undefined
    })
    return this.#pending
  }

  async #fetch(): Promise<Value | undefined> {
    try {
      const found = await this.#find()
      const now = this.#now()
      this.#current = found
      this.#isAbsent = found === undefined
      this.#renewAt = now + this.#timeToRenew(found, now)
      this.#isUsed = false
      this.#arm(this.#renewAt - now)
      return found
    } catch (error) {
      this.#renewAt = this.#now() + pauseMs
      this.#arm(pauseMs)
      throw error
    }
  }

  #timeToRenew(found: Value | undefined, now: number): number {
    if (found === undefined) return pauseMs
    if (found.expiresAt === undefined) return refetchMs
    const left = found.expiresAt - now
    // Values that expire within ten minutes are renewed halfway.
    return Math.max(minRenewalMs, left > 2 * aheadMs ? left - aheadMs : left / 2)
  }

  #arm(afterMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (this.#isUsed) this.#renew().catch(() => {})
    }, timerDelay(afterMs))
    this.#timer.unref()
  }
}
