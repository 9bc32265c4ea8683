/** Records time series of a proxy: at the end of each bucket, what its metrics have counted since the last one. */
import type { ConnectSeries } from '../../../ground/model/series.ts'
import {
  answerSeries,
  type SeriesAnswer,
  type SeriesQuestion,
} from '../../../past/series/answer.ts'
import { addCount, addGroups, differenceOf, type Groups } from '../../../past/series/bucket.ts'
import { SeriesReporter } from '../../../past/series/reporter.ts'
import { bucketMs, SeriesStore } from '../../../past/series/store.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'
import { countsOf } from '../telemetry/series-counts.ts'

interface RecorderOptions {
  /** If omitted, or if it cannot be used, the series are in memory only. */
  readonly folder: string | undefined
  /** Returns the sums of all workers. */
  readonly scrape: () => Promise<MetricsSnapshot>
  /** Connects the series to a controller that stores them, too. */
  readonly connect?: ConnectSeries | undefined
  /** Called if the series cannot be written, once until they can be written again. */
  readonly onProblem: (error: Error) => void
}

/** How long the end of the process waits until the controller has the last bucket. */
const lastReportMs = 2_000

const toError = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(String(thrown))

export class SeriesRecorder {
  readonly #options: RecorderOptions
  readonly #store: SeriesStore
  readonly #reporter: SeriesReporter | undefined
  #timer: NodeJS.Timeout | undefined
  /** Sums since the proxy started, as they were read last. */
  #sums: Groups = new Map()
  /** What was counted since the last bucket. */
  #open: Groups = new Map()
  #openSinceMs = Date.now()
  #isFailing = false
  #isClosed = false
  #reading: Promise<void> | undefined

  constructor(options: RecorderOptions) {
    this.#options = options
    this.#store = this.#openStore()
    const { connect } = options
    this.#reporter = connect && new SeriesReporter(this.#store, connect)
  }

  #openStore(): SeriesStore {
    const { folder, onProblem } = this.#options
    try {
      return new SeriesStore({ ...(folder !== undefined && { folder }) })
    } catch (error) {
      onProblem(toError(error))
      return new SeriesStore({})
    }
  }

  start(): void {
    if (this.#isClosed) return
    const waitMs = bucketMs - (Date.now() % bucketMs)
    this.#timer = setTimeout(() => this.#endBucket().finally(() => this.start()), waitMs)
    this.#timer.unref()
  }

  async #endBucket(isLast = false): Promise<void> {
    await this.#read()
    this.#write(isLast)
  }

  /** Adds what was counted since the last call to the open bucket. */
  #read(): Promise<void> {
    this.#reading ??= this.#options
      .scrape()
      .then((snapshot) => {
        const sums = countsOf(snapshot)
        addGroups(this.#open, differenceOf(sums, this.#sums))
        this.#sums = sums
      })
      .finally(() => {
        this.#reading = undefined
      })
    return this.#reading
  }

  #write(isLast: boolean): void {
    const endMs = Date.now()
    const groups = this.#open
    // The timer may be early or late by some milliseconds.
    const startMs = Math.floor(this.#openSinceMs / bucketMs) * bucketMs
    addCount(groups, 'presence', '', 'known', endMs - this.#openSinceMs)
    if (isLast) addCount(groups, 'presence', '', 'left', 1)
    this.#open = new Map()
    this.#openSinceMs = endMs
    try {
      this.#store.append({ startMs, endMs: Math.max(endMs, startMs), groups })
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) this.#options.onProblem(toError(error))
      this.#isFailing = true
    }
    this.#reporter?.send()
  }

  /** Answers with everything that has been counted until now. */
  async answer(question: SeriesQuestion): Promise<SeriesAnswer> {
    await this.#read()
    return answerSeries(this.#store, question, this.#open)
  }

  /** Writes the last bucket. Call it while the workers still answer, or after they have sent their last metrics. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#timer)
    // What is being read now may have begun before the last requests ended.
    await this.#reading
    await this.#endBucket(true)
    await this.#reporter?.close(lastReportMs)
  }
}
