/**
 * Appends events to the log, with metrics, and detects a log that fails. Events that must not be lost
 * and can wait, such as acknowledgements of proxies, are queued and retried.
 */
import { setTimeout as after } from 'node:timers/promises'
import type { SluiceEvent } from '../../../events/index.ts'
import { type EventLog, LogError } from '../log/index.ts'
import type { ControllerMetrics } from './controller/metrics.ts'

type AppendStage = 'source' | 'decision' | 'delivery' | 'lease' | 'effect' | 'digest'

interface AppendQueueOptions {
  readonly metrics: Pick<ControllerMetrics, 'add'>
  readonly log: EventLog
  readonly onProblem: (text: string) => void
  readonly onRecovered: () => void
  /** Called when the log has failed permanently. */
  readonly onLost: (error: unknown) => void
  /** Called when events up to a position were removed externally, and repeatedly until the log is mended. */
  readonly onTruncated: (upTo: number) => void
  /** Whether other processes use the log. If so, it is probed regularly, since they may delete it. */
  readonly isShared: boolean
}

const probeMs = 2_000
const retryMs = 1_000

/** Whether the same log may work again after an error. */
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

  /** Why appends fail now; undefined if they do not. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Appends all or none. @throws LogError, or Error if the log refuses an event permanently */
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

  /** Queues events, which are appended in the order of the calls and retried after passing failures. */
  enqueue(stage: AppendStage, events: readonly SluiceEvent[]): void {
    this.#queued.push({ stage, events })
    if (!this.#isSending) void this.#send()
  }

  /** Handles a failure of the log, which occurred here or in a reader. */
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

  /** Drops queued events. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#probe)
  }

  /** Resolves when the queue is empty, the log has failed or the time is over. */
  async settled(withinMs: number): Promise<void> {
    const end = performance.now() + withinMs
    while (this.#isSending && performance.now() < end && this.#problem === undefined) {
      await after(10)
    }
  }

  async #send(): Promise<void> {
    this.#isSending = true
    while (!this.#isClosed) {
      const [next] = this.#queued
      if (next === undefined) break
      const isDone = await this.append(next.stage, next.events).then(
        () => true,
        (error) => !isTransient(error),
      )
      if (isDone) this.#queued.shift()
      else await after(retryMs, undefined, { ref: false })
    }
    this.#isSending = false
  }

  #schedule(): void {
    if (!this.#options.isShared || this.#isClosed) return
    this.#probe ??= setTimeout(() => void this.#probeLog(), probeMs).unref()
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
