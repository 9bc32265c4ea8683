/** What the workers of this process count while a rollout is under way. */
import type { MetricsSnapshot } from '../../../gateway/proxy/telemetry/metric-definitions.ts'
import { countsOf } from '../../../gateway/proxy/telemetry/series-counts.ts'
import { differenceOf, type Groups } from '../../../past/series/bucket.ts'
import type { FigureSample } from './figures.ts'

/** Maximum time between two calls. After a longer gap, counting starts again. */
const maxGapMs = 10_000

export class WorkerFigures {
  readonly #proxy: string
  readonly #scrape: () => Promise<readonly MetricsSnapshot[]>
  #sums: readonly Groups[] = []
  #readAt = 0
  #samples: FigureSample[] = []

  constructor(proxy: string, scrape: () => Promise<readonly MetricsSnapshot[]>) {
    this.#proxy = proxy
    this.#scrape = scrape
  }

  /** Reads the workers, and returns what they have counted since the first call of a series of calls. */
  async read(fromMs: number): Promise<readonly FigureSample[]> {
    const sums = (await this.#scrape()).map(countsOf)
    const [startMs, endMs] = [this.#readAt, Date.now()]
    const isNext = endMs - startMs <= maxGapMs && sums.length === this.#sums.length
    const samples = sums.map((groups, at) => ({
      proxy: `${this.#proxy}/${at}`,
      startMs,
      endMs,
      groups: differenceOf(groups, this.#sums[at] ?? new Map()),
    }))
    this.#samples = isNext ? [...this.#samples, ...samples] : []
    this.#samples = this.#samples.filter((sample) => sample.endMs > fromMs)
    this.#sums = sums
    this.#readAt = endMs
    return this.#samples
  }
}
