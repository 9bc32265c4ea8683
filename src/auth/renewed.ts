/**
 * Something that ends and can be had again: kept, renewed before it ends, never fetched twice at
 * once. What is asked for regularly is renewed by a timer, so that no request waits for it.
 */
import { timerDelay } from '../base/timer-delay.ts'

export interface Expiring {
  /** Milliseconds since the epoch; absent where it holds until told otherwise. */
  readonly expiresAt?: number
}

/** Fetched again so long before they end; clouds renew their own five minutes before. */
const aheadMs = 300_000
/** What does not say when it ends (files may be edited) is read again after so long. */
const unlimitedMs = 300_000
/** After a failure the old one stands in, and nobody is asked for so long. */
const pauseMs = 10_000
/** No timer is shorter, whatever a service says of its tokens. */
const shortestMs = 1_000

export class Renewed<Value extends Expiring> {
  readonly #find: () => Promise<Value | undefined>
  readonly #now: () => number
  #current: Value | undefined
  /** Asked, and nobody has any. */
  #isAbsent = false
  #renewAt = 0
  #pending: Promise<Value | undefined> | undefined
  #timer: NodeJS.Timeout | undefined
  /** Asked for since it was fetched. */
  #isUsed = false

  /** `find`: undefined where no place is configured. `now`: milliseconds since the epoch. */
  constructor(find: () => Promise<Value | undefined>, now: () => number = Date.now) {
    this.#find = find
    this.#now = now
  }

  /**
   * At once where it is known and holds; undefined where there is none anywhere. Rejects with an Error
   * where a place is configured and gives nothing usable.
   */
  get(): Value | undefined | Promise<Value | undefined> {
    this.#isUsed = true
    const now = this.#now()
    const current = this.#current
    const holds = current !== undefined && (current.expiresAt ?? Number.POSITIVE_INFINITY) > now
    const isKnown = holds || this.#isAbsent
    if (isKnown && now < this.#renewAt) return current
    const pending = this.#renew()
    if (!isKnown) return pending
    // Renewed beside the request; the old one still holds.
    pending.catch(() => {})
    return holds ? current : undefined
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
    if (found.expiresAt === undefined) return unlimitedMs
    const left = found.expiresAt - now
    // Tokens of a few minutes are renewed in the middle of their life.
    return Math.max(shortestMs, left > 2 * aheadMs ? left - aheadMs : left / 2)
  }

  #arm(afterMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (this.#isUsed) this.#renew().catch(() => {})
    }, timerDelay(afterMs))
    this.#timer.unref()
  }
}
