/** Writes metrics in the text formats of Prometheus and of OpenMetrics, which also has exemplars. */

import { labelText, metricHead } from '../../../ground/base/prometheus.ts'
import { allLabels } from './added-labels.ts'
import type { Exemplar } from './exemplar.ts'
import {
  type MetricDefinition,
  type MetricsSnapshot,
  metricDefinitions,
  type Series,
} from './metric-definitions.ts'
import { metricNames } from './snapshots.ts'

interface TextFormat {
  /** Writes the bound of a bucket. */
  bound(value: number): string
  /** Writes what follows the count of a bucket. */
  exemplar(exemplar: Exemplar | undefined): string
}

const plain: TextFormat = { bound: String, exemplar: () => '' }

const openMetrics: TextFormat = {
  bound: canonicalNumber,
  exemplar(exemplar) {
    if (exemplar === undefined) return ''
    const { traceId, spanId, value, atMs } = exemplar
    return ` # {trace_id="${traceId}",span_id="${spanId}"} ${value} ${atMs / 1_000}`
  },
}

/** Writes a number as OpenMetrics wants it in `le`, such as `1.0` and `1.048576e+06`. */
export function canonicalNumber(value: number): string {
  const [digits = '', exponent = 0] = value.toExponential().split('e')
  const power = Number(exponent)
  if (power < -4 || power > 5) {
    const size = `${Math.abs(power)}`.padStart(2, '0')
    return `${digits}e${power < 0 ? '-' : '+'}${size}`
  }
  return Number.isInteger(value) ? `${value}.0` : String(value)
}

function histogramLines(
  name: string,
  definition: MetricDefinition,
  series: Series,
  format: TextFormat,
): string {
  const { names, values } = allLabels(definition, series)
  const exemplars = new Map(series.exemplars?.map((one) => [one.bucket, one]))
  let total = 0
  let lines = ''
  const bounds = [...(definition.buckets ?? []), Number.POSITIVE_INFINITY]
  bounds.forEach((bound, at) => {
    total += series.values[at] ?? 0
    const le = bound === Number.POSITIVE_INFINITY ? '+Inf' : format.bound(bound)
    const labels = labelText(names, values, `le="${le}"`)
    lines += `${name}_bucket${labels} ${total}${format.exemplar(exemplars.get(at))}\n`
  })
  const own = labelText(names, values)
  const sum = series.values[bounds.length] ?? 0
  return `${lines}${name}_sum${own} ${sum}\n${name}_count${own} ${total}\n`
}

function sampleLine(name: string, definition: MetricDefinition, series: Series): string {
  const { names, values } = allLabels(definition, series)
  return `${name}${labelText(names, values)} ${series.values[0] ?? 0}\n`
}

type WriteHead = (name: string, definition: MetricDefinition) => string

function writeText(snapshot: MetricsSnapshot, format: TextFormat, head: WriteHead): string {
  let text = ''
  for (const short of metricNames) {
    const all = snapshot[short]
    if (all === undefined || all.length === 0) continue
    const definition: MetricDefinition = metricDefinitions[short]
    const name = `sluice_${short}`
    text += head(name, definition)
    for (const series of all) {
      text +=
        definition.type === 'histogram'
          ? histogramLines(name, definition, series, format)
          : sampleLine(name, definition, series)
    }
  }
  return text
}

/** Writes a snapshot as text. Metrics without series are omitted. */
export function writePrometheus(snapshot: MetricsSnapshot): string {
  return writeText(snapshot, plain, (name, { type, help }) => metricHead(name, type, help))
}

const allNames: ReadonlySet<string> = new Set(metricNames.map((short) => `sluice_${short}`))

/**
 * Writes the head of a family. The name of a counter has no `_total` there, but names of families must differ: a
 * counter next to a gauge, such as `connections_total` next to `connections`, has no type.
 */
function openMetricsHead(name: string, { type, help }: MetricDefinition): string {
  const family = type === 'counter' ? name.replace(/_total$/, '') : name
  const text = help.replaceAll('"', '\\"')
  return type === 'counter' && allNames.has(family)
    ? metricHead(name, 'unknown', text)
    : metricHead(family, type, text)
}

/** Writes a snapshot in the text format of OpenMetrics 1.0. */
export function writeOpenMetrics(snapshot: MetricsSnapshot): string {
  return `${writeText(snapshot, openMetrics, openMetricsHead)}# EOF\n`
}
