/**
 * Appends to the log: measured, and watched for a log that does not take them any more. What must
 * not be lost and can wait (answers of proxies) is queued, and appended again until it is taken.
 */
import type { SluiceEvent } from '../../events/index.ts'
import { type EventLog, LogError } from '../log/index.ts'
import type { ControllerMetrics } from './controller/metrics.ts'

type AppendStage = 'source' | 'decision' | 'delivery' | 'lease' | 'effect' | 'digest'

interface AppendQueueOptions {
  readonly metrics: Pick<ControllerMetrics, 'add'>
  readonly log: EventLog
  readonly onProblem: (text: string) => void
  readonly onRecovered: () => void
  /** This log will take nothing any more. */
  readonly onLost: (error: unknown) => void
  /** Somebody else has removed events up to a position; called until the log is mended. */
  readonly onTruncated: (upTo: number) => void
  /** Probes the log now and then: others may delete what is shared. */
  readonly isShared: boolean
}

const watchMs = 2_000
const retryMs = 1_000

/** Errors after which the same log may work again. */
const isTransient = (error: unknown) => !(error instanceof LogError) || error.code === 'storage'

export class AppendQueue {
  readonly #options: AppendQueueOptions
  readonly #queued: { readonly stage: AppendStage; readonly events: readonly SluiceEvent[] }[] = []
  #isSending = false
  #problem: string | undefined
  #probe: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: AppendQueueOptions) {
    this.#options = options
    this.#schedule()
  }

  /** Why appends fail at present. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Appends all or none. @throws LogError, or Error where the log refuses an event for good. */
  async append(stage: AppendStage, events: readonly SluiceEvent[]): Promise<number> {
    if (events.length === 0) return 0
    const { log, metrics } = this.#options
    const began = performance.now()
    try {
      const appended = await log.append(events)
      if (!appended.ok) throw new Error(appended.problems.map(({ message }) => message).join('; '))
      metrics.add('events_appended_total', events.length, stage)
      metrics.add('append_seconds', (performance.now() - began) / 1_000, stage)
      this.#recover()
      return Math.max(...appended.value)
    } catch (error) {
      metrics.add('append_failures_total', 1, stage)
      this.fail(error)
      throw error
    }
  }

  /** @throws LogError */
  lastPosition(): Promise<number> {
    return this.#options.log.lastPosition()
  }

  /** Appends in the order of the calls, however long that takes. */
  enqueue(stage: AppendStage, events: readonly SluiceEvent[]): void {
    this.#queued.push({ stage, events })
    if (!this.#isSending) void this.#send()
  }

  /** Something about the log has failed, here or where it is read. */
  fail(error: unknown): void {
    if (this.#isClosed) return
    if (!isTransient(error)) {
      this.#options.onLost(error)
      return
    }
    const text = error instanceof Error ? error.message : String(error)
    if (this.#problem === undefined) this.#options.onProblem(text)
    this.#problem = text
    clearTimeout(this.#probe)
    this.#probe = setTimeout(() => void this.#probeLog(), retryMs)
  }

  /** Waits for nothing; what is still queued is lost. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#probe)
  }

  /** Resolves when everything that was queued is appended, or cannot be, or after a while. */
  async settled(withinMs: number): Promise<void> {
    const end = performance.now() + withinMs
    while (this.#isSending && performance.now() < end && this.#problem === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  async #send(): Promise<void> {
    this.#isSending = true
    for (
      let next = this.#queued[0];
      next !== undefined && !this.#isClosed;
      next = this.#queued[0]
    ) {
      const isDone = await this.append(next.stage, next.events).then(
        () => true,
        (error) => !isTransient(error),
      )
      if (isDone) this.#queued.shift()
      else await new Promise((resolve) => setTimeout(resolve, retryMs).unref())
    }
    this.#isSending = false
  }

  #schedule(): void {
    if (!this.#options.isShared || this.#isClosed) return
    this.#probe ??= setTimeout(() => void this.#probeLog(), watchMs).unref()
  }

  async #probeLog(): Promise<void> {
    this.#probe = undefined
    try {
      const lost = await this.#options.log.lostUpTo()
      this.#recover()
      if (lost > 0) this.#options.onTruncated(lost)
      this.#schedule()
    } catch (error) {
      this.fail(error)
    }
  }

  #recover(): void {
    if (this.#problem === undefined) return
    this.#problem = undefined
    this.#options.onRecovered()
  }
}
