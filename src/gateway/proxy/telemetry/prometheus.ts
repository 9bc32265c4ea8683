/** Adds up the snapshots of workers, and writes them in the text format of Prometheus. */
import { labelText, metricHead } from '../../../ground/base/prometheus.ts'
import { allLabels } from './added-labels.ts'
import {
  type MetricDefinition,
  type MetricName,
  type MetricsSnapshot,
  metricDefinitions,
  type Series,
} from './metric-definitions.ts'

const metricNames = Object.keys(metricDefinitions) as MetricName[]

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
  const sums = new Map<string, { labels: readonly string[]; values: number[] }>()
  for (const { labels, values } of all) {
    const key = labels.join('\0')
    const known = sums.get(key)
    if (known === undefined) sums.set(key, { labels, values: [...values] })
    else
      values.forEach((value, at) => {
        known.values[at] = (known.values[at] ?? 0) + value
      })
  }
  return [...sums.values()]
}

function histogramLines(name: string, definition: MetricDefinition, series: Series): string {
  const { names, values } = allLabels(definition, series)
  let total = 0
  let lines = ''
  const bounds = [...(definition.buckets ?? []), Number.POSITIVE_INFINITY]
  bounds.forEach((bound, at) => {
    total += series.values[at] ?? 0
    const le = bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound)
    lines += `${name}_bucket${labelText(names, values, `le="${le}"`)} ${total}\n`
  })
  const own = labelText(names, values)
  const sum = series.values[bounds.length] ?? 0
  return `${lines}${name}_sum${own} ${sum}\n${name}_count${own} ${total}\n`
}

function sampleLine(name: string, definition: MetricDefinition, series: Series): string {
  const { names, values } = allLabels(definition, series)
  return `${name}${labelText(names, values)} ${series.values[0] ?? 0}\n`
}

/** Writes a snapshot as text. Metrics without series are omitted. */
export function writePrometheus(snapshot: MetricsSnapshot): string {
  let text = ''
  for (const short of metricNames) {
    const all = snapshot[short]
    if (all === undefined || all.length === 0) continue
    const definition: MetricDefinition = metricDefinitions[short]
    const name = `sluice_${short}`
    text += metricHead(name, definition.type, definition.help)
    for (const series of all) {
      text +=
        definition.type === 'histogram'
          ? histogramLines(name, definition, series)
          : sampleLine(name, definition, series)
    }
  }
  return text
}
