/** Adds up the snapshots of workers. */
import type { Exemplar } from './exemplar.ts'
import { addExponential } from './exponential.ts'
import {
  type MetricName,
  type MetricsSnapshot,
  metricDefinitions,
  type Series,
} from './metric-definitions.ts'

export const metricNames = Object.keys(metricDefinitions) as MetricName[]

/** Adds up snapshots series by series. */
export function sumSnapshots(snapshots: readonly MetricsSnapshot[]): MetricsSnapshot {
  const sums: Partial<Record<MetricName, readonly Series[]>> = {}
  for (const name of metricNames) {
    const present = snapshots.map((snapshot) => snapshot[name] ?? [])
    const filled = present.filter((series) => series.length > 0)
    if (filled.length > 0) sums[name] = filled.length === 1 ? filled[0] : sumSeries(filled.flat())
  }
  return sums
}

/** What is left of a thread that has ended: its counters, which must not fall, but not its gauges. */
export function countersOf(snapshot: MetricsSnapshot): MetricsSnapshot {
  const counters = metricNames.filter((name) => metricDefinitions[name].type !== 'gauge')
  return Object.fromEntries(counters.map((name) => [name, snapshot[name] ?? []]))
}

function sumSeries(all: readonly Series[]): Series[] {
  const sums = new Map<string, Series>()
  for (const series of all) {
    const key = series.labels.join('\0')
    const known = sums.get(key)
    sums.set(key, known === undefined ? series : addSeries(known, series))
  }
  return [...sums.values()]
}

function addSeries(a: Series, b: Series): Series {
  const [longer, shorter] = a.values.length < b.values.length ? [b, a] : [a, b]
  const exponential =
    a.exponential && b.exponential
      ? addExponential(a.exponential, b.exponential)
      : (a.exponential ?? b.exponential)
  const exemplars = newestExemplars(a.exemplars, b.exemplars)
  return {
    labels: a.labels,
    values: longer.values.map((value, at) => value + (shorter.values[at] ?? 0)),
    ...(exponential && { exponential }),
    ...(exemplars && { exemplars }),
  }
}

function newestExemplars(
  a: readonly Exemplar[] | undefined,
  b: readonly Exemplar[] | undefined,
): readonly Exemplar[] | undefined {
  if (a === undefined || b === undefined) return a ?? b
  const newest = new Map(a.map((exemplar) => [exemplar.bucket, exemplar]))
  for (const exemplar of b) {
    const known = newest.get(exemplar.bucket)
    if (known === undefined || known.atMs < exemplar.atMs) newest.set(exemplar.bucket, exemplar)
  }
  return [...newest.values()]
}
