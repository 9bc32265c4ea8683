/** The time series of many proxies, which answer questions with their sum, and say which proxies are missing. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SeriesReport, StoredSeries } from '../../ground/model/series.ts'
import { answerSeries, type SeriesAnswer, type SeriesQuestion } from './answer.ts'
import type { BlockVisitor } from './block.ts'
import type { Bucket } from './bucket.ts'
import { presenceOf, type TimeSpan } from './presence.ts'
import { readReport } from './report.ts'
import { bucketMs, type SeriesReader, SeriesStore, seriesPeriods, sumBy } from './store.ts'
import type { Tier } from './tier.ts'

interface Options {
  /** If omitted, the series are in memory only. */
  readonly folder?: string | undefined
  /** Maximum size of the series of all proxies. */
  readonly maxBytes: number
}

interface Proxy {
  readonly store: SeriesStore
  readonly folder: string | undefined
  /** Since when it is connected without a report; undefined once it has reported. */
  silentSinceMs: number | undefined
}

/** Maximum number of proxies, most of which are gone. */
const maxProxies = 1_000
/** Number of buckets of a file, so that old ones can be dropped while newer ones of the same proxy stay. */
const segmentBuckets = 360
/** How long a proxy may take to report a bucket before it counts as missing. */
const reportLimitMs = 3 * bucketMs
/** How far the clock of a proxy may be ahead. */
const clockLimitMs = 600_000
const nameFile = 'proxy'

export class CollectedSeries {
  readonly #options: Options
  readonly #proxies = new Map<string, Proxy>()

  /** Opens the series in the folder, which is created with the first report. @throws the system's error */
  constructor(options: Options) {
    this.#options = options
    const { folder } = options
    if (folder === undefined || !existsSync(folder)) return
    for (const name of readdirSync(folder)) {
      const path = join(folder, name)
      if (existsSync(join(path, nameFile))) {
        this.#proxies.set(readFileSync(join(path, nameFile), 'utf8'), this.#open(path))
      }
    }
  }

  #open(folder: string | undefined): Proxy {
    const { maxBytes } = this.#options
    const store = new SeriesStore({
      ...(folder !== undefined && { folder }),
      maxBytes,
      segmentBuckets,
    })
    return { store, folder, silentSinceMs: undefined }
  }

  /** Notes that a proxy, `namespace/gateway/name`, is connected and should report. @throws the system's error */
  connected(name: string, nowMs: number): void {
    const proxy = this.#proxy(name)
    if (endOf(proxy) === undefined) proxy.silentSinceMs ??= nowMs
  }

  #proxy(name: string): Proxy {
    const known = this.#proxies.get(name)
    if (known !== undefined) return known
    if (this.#proxies.size >= maxProxies) this.#forgetOne()
    const { folder } = this.#options
    const own = folder && join(folder, createHash('sha256').update(name).digest('hex').slice(0, 32))
    const proxy = this.#open(own)
    if (own !== undefined) writeFileSync(join(own, nameFile), name, { mode: 0o600 })
    this.#proxies.set(name, proxy)
    return proxy
  }

  /** Removes the proxy whose last report is the oldest. */
  #forgetOne(): void {
    const [oldest] = [...this.#proxies].sort(([, a], [, b]) => (endOf(a) ?? 0) - (endOf(b) ?? 0))
    if (oldest !== undefined) this.#forget(...oldest)
  }

  #forget(name: string, { folder }: Proxy): void {
    this.#proxies.delete(name)
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  }

  /** Stores the buckets that are new. @throws the system's error, such as for a full disk */
  take(name: string, report: SeriesReport, nowMs: number): void {
    const proxy = this.#proxy(name)
    const tier = proxy.store.tier(report.periodMs)
    if (tier === undefined) return
    for (const bucket of readReport(report)) {
      const isNew = bucket.endMs > (tier.endMs ?? 0)
      if (isNew && isPlausible(bucket, report.periodMs, nowMs)) tier.append(bucket)
    }
    proxy.silentSinceMs = undefined
    this.#dropOldest(tier)
  }

  /**
   * Drops the oldest segments of a period, of any proxy, until all proxies together are within the limit. The newest
   * segment of the current proxy stays.
   */
  #dropOldest(current: Tier): void {
    const { periodMs } = current
    const share = seriesPeriods.find((period) => period.periodMs === periodMs)?.share ?? 0
    const limit = this.#options.maxBytes * share
    const tiers = [...this.#proxies.values()].flatMap(({ store }) => store.tier(periodMs) ?? [])
    let bytes = tiers.reduce((sum, tier) => sum + tier.bytes, 0)
    while (bytes > limit) {
      const [oldest] = tiers
        .filter((tier) => tier.segments > (tier === current ? 1 : 0))
        .sort((a, b) => (a.startMs ?? 0) - (b.startMs ?? 0))
      if (oldest === undefined) break
      bytes -= oldest.removeOldest()
    }
    for (const [name, proxy] of this.#proxies) {
      if (proxy.store.startMs === undefined && proxy.silentSinceMs === undefined) {
        this.#forget(name, proxy)
      }
    }
  }

  /** What is stored of a proxy. */
  stored(name: string): StoredSeries {
    const store = this.#proxies.get(name)?.store
    return new Map(
      seriesPeriods.map(({ periodMs }) => [periodMs, store?.tier(periodMs)?.endMs ?? 0]),
    )
  }

  /** What a proxy has reported in buckets of ten seconds that end after a time. */
  buckets(name: string, afterMs: number): Bucket[] {
    const tier = this.#proxies.get(name)?.store.tier(bucketMs)
    const found = new Map<number, Bucket>()
    const visitor = sumBy((startMs) => found.get(startMs)?.groups ?? new Map())
    tier?.read(afterMs - bucketMs, Number.POSITIVE_INFINITY, {
      ...visitor,
      block: (startMs, endMs, group) => {
        if (endMs <= afterMs) return false
        if (!found.has(startMs)) found.set(startMs, { startMs, endMs, groups: new Map() })
        return visitor.block(startMs, endMs, group)
      },
    })
    return [...found.values()]
  }

  /** Answers up to the time until which every proxy has reported that is not missing. */
  answer(question: SeriesQuestion, nowMs: number): SeriesAnswer {
    const proxies = [...this.#proxies]
    const lastMs = Math.max(
      question.fromMs + 1,
      Math.min(question.toMs, this.#completeUntil(nowMs)),
    )
    const reader = sumOf(proxies.map(([, { store }]) => store))
    const answer = answerSeries(reader, { ...question, toMs: lastMs }, new Map())
    const range = {
      fromMs: Date.parse(answer.from),
      toMs: Math.min(question.toMs, nowMs),
      stepMs: answer.stepSeconds * 1_000,
    }
    const found = proxies.map(([proxy, { store, silentSinceMs }]) => ({
      proxy,
      ...presenceOf(store, { ...range, nowMs, silentSinceMs, reportLimitMs }),
    }))
    return {
      ...answer,
      proxies: found.filter(({ isPresent }) => isPresent).length,
      missing: found.flatMap(({ proxy, missing }) =>
        missing.map(({ fromMs, toMs }: TimeSpan) => ({
          proxy,
          from: new Date(fromMs).toISOString(),
          to: new Date(toMs).toISOString(),
        })),
      ),
    }
  }

  #completeUntil(nowMs: number): number {
    const ends = [...this.#proxies.values()]
      .map((proxy) => endOf(proxy) ?? 0)
      .filter((end) => end > nowMs - reportLimitMs)
    return Math.min(nowMs, ...ends)
  }
}

/** End of the newest bucket of any period. */
function endOf({ store }: Proxy): number | undefined {
  const ends = seriesPeriods.flatMap(({ periodMs }) => store.tier(periodMs)?.endMs ?? [])
  return ends.length === 0 ? undefined : Math.max(...ends)
}

/** Whether the times of a bucket may be true: a proxy could name any. */
const isPlausible = ({ startMs, endMs }: Bucket, periodMs: number, nowMs: number): boolean =>
  endMs >= startMs &&
  endMs - startMs <= 10 * periodMs + clockLimitMs &&
  endMs <= nowMs + clockLimitMs

/** Reads several stores one after the other. */
function sumOf(stores: readonly SeriesStore[]): SeriesReader {
  const starts = stores.map(({ startMs }) => startMs).filter((start) => start !== undefined)
  return {
    startMs: starts.length === 0 ? undefined : Math.min(...starts),
    stepFor: (fromMs, stepMs) =>
      Math.max(...stores.map((one) => one.stepFor(fromMs, stepMs)), stepMs),
    read: (fromMs: number, toMs: number, stepMs: number, visitor: BlockVisitor) => {
      for (const store of stores) store.read(fromMs, toMs, stepMs, visitor)
    },
  }
}
