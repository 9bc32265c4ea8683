/**
 * Passes the time series of a proxy on to its controller. The store of the proxy is the queue: the controller says up
 * to when it has them, so that nothing is lost or counted twice if either process restarts.
 */
import type { ConnectSeries, SeriesConnection, StoredSeries } from '../../ground/model/series.ts'
import { nextReport } from './report.ts'
import type { SeriesStore } from './store.ts'

export class SeriesReporter {
  readonly #store: SeriesStore
  readonly #connection: SeriesConnection
  /** What the controller has; undefined before it has answered, and while it stores a report. */
  #stored: StoredSeries | undefined
  /** The report that is under way was sent after the controller had this. */
  #before: StoredSeries | undefined
  #onSettled: (() => void) | undefined

  constructor(store: SeriesStore, connect: ConnectSeries) {
    this.#store = store
    this.#connection = connect((stored) => this.#received(stored))
  }

  #received(stored: StoredSeries): void {
    const before = this.#before
    this.#before = undefined
    this.#stored = stored
    const hasAdvanced = [...stored].some(([period, end]) => end > (before?.get(period) ?? 0))
    // A report that the controller cannot store is only repeated with the next bucket.
    if (before === undefined || hasAdvanced) this.send()
    else this.#onSettled?.()
  }

  /** Sends what has been stored since the last report, unless a report is under way. */
  send(): void {
    const stored = this.#stored
    if (stored === undefined) return
    const report = nextReport(this.#store, stored, Date.now())
    if (report === undefined) {
      this.#onSettled?.()
      return
    }
    this.#before = stored
    this.#stored = undefined
    this.#connection.report(report)
  }

  /** Disconnects once the controller has everything, or after a time. */
  async close(limitMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onSettled = resolve
    const timer = setTimeout(resolve, limitMs)
    this.send()
    await promise
    clearTimeout(timer)
    this.#connection.close()
  }
}
