/**
 * Coarse timers for connections: arming takes a few stores, postponing a deadline takes one, and one
 * platform timer serves all of them. Timers are due at most one tick late, and never early.
 */

// The import is faster than the global, which is an accessor.
import { performance } from 'node:perf_hooks'
import { timerDelay } from '../../../ground/base/timer-delay.ts'

/** A monotonic clock with one wake-up at a time. */
export interface EngineClock {
  /** Returns monotonic milliseconds. */
  now(): number
  /**
   * Calls `callback` once after `ms`, or earlier if they are many days. A later call replaces an
   * earlier one. Must not keep the process alive.
   */
  wakeAfter(ms: number, callback: () => void): void
  /** Cancels the pending wake-up. */
  sleep(): void
}

/** The platform's clock. */
export function platformClock(): EngineClock {
  let handle: NodeJS.Timeout | undefined
  return {
    now: () => performance.now(),
    wakeAfter(ms, callback) {
      if (handle !== undefined) clearTimeout(handle)
      handle = setTimeout(callback, timerDelay(ms))
      handle.unref()
    },
    sleep() {
      if (handle !== undefined) clearTimeout(handle)
      handle = undefined
    },
  }
}

/** Called when one of its timers is due. */
export interface TimerOwner {
  onTimer(timer: Timer): void
}

/** One deadline. A timer is created once with its owner and armed many times. */
export class Timer {
  readonly owner: TimerOwner
  /** Tick of the deadline; -1 if not armed. */
  deadline = -1
  /** Index of the slot that the timer is linked in; -1 if in none. */
  slot = -1
  /** Tick at which that slot is visited next; the timer can stay there if its deadline is not earlier. */
  visit = -1
  before: Timer | undefined = undefined
  after: Timer | undefined = undefined

  constructor(owner: TimerOwner) {
    this.owner = owner
  }

  get isArmed(): boolean {
    return this.deadline >= 0
  }
}

const slotCount = 512
const defaultTickMs = 10
/** Value of `deadline` for a timer whose owner is about to be called. */
const due = -2

/** A hashed timing wheel (Varghese and Lauck, scheme 6) whose postponed entries are moved lazily. */
export class TimerWheel {
  readonly #clock: EngineClock
  readonly #tickMs: number
  readonly #slots: (Timer | undefined)[] = new Array(slotCount).fill(undefined)
  readonly #due: Timer[] = []
  #linked = 0
  /** All slots up to this tick have been visited. */
  #visited: number
  /** Tick of the pending wake-up; Infinity if there is none. */
  #wakeTick = Number.POSITIVE_INFINITY
  readonly #onWake = (): void => this.#wake()

  constructor(clock: EngineClock, tickMs = defaultTickMs) {
    this.#clock = clock
    this.#tickMs = tickMs
    this.#visited = this.#tickOf(clock.now())
  }

  /** Arms or re-arms the timer to be due `ms` after `now`, which callers pass if they know it. */
  arm(timer: Timer, ms: number, now = this.#clock.now()): void {
    const deadline = Math.max(Math.ceil((now + ms) / this.#tickMs), this.#tickOf(now) + 1)
    if (timer.slot >= 0) {
      // The visit of the current slot moves the timer to a later slot.
      if (deadline >= timer.visit) {
        timer.deadline = deadline
        return
      }
      this.#unlink(timer)
    }
    if (this.#linked === 0) this.#visited = this.#tickOf(now)
    timer.deadline = deadline
    this.#link(timer, deadline)
    if (deadline < this.#wakeTick) this.#schedule(deadline, now)
  }

  /** Whether the deadline has passed, which is known before the timer is called if the process is busy. */
  isDue(timer: Timer): boolean {
    return timer.isArmed && timer.deadline <= this.#tickOf(this.#clock.now())
  }

  /**
   * Disarms a timer that will soon be armed again with a later deadline. It stays in its slot until
   * then, which keeps its owner in memory.
   */
  disarmLazily(timer: Timer): void {
    timer.deadline = -1
  }

  /** Disarms the timer; it can be armed again. */
  disarm(timer: Timer): void {
    if (timer.slot >= 0) this.#unlink(timer)
    timer.deadline = -1
  }

  /** Disarms all timers. */
  clear(): void {
    for (let slot = 0; slot < slotCount; slot++) {
      for (let timer = this.#slots[slot]; timer !== undefined; timer = this.#slots[slot]) {
        this.disarm(timer)
      }
    }
    this.#clock.sleep()
    this.#wakeTick = Number.POSITIVE_INFINITY
  }

  #tickOf(ms: number): number {
    return Math.floor(ms / this.#tickMs)
  }

  #link(timer: Timer, tick: number): void {
    const slot = tick % slotCount
    const first = this.#slots[slot]
    timer.slot = slot
    timer.visit = tick
    timer.before = undefined
    timer.after = first
    if (first !== undefined) first.before = timer
    this.#slots[slot] = timer
    this.#linked++
  }

  #unlink(timer: Timer): void {
    if (timer.before !== undefined) timer.before.after = timer.after
    else this.#slots[timer.slot] = timer.after
    if (timer.after !== undefined) timer.after.before = timer.before
    timer.before = undefined
    timer.after = undefined
    timer.slot = -1
    this.#linked--
  }

  #schedule(tick: number, now: number): void {
    this.#wakeTick = tick
    this.#clock.wakeAfter(Math.max(1, Math.ceil(tick * this.#tickMs - now)), this.#onWake)
  }

  #wake(): void {
    this.#wakeTick = Number.POSITIVE_INFINITY
    const tick = this.#tickOf(this.#clock.now())
    const steps = Math.min(tick - this.#visited, slotCount)
    this.#visited = tick
    for (let step = 0; step < steps; step++) this.#collect((tick - step) % slotCount, tick)
    for (let index = 0; index < this.#due.length; index++) {
      const timer = this.#due[index]
      // An owner that was called before may have disarmed or re-armed this timer.
      if (timer === undefined || timer.deadline !== due) continue
      timer.deadline = -1
      timer.owner.onTimer(timer)
    }
    this.#due.length = 0
    if (this.#linked > 0) this.#scheduleNext(tick)
    else this.#clock.sleep()
  }

  /** Moves timers of a slot that are due to `#due`, and postponed ones to later slots. */
  #collect(slot: number, tick: number): void {
    let timer = this.#slots[slot]
    while (timer !== undefined) {
      const next: Timer | undefined = timer.after
      if (timer.deadline === -1) this.#unlink(timer)
      else if (timer.deadline <= tick) {
        this.#unlink(timer)
        timer.deadline = due
        this.#due.push(timer)
      } else if (timer.deadline % slotCount !== slot) {
        this.#unlink(timer)
        this.#link(timer, timer.deadline)
      } else {
        timer.visit = timer.deadline
      }
      timer = next
    }
  }

  #scheduleNext(tick: number): void {
    let next = tick + 1
    while (this.#slots[next % slotCount] === undefined) next++
    this.#schedule(next, this.#clock.now())
  }
}
