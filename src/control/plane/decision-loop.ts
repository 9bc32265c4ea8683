/**
 * Decides about what waits in the fold by appending events, on the replica that may write the log. One decision is made
 * at a time, and none before the events of the last one are folded.
 */
import { randomUUID } from 'node:crypto'
import type { EventDefinition, SluiceEvent } from '../../../events/index.ts'
import type { Fold } from '../actors/fold.ts'
import { newEvent } from '../log/index.ts'
import type { LogLevel } from './parts.ts'

export interface DecisionLoopOptions {
  readonly fold: Fold
  /** The epoch under which this replica may write the log now; undefined if it may not. */
  readonly epoch: () => number | undefined
  /** Returns the position of the last event. */
  readonly append: (events: readonly SluiceEvent[]) => Promise<number>
  readonly notify: (severity: LogLevel, text: string) => void
}

interface Decisions {
  readonly source: string
  readonly subject: { readonly kind: string; readonly name: string }
  /** What messages say of changes about which a decision has failed, such as `judged`. */
  readonly verb: string
  /** Delay until the next decision if something still waits. */
  readonly repeatMs: number
  hasWork(): boolean
  /** Returns the events of a decision, which may be none. */
  decide(epoch: number): Promise<readonly SluiceEvent[]>
}

/** Delay of a decision, so that it covers objects that change together. */
export const settleMs = 100
/** Delay before a decision is repeated because its events could not be appended. */
const retryMs = 1_000

export class DecisionLoop {
  readonly #options: DecisionLoopOptions
  readonly #decisions: Decisions
  #timer: NodeJS.Timeout | undefined
  #isBusy = false
  #isClosed = false
  /** Position of the last event that was appended here. */
  #appendedAt = 0

  constructor(options: DecisionLoopOptions, decisions: Decisions) {
    this.#options = options
    this.#decisions = decisions
  }

  /** Called after each batch of events. */
  update(): void {
    if (!this.#isBusy && this.#timer === undefined && this.#isReady()) this.#schedule(settleMs)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  event<Type extends SluiceEvent['type'], Data>(
    definition: EventDefinition<Type, Data>,
    epoch: number,
    data: Data,
  ): SluiceEvent {
    const { source, subject } = this.#decisions
    const id = `${epoch}:${randomUUID()}:${definition.type}`
    return newEvent(definition, { source, epoch }, subject, { id, data }) as never
  }

  #isReady(): boolean {
    const { fold, epoch } = this.#options
    if (this.#isClosed || epoch() === undefined || fold.position < this.#appendedAt) return false
    return this.#decisions.hasWork()
  }

  #schedule(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#run()
    }, ms)
    this.#timer.unref()
  }

  async #run(): Promise<void> {
    const { fold, epoch, append, notify } = this.#options
    const writing = epoch()
    if (writing === undefined || !this.#isReady()) return
    this.#isBusy = true
    const { position } = fold
    let waitMs = this.#decisions.repeatMs
    try {
      const events = await this.#decisions.decide(writing)
      if (events.length > 0 && epoch() === writing) this.#appendedAt = await append(events)
    } catch (error) {
      waitMs = retryMs
      const { verb } = this.#decisions
      notify('warn', `changes since position ${position} are not ${verb} yet: ${String(error)}`)
    } finally {
      this.#isBusy = false
    }
    if (this.#isReady()) this.#schedule(waitMs)
  }
}
