/**
 * Stores the time series that proxies report: in a folder beside the log file or, if replicas share a NATS server, in
 * streams there. Then each replica has the series of all proxies in memory, wherever these are connected.
 */
import type { ConnectSeries, SeriesReport, StoredSeries } from '../../../ground/model/series.ts'
import type { SeriesAnswer, SeriesQuestion } from '../../../past/series/answer.ts'
import { CollectedSeries } from '../../../past/series/collected.ts'
import { seriesPeriods } from '../../../past/series/store.ts'
import type { SeriesStreams } from '../../log/nats-series.ts'
import type { LogLevel } from '../parts.ts'
import type { RolloutTargets } from '../rollout/targets.ts'

interface Options {
  /** NATS servers; if omitted, the series are in `folder`. */
  readonly nats?: string | undefined
  readonly folder?: string | undefined
  readonly notify: (severity: LogLevel, text: string) => void
}

/** Maximum size of the series of all proxies. Those on the NATS server are compressed. */
const diskBytes = 128_000_000
const memoryBytes = 32_000_000
const natsBytes = 32_000_000
/** Time after which a report that was not stored may come again, and a failed server is tried again. */
const retryMs = 5_000

export class ControllerSeries {
  readonly #options: Options
  readonly #collected: CollectedSeries
  /** Those who wait for what is stored, by proxy. */
  readonly #receivers = new Map<string, Set<(stored: StoredSeries) => void>>()
  #streams: Promise<SeriesStreams> | undefined
  /** Whether everything is known that was stored before. Until then, proxies get no answer. */
  #isRead: boolean
  #isFailing = false
  #isClosed = false

  constructor(options: Options) {
    this.#options = options
    const { nats, folder } = options
    this.#isRead = nats === undefined
    this.#collected = this.#open(nats === undefined ? folder : undefined)
    if (nats !== undefined) this.#openStreams(nats)
  }

  #open(folder: string | undefined): CollectedSeries {
    try {
      const maxBytes = folder === undefined ? memoryBytes : diskBytes
      return new CollectedSeries({ folder, maxBytes })
    } catch (error) {
      this.#failed(error)
      return new CollectedSeries({ maxBytes: memoryBytes })
    }
  }

  /** Keeps trying until the server answers. */
  #openStreams(servers: string): void {
    const maxBytes = new Map(
      seriesPeriods.map(({ periodMs, share }) => [periodMs, natsBytes * share]),
    )
    const receive = ({ proxy, ...report }: SeriesReport & { readonly proxy: string }) =>
      this.#store(proxy, report)
    const open = async () => {
      const { SeriesStreams: Streams } = await import('../../log/nats-series.ts')
      const streams = await Streams.open({ servers, maxBytes, receive })
      await streams.isRead
      return streams
    }
    this.#streams = open()
    this.#streams.then(
      () => {
        this.#isRead = true
        for (const proxy of this.#receivers.keys()) this.#answer(proxy)
      },
      (error) => {
        this.#failed(error)
        setTimeout(() => this.#isClosed || this.#openStreams(servers), retryMs).unref()
      },
    )
  }

  /** Returns who stores the series of the proxy `namespace/gateway/name`. */
  readonly connect = (proxy: string): ConnectSeries => {
    return (receive) => {
      const receivers = this.#receivers.get(proxy) ?? new Set()
      this.#receivers.set(proxy, receivers)
      receivers.add(receive)
      this.#guarded(() => this.#collected.connected(proxy, Date.now()))
      return {
        report: (report) => void this.#take(proxy, report),
        close: () => {
          receivers.delete(receive)
          if (receivers.size === 0 && this.#receivers.get(proxy) === receivers) {
            this.#receivers.delete(proxy)
          }
        },
      }
    }
  }

  async #take(proxy: string, report: SeriesReport): Promise<void> {
    const isQuestion = report.periodMs === 0
    try {
      const streams = await this.#streams
      if (isQuestion) this.#answer(proxy)
      else if (streams === undefined) this.#store(proxy, report)
      // The answer follows when this replica has read the report from the stream.
      else await streams.publish({ proxy, ...report })
      if (!isQuestion) this.#isFailing = false
    } catch (error) {
      this.#failed(error)
      setTimeout(() => this.#answer(proxy), retryMs).unref()
    }
  }

  #store(proxy: string, report: SeriesReport): void {
    this.#guarded(() => this.#collected.take(proxy, report, Date.now()))
    this.#answer(proxy)
  }

  #answer(proxy: string): void {
    if (!this.#isRead) return
    for (const receive of [...(this.#receivers.get(proxy) ?? [])]) {
      receive(this.#collected.stored(proxy))
    }
  }

  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#failed(error)
    }
  }

  #failed(error: unknown): void {
    if (this.#isFailing || this.#isClosed) return
    this.#isFailing = true
    const reason = error instanceof Error ? error.message : String(error)
    this.#options.notify('warn', `time series of proxies are not stored: ${reason}`)
  }

  async answer(question: SeriesQuestion): Promise<SeriesAnswer> {
    return this.#collected.answer(question, Date.now())
  }

  /** What proxies of a Gateway have counted in buckets that end after a time. */
  readonly figures: NonNullable<RolloutTargets['figures']> = async (gateway, names, fromMs) =>
    names.flatMap((proxy) =>
      this.#collected
        .buckets(`${gateway}/${proxy}`, fromMs)
        .map((bucket) => ({ ...bucket, proxy })),
    )

  async close(): Promise<void> {
    this.#isClosed = true
    const streams = await this.#streams?.catch(() => undefined)
    await streams?.close()
  }
}
