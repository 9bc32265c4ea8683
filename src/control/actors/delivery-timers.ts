/**
 * Timers of the fold, which has no clock: a timer is plain data with the time at which it is due,
 * computed from the time of an event. When it is due, a TimerFired event is appended. A timer that was
 * cancelled or set again does nothing if it fires late.
 */
export interface PendingTimer {
  /** Unique among the timers that are pending. */
  readonly timer: string
  /** Time at which the timer is due (RFC 3339). */
  readonly dueAt: string
}

export class FoldTimers {
  #pending = new Map<string, string>()
  #list: readonly PendingTimer[] | undefined

  /** Pending timers, sorted by name. The array is the same until something changes. */
  get list(): readonly PendingTimer[] {
    this.#list ??= [...this.#pending]
      .map(([timer, dueAt]) => ({ timer, dueAt }))
      .sort((a, b) => (a.timer < b.timer ? -1 : 1))
    return this.#list
  }

  /** Replaces the timers with this prefix. Those that are pending already keep their time. */
  want(timers: ReadonlySet<string>, nowMs: number, afterMs: number, prefix: string): void {
    for (const timer of this.#pending.keys()) {
      if (timer.startsWith(prefix) && !timers.has(timer)) this.cancel(timer)
    }
    for (const timer of timers) {
      if (this.#pending.has(timer)) continue
      this.#pending.set(timer, new Date(nowMs + afterMs).toISOString())
      this.#list = undefined
    }
  }

  /** Removes a timer that has fired. Returns whether it was pending. */
  fire({ timer, dueAt }: PendingTimer): boolean {
    if (this.#pending.get(timer) !== dueAt) return false
    this.cancel(timer)
    return true
  }

  restore(timers: readonly PendingTimer[]): void {
    this.#pending = new Map(timers.map(({ timer, dueAt }) => [timer, dueAt]))
    this.#list = undefined
  }

  /** Removes a timer if it is pending. */
  cancel(timer: string): void {
    if (this.#pending.delete(timer)) this.#list = undefined
  }
}

/** Two lists of timers in one. */
export class JoinedTimers {
  #parts: readonly (readonly PendingTimer[])[] = []
  #joined: readonly PendingTimer[] = []

  /** Returns the same array until one of the lists is another one. */
  join(first: readonly PendingTimer[], second: readonly PendingTimer[]): readonly PendingTimer[] {
    if (second.length === 0) return first
    if (this.#parts[0] !== first || this.#parts[1] !== second) {
      this.#parts = [first, second]
      this.#joined = [...first, ...second]
    }
    return this.#joined
  }
}
