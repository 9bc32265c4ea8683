/**
 * What the fold wants to be told of when its time comes. The fold has no clock: a timer is plain
 * data with the time at which it is due, made from the time of the event that asked for it, and
 * somebody outside appends TimerFired. One that was taken back, or is asked for anew with another
 * time, does nothing when it fires late.
 */

export interface PendingTimer {
  /** Unique among the timers that are pending. */
  readonly timer: string
  /** RFC 3339. */
  readonly dueAt: string
}

export class FoldTimers {
  #pending = new Map<string, string>()
  #list: readonly PendingTimer[] | undefined

  /** The same array until something changes; sorted by name. */
  get list(): readonly PendingTimer[] {
    this.#list ??= [...this.#pending]
      .map(([timer, dueAt]) => ({ timer, dueAt }))
      .sort((a, b) => (a.timer < b.timer ? -1 : 1))
    return this.#list
  }

  /** Exactly these are wanted; one that is pending keeps its time. */
  want(timers: ReadonlySet<string>, nowMs: number, afterMs: number, prefix: string): void {
    for (const timer of this.#pending.keys()) {
      if (timer.startsWith(prefix) && !timers.has(timer)) this.#delete(timer)
    }
    for (const timer of timers) {
      if (this.#pending.has(timer)) continue
      this.#pending.set(timer, new Date(nowMs + afterMs).toISOString())
      this.#list = undefined
    }
  }

  /** Is it the pending one that fired? Then it is pending no more. */
  fire({ timer, dueAt }: PendingTimer): boolean {
    if (this.#pending.get(timer) !== dueAt) return false
    this.#delete(timer)
    return true
  }

  restore(timers: readonly PendingTimer[]): void {
    this.#pending = new Map(timers.map(({ timer, dueAt }) => [timer, dueAt]))
    this.#list = undefined
  }

  #delete(timer: string): void {
    this.#pending.delete(timer)
    this.#list = undefined
  }
}
