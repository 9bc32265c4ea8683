/**
 * Tells the fold when the times have come that it asked to be told of. Every replica runs this; an
 * event that several append is one, since its id follows from what it says.
 */
import { createEvent, type SluiceEvent, timerFired } from '../../events/index.ts'
import type { Clock } from '../base/clock.ts'
import { subjectOf } from '../log/index.ts'

/** What the fold asks for. */
interface WantedTimer {
  readonly timer: string
  /** RFC 3339. */
  readonly dueAt: string
}

export interface TimersOptions {
  readonly clock: Clock
  readonly cluster: string
  /** Of the lease under which timers are told; undefined while another replica tells them. */
  readonly epoch: () => number | undefined
  /** May give a promise; its rejection means that nobody was told: the timers fire again a little later. */
  readonly append: (events: readonly SluiceEvent[]) => unknown
  /**
   * Milliseconds after the start before which nothing fires: while nobody ran, nothing could happen
   * that would have stopped a timer.
   */
  readonly graceMs?: number
}

const defaultGraceMs = 30_000
/** A timer that could not be told, or somebody else was to tell, is looked at again. */
const againMs = 1_000
const source = '/sluice/timers'

export class Timers {
  readonly #options: TimersOptions
  readonly #notBefore: number
  #wanted: readonly WantedTimer[] = []
  readonly #told = new Set<string>()
  #next: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: TimersOptions) {
    this.#options = options
    this.#notBefore = options.clock.now() + (options.graceMs ?? defaultGraceMs)
  }

  /** Takes what the fold wants now; the same array again costs nothing. */
  want(timers: readonly WantedTimer[]): void {
    if (timers === this.#wanted || this.#isClosed) return
    this.#wanted = timers
    const ids = new Set(timers.map(idOf))
    for (const id of this.#told) if (!ids.has(id)) this.#told.delete(id)
    this.#schedule()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#next)
  }

  #schedule(): void {
    clearTimeout(this.#next)
    const untold = this.#wanted.filter((timer) => !this.#told.has(idOf(timer)))
    if (untold.length === 0) return
    const first = Math.min(...untold.map(({ dueAt }) => Date.parse(dueAt)))
    const wait = Math.max(0, Math.max(first, this.#notBefore) - this.#options.clock.now())
    this.#next = setTimeout(() => this.#tell(), wait)
    this.#next.unref()
  }

  #tell(): void {
    const epoch = this.#options.epoch()
    if (epoch === undefined) {
      this.#again()
      return
    }
    const now = this.#options.clock.now()
    const due = this.#wanted.filter(
      (timer) => Date.parse(timer.dueAt) <= now && !this.#told.has(idOf(timer)),
    )
    for (const timer of due) this.#told.add(idOf(timer))
    if (due.length > 0) void this.#append(due, now, epoch)
    this.#schedule()
  }

  async #append(due: readonly WantedTimer[], now: number, epoch: number): Promise<void> {
    try {
      await this.#options.append(due.map((timer) => this.#event(timer, now, epoch)))
    } catch {
      // Whoever keeps the log has told the operator why.
      for (const timer of due) this.#told.delete(idOf(timer))
      this.#again()
    }
  }

  #again(): void {
    clearTimeout(this.#next)
    if (this.#isClosed) return
    this.#next = setTimeout(() => this.#tell(), againMs)
    this.#next.unref()
  }

  #event(wanted: WantedTimer, now: number, epoch: number): SluiceEvent {
    const { timer, dueAt } = wanted
    const time = new Date(now).toISOString()
    const { cluster } = this.#options
    return createEvent(
      timerFired,
      { source, time, epoch },
      {
        id: `${epoch}:timer:${idOf(wanted)}`,
        subject: subjectOf({ cluster, kind: 'Timer', namespace: '', name: timer }),
        data: { timer, dueAt },
      },
    )
  }
}

const idOf = ({ timer, dueAt }: WantedTimer) => `${timer}:${dueAt}`
