/**
 * Stores what was counted, in buckets of ten seconds, minutes, ten minutes and hours. A bucket of a longer period is the sum of
 * those of the next shorter one, so that a restart loses nothing that was written.
 */
import type { BlockVisitor } from './block.ts'
import { addCount, type Bucket, type Groups, type StoredGroup } from './bucket.ts'
import { FileSegments, MemorySegments } from './segments.ts'
import { Tier } from './tier.ts'

/** Duration of the shortest buckets. */
export const bucketMs = 10_000
export const seriesPeriods = [
  { name: 'ten-seconds', periodMs: bucketMs, share: 0.1 },
  { name: 'minutes', periodMs: 60_000, share: 0.65 },
  // A day of a thousand routes is read from these, in a tenth of the time.
  { name: 'ten-minutes', periodMs: 600_000, share: 0.1 },
  { name: 'hours', periodMs: 3_600_000, share: 0.15 },
] as const

/** Maximum size on disk, and in memory if there is no folder. */
const diskBytes = 64_000_000
const memoryBytes = 6_000_000

interface StoreOptions {
  /** If omitted, the buckets are in memory only. */
  readonly folder?: string
  readonly maxBytes?: number
  /** Number of buckets after which a file ends. By default, only its size counts. */
  readonly segmentBuckets?: number
}

/** Where the answers to questions come from. */
export interface SeriesReader {
  /** Start of the oldest bucket of any period; undefined if there is none. */
  readonly startMs: number | undefined
  /**
   * Returns the shortest duration, at least `stepMs`, of which there are buckets back to a time or to the oldest
   * that is known.
   */
  stepFor(fromMs: number, stepMs: number): number
  /**
   * Reads the buckets that begin in a time. Those of the longest period that fits the step come first; what is newer
   * than these is read from shorter ones.
   */
  read(fromMs: number, toMs: number, stepMs: number, visitor: BlockVisitor): void
}

export class SeriesStore implements SeriesReader {
  readonly #tiers: readonly Tier[]

  /** Creates the folder if it does not exist. @throws the system's error */
  constructor({
    folder,
    maxBytes = folder === undefined ? memoryBytes : diskBytes,
    segmentBuckets = Number.POSITIVE_INFINITY,
  }: StoreOptions) {
    this.#tiers = seriesPeriods.map(({ name, periodMs, share }) => {
      const segments = folder === undefined ? new MemorySegments() : new FileSegments(folder, name)
      return new Tier(periodMs, segments, maxBytes * share, segmentBuckets * periodMs)
    })
  }

  /** The buckets of a period; undefined if none have this period. */
  tier(periodMs: number): Tier | undefined {
    return this.#tiers.find((tier) => tier.periodMs === periodMs)
  }

  /** Appends a bucket of ten seconds or a part of one. @throws the system's error */
  append(bucket: Bucket): void {
    const [first] = this.#tiers
    first?.append(bucket)
    for (let at = 1; at < this.#tiers.length; at++) this.#rollUp(at, bucket.endMs)
  }

  /** Sums up the buckets of the next shorter period in all periods that have ended. */
  #rollUp(at: number, nowMs: number): void {
    const [fine, tier] = [this.#tiers[at - 1], this.#tiers[at]]
    if (fine?.startMs === undefined || tier === undefined) return
    const { periodMs } = tier
    const startOf = (ms: number) => Math.floor(ms / periodMs) * periodMs
    const fromMs = tier.endMs ?? startOf(fine.startMs)
    const toMs = startOf(Math.min(nowMs, fine.endMs ?? nowMs))
    if (toMs <= fromMs) return
    const sums = new Map<number, Groups>()
    fine.read(
      fromMs,
      toMs,
      sumBy((startMs) => {
        const start = startOf(startMs)
        const known = sums.get(start)
        if (known !== undefined) return known
        const groups: Groups = new Map()
        sums.set(start, groups)
        return groups
      }),
    )
    for (const [startMs, groups] of [...sums].sort(([a], [b]) => a - b)) {
      tier.append({ startMs, endMs: startMs + periodMs, groups })
    }
    tier.advanceTo(toMs)
  }

  get startMs(): number | undefined {
    const starts = this.#tiers.map(({ startMs }) => startMs).filter((start) => start !== undefined)
    return starts.length === 0 ? undefined : Math.min(...starts)
  }

  stepFor(fromMs: number, stepMs: number): number {
    let at = this.#tierFor(stepMs)
    for (; at + 1 < this.#tiers.length; at++) {
      const [start, longer] = [this.#tiers[at]?.startMs, this.#tiers[at + 1]]
      const reaches = longer?.startMs !== undefined && start !== undefined
      if (!reaches || start <= fromMs || start - (longer.startMs ?? 0) <= longer.periodMs) break
    }
    const { periodMs = bucketMs } = this.#tiers[at] ?? {}
    return Math.ceil(Math.max(stepMs, periodMs) / periodMs) * periodMs
  }

  /** The longest period that a step consists of. */
  #tierFor(stepMs: number): number {
    return this.#tiers.findLastIndex(({ periodMs }) => stepMs % periodMs === 0)
  }

  read(fromMs: number, toMs: number, stepMs: number, visitor: BlockVisitor): void {
    let from = fromMs
    for (let at = this.#tierFor(stepMs); at >= 0; at--) {
      const tier = this.#tiers[at]
      const to = at === 0 ? toMs : Math.min(toMs, tier?.endMs ?? from)
      if (to <= from) continue
      tier?.read(from, to, visitor)
      from = to
    }
  }
}

/** Returns a visitor that adds every count to the groups that `groupsAt` returns. */
export function sumBy(groupsAt: (startMs: number) => Groups): BlockVisitor {
  let groups: Groups = new Map()
  let group: StoredGroup = 'all'
  let series = ''
  return {
    block: (startMs, _, found) => {
      groups = groupsAt(startMs)
      group = found
      if (!groups.has(found)) groups.set(found, new Map())
      return true
    },
    series: (name) => {
      series = name
    },
    count: (name, value) => addCount(groups, group, series, name, value),
  }
}
