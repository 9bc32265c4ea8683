/** For which times the counts of a proxy are known. */
import type { SeriesStore } from './store.ts'

export interface TimeSpan {
  readonly fromMs: number
  readonly toMs: number
}

interface Range extends TimeSpan {
  readonly stepMs: number
  readonly nowMs: number
  /** Since when the proxy is connected without a report; undefined if it has reported. */
  readonly silentSinceMs: number | undefined
  /** How long a proxy may take to report a bucket. */
  readonly reportLimitMs: number
}

/** A proxy that has not reported for so long is gone, even if nothing said so. */
const goneMs = 3_600_000

/**
 * Returns whether the proxy has counted anything in the time, and the times between its first and its last bucket, and
 * after it, that are not known. A proxy that was shut down in order is not missing until it comes back.
 */
export function presenceOf(
  store: SeriesStore,
  { fromMs, toMs, stepMs, nowMs, silentSinceMs, reportLimitMs }: Range,
): { readonly isPresent: boolean; readonly missing: readonly TimeSpan[] } {
  const known = bucketsOf(store, fromMs, toMs, stepMs)
  const missing: TimeSpan[] = []
  const add = (from: number, to: number, slackMs: number) => {
    const span = { fromMs: Math.max(from, fromMs), toMs: Math.min(to, toMs) }
    if (span.toMs - span.fromMs > slackMs) missing.push(span)
  }
  if (silentSinceMs !== undefined) add(silentSinceMs, nowMs, reportLimitMs)
  let last: Known | undefined
  for (const bucket of known) {
    if (last !== undefined && !last.hasLeft) {
      add(last.endMs, bucket.startMs, reportLimitMs / 2)
      const unknownMs = bucket.endMs - bucket.startMs - bucket.knownMs
      if (unknownMs > reportLimitMs / 2 && !bucket.hasLeft) add(bucket.startMs, bucket.endMs, 0)
    }
    if (last === undefined || bucket.endMs > last.endMs) last = bucket
  }
  if (last !== undefined && !last.hasLeft) {
    add(last.endMs, Math.min(nowMs, last.endMs + goneMs), reportLimitMs)
  }
  const isPresent = known.some(({ endMs }) => endMs > fromMs) || missing.length > 0
  return { isPresent, missing }
}

interface Known {
  readonly startMs: number
  readonly endMs: number
  /** A part of a longer bucket may not be known. */
  knownMs: number
  hasLeft: boolean
}

/** The buckets of a time, and of the hour before it, in order. */
function bucketsOf(store: SeriesStore, fromMs: number, toMs: number, stepMs: number): Known[] {
  const known: Known[] = []
  store.read(fromMs - goneMs, toMs, stepMs, {
    block: (startMs, endMs, group) => {
      if (group !== 'presence') return false
      known.push({ startMs, endMs, knownMs: 0, hasLeft: false })
      return true
    },
    series: () => undefined,
    count: (name, value) => {
      const last = known.at(-1)
      if (last === undefined) return
      if (name === 'left') last.hasLeft = true
      else last.knownMs += value
    },
  })
  return known.sort((a, b) => a.startMs - b.startMs)
}
