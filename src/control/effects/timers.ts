/**
 * Appends an event when a timer of the fold is due. Every replica runs this; if several append the event, it
 * is stored once, since its id is derived from its content.
 */

import { type SluiceEvent, timerFired } from '../../../events/index.ts'
import { type Clock, systemClock } from '../../ground/base/clock.ts'
import { timerDelay } from '../../ground/base/timer-delay.ts'
import { newEvent } from '../log/index.ts'

/** A timer of the fold. */
interface WantedTimer {
  readonly timer: string
  /** Time at which the timer is due (RFC 3339). */
  readonly dueAt: string
}

export interface TimersOptions {
  /** If omitted, the system's clock is used. */
  readonly clock?: Clock
  /** Epoch of the lease; undefined while another replica appends. */
  readonly epoch: () => number | undefined
  /** Appends events. May return a promise; if it rejects, the timers fire again a little later. */
  readonly append: (events: readonly SluiceEvent[]) => unknown
  /**
   * Milliseconds after the start in which no timer fires, since nothing could cancel a timer while
   * this process was down.
   */
  readonly graceMs?: number
}

const defaultGraceMs = 30_000
/** Wait before due timers are checked again, after a failed append or while another replica appends. */
const retryMs = 1_000
const source = '/sluice/timers'

export class Timers {
  readonly #options: TimersOptions
  readonly #clock: Clock
  readonly #notBefore: number
  #wanted: readonly WantedTimer[] = []
  readonly #fired = new Set<string>()
  #next: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: TimersOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#notBefore = this.#clock.now() + (options.graceMs ?? defaultGraceMs)
  }

  /** Sets the timers of the fold. The same array again changes nothing. */
  want(timers: readonly WantedTimer[]): void {
    if (timers === this.#wanted || this.#isClosed) return
    this.#wanted = timers
    const ids = new Set(timers.map(idOf))
    for (const id of this.#fired) if (!ids.has(id)) this.#fired.delete(id)
    this.#schedule()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#next)
  }

  #schedule(): void {
    clearTimeout(this.#next)
    const unfired = this.#wanted.filter((timer) => !this.#fired.has(idOf(timer)))
    if (unfired.length === 0) return
    const first = Math.min(...unfired.map(({ dueAt }) => Date.parse(dueAt)))
    const wait = Math.max(0, Math.max(first, this.#notBefore) - this.#clock.now())
    // A clock that was set back may make the wait longer than a timer can be; it is then set again.
    this.#next = setTimeout(() => this.#fire(), timerDelay(wait))
    this.#next.unref()
  }

  #fire(): void {
    const epoch = this.#options.epoch()
    if (epoch === undefined) {
      this.#retryLater()
      return
    }
    const now = this.#clock.now()
    const due = this.#wanted.filter(
      (timer) => Date.parse(timer.dueAt) <= now && !this.#fired.has(idOf(timer)),
    )
    for (const timer of due) this.#fired.add(idOf(timer))
    if (due.length > 0) void this.#append(due, epoch)
    this.#schedule()
  }

  async #append(due: readonly WantedTimer[], epoch: number): Promise<void> {
    try {
      await this.#options.append(due.map((timer) => this.#event(timer, epoch)))
    } catch {
      // The log reports the reason to operators.
      for (const timer of due) this.#fired.delete(idOf(timer))
      this.#retryLater()
    }
  }

  #retryLater(): void {
    clearTimeout(this.#next)
    if (this.#isClosed) return
    this.#next = setTimeout(() => this.#fire(), retryMs)
    this.#next.unref()
  }

  #event(wanted: WantedTimer, epoch: number): SluiceEvent {
    const { timer, dueAt } = wanted
    const about = { kind: 'Timer', name: timer }
    return newEvent(timerFired, { source, epoch, clock: this.#clock }, about, {
      id: `${epoch}:timer:${idOf(wanted)}`,
      data: { timer, dueAt },
    })
  }
}

const idOf = ({ timer, dueAt }: WantedTimer) => `${timer}:${dueAt}`
