/** The messages by which a proxy passes its time series on to its controller. */

/** Buckets of one period, oldest first. */
export interface SeriesReport {
  /** Duration of the buckets in ms. 0 if the report has none and only asks what the controller has. */
  readonly periodMs: number
  /** The blocks of the buckets with their frames (`src/past/series/block.ts`), as one compressed text. */
  readonly frames: Uint8Array
}

/** End of the newest bucket that the controller has stored of a proxy, by period; both in ms. */
export type StoredSeries = ReadonlyMap<number, number>

export interface SeriesConnection {
  report(report: SeriesReport): void
  close(): void
}

/**
 * Connects the time series of a proxy to those who store them. `receive` is called after every connection and every
 * report. A report that was not stored must be sent again.
 */
export type ConnectSeries = (receive: (stored: StoredSeries) => void) => SeriesConnection
