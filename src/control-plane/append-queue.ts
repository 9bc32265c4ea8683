/**
 * Appends of a controller: measured, and watched for a log that does not take them any more. What
 * must not be lost and can wait (answers of proxies) is appended again until it is taken.
 */
import type { SluiceEvent } from '../../events/index.ts'
import { type EventLog, LogError } from '../log/index.ts'
import type { ControllerMetrics } from './controller/metrics.ts'

export type AppendStage = 'source' | 'decision' | 'delivery' | 'lease' | 'effect' | 'digest'

export interface LogKeeperOptions {
  readonly log: EventLog
  readonly metrics: Pick<ControllerMetrics, 'add'>
  readonly onProblem: (text: string) => void
  readonly onRecovered: () => void
  /** This log will take nothing any more. */
  readonly onLost: (error: unknown) => void
  /** Somebody else has removed events up to a position; told until it is mended. */
  readonly onRobbed?: (upTo: number) => void
  /** Look now and then whether it is still there: others may delete what is shared. */
  readonly isShared: boolean
}

const watchMs = 2_000
const retryMs = 1_000

/** Errors after which the same log may work again. */
const passing = (error: unknown) => !(error instanceof LogError) || error.code === 'storage'

export class LogKeeper {
  readonly #options: LogKeeperOptions
  readonly #posted: { readonly stage: AppendStage; readonly events: readonly SluiceEvent[] }[] = []
  #isPosting = false
  #problem: string | undefined
  #probe: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: LogKeeperOptions) {
    this.#options = options
    this.#watch()
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
  post(stage: AppendStage, events: readonly SluiceEvent[]): void {
    this.#posted.push({ stage, events })
    if (!this.#isPosting) void this.#send()
  }

  /** Something about the log has failed, here or where it is read. */
  fail(error: unknown): void {
    if (this.#isClosed) return
    if (!passing(error)) {
      this.#options.onLost(error)
      return
    }
    const text = error instanceof Error ? error.message : String(error)
    if (this.#problem === undefined) this.#options.onProblem(text)
    this.#problem = text
    clearTimeout(this.#probe)
    this.#probe = setTimeout(() => void this.#look(), retryMs)
  }

  /** Waits for nothing; what was posted and not taken yet is lost. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#probe)
  }

  /** Resolves when everything that was posted is appended, or after a while. */
  async settled(withinMs: number): Promise<void> {
    const end = performance.now() + withinMs
    while (this.#isPosting && performance.now() < end && this.#problem === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  async #send(): Promise<void> {
    this.#isPosting = true
    for (
      let next = this.#posted[0];
      next !== undefined && !this.#isClosed;
      next = this.#posted[0]
    ) {
      const isDone = await this.append(next.stage, next.events).then(
        () => true,
        (error) => !passing(error),
      )
      if (isDone) this.#posted.shift()
      else await new Promise((resolve) => setTimeout(resolve, retryMs).unref())
    }
    this.#isPosting = false
  }

  #watch(): void {
    if (!this.#options.isShared || this.#isClosed) return
    this.#probe ??= setTimeout(() => void this.#look(), watchMs).unref()
  }

  async #look(): Promise<void> {
    this.#probe = undefined
    try {
      const lost = await this.#options.log.lostUpTo()
      this.#recover()
      if (lost > 0) this.#options.onRobbed?.(lost)
      this.#watch()
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
