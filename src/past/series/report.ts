/** Buckets of time series as a proxy sends them to its controller, which stores them as they are. */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { SeriesReport, StoredSeries } from '../../ground/model/series.ts'
import { framesOf } from '../decisions/frame.ts'
import { BlockReader, type BlockVisitor, BlockWriter } from './block.ts'
import type { Bucket, Groups } from './bucket.ts'
import { type SeriesStore, seriesPeriods, sumBy } from './store.ts'

/** Number of counts of series in a report, unless one bucket has more. A count takes about five bytes. */
const maxCounts = 50_000
/** Maximum size of a report that is read. */
const maxReadBytes = 16_000_000
const hourMs = 3_600_000
/** How old buckets of each period may be, so that a new controller need not wait long for the newest ones. */
const maxAgeMs: Readonly<Partial<Record<(typeof seriesPeriods)[number]['name'], number>>> = {
  'ten-seconds': hourMs,
  minutes: 24 * hourMs,
  'ten-minutes': 7 * 24 * hourMs,
}

/** Returns the next buckets that are not stored yet, of the shortest period first; undefined if all are. */
export function nextReport(
  store: SeriesStore,
  stored: StoredSeries,
  nowMs: number,
): SeriesReport | undefined {
  for (const { name, periodMs } of seriesPeriods) {
    const oldestMs = nowMs - (maxAgeMs[name] ?? nowMs)
    const buckets = bucketsAfter(store, periodMs, Math.max(stored.get(periodMs) ?? 0, oldestMs))
    if (buckets.length > 0) return { periodMs, frames: framesFor(buckets) }
  }
  return undefined
}

/** Returns the first buckets that end after a time. */
function bucketsAfter(store: SeriesStore, periodMs: number, afterMs: number): Bucket[] {
  const tier = store.tier(periodMs)
  if (tier?.endMs === undefined || tier.endMs <= afterMs) return []
  const gathered = gatherBuckets((endMs) => endMs > afterMs)
  tier.read(afterMs - periodMs, Number.POSITIVE_INFINITY, gathered.visitor)
  return gathered.buckets
}

/** Gathers buckets until they have many counts. */
function gatherBuckets(isWanted: (endMs: number) => boolean, limit = maxCounts) {
  const buckets: Bucket[] = []
  let last: Bucket | undefined
  let counts = 0
  const sums = sumBy(() => last?.groups ?? new Map())
  const visitor: BlockVisitor = {
    block: (startMs, endMs, group) => {
      if (!isWanted(endMs)) return false
      if (last?.startMs !== startMs || last.endMs !== endMs) {
        if (counts > limit) return false
        const groups: Groups = new Map()
        last = { startMs, endMs, groups }
        buckets.push(last)
      }
      return sums.block(startMs, endMs, group)
    },
    series: (name) => sums.series(name),
    count: (name, value) => {
      counts++
      sums.count(name, value)
    },
  }
  return { buckets, visitor }
}

function framesFor(buckets: readonly Bucket[]): Uint8Array {
  const writer = new BlockWriter()
  const frames = buckets.flatMap(({ startMs, endMs, groups }) =>
    [...groups].map(([group, series]) => Buffer.from(writer.write(startMs, endMs, group, series))),
  )
  return deflateRawSync(Buffer.concat(frames))
}

/** Returns the buckets of a report. What cannot be read is left out. */
export function readReport({ frames }: SeriesReport): Bucket[] {
  let bytes: Buffer
  try {
    bytes = inflateRawSync(frames, { maxOutputLength: maxReadBytes })
  } catch {
    return []
  }
  const { buckets, visitor } = gatherBuckets(() => true, Number.POSITIVE_INFINITY)
  const reader = new BlockReader()
  for (const frame of framesOf(bytes)) {
    if ('problem' in frame) reader.skipList()
    else reader.read(frame.block, visitor)
  }
  return buckets
}
