/** Writes metrics in the protobuf format of Prometheus, in which histograms also have their native form. */

import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { sizeDelimitedEncode } from '@bufbuild/protobuf/wire'
import {
  type ExemplarSchema,
  type HistogramSchema,
  type LabelPairSchema,
  MetricFamilySchema,
  type MetricSchema,
} from '../../../../proto/gen/called/prometheus_metrics_pb.ts'
import { allLabels } from './added-labels.ts'
import type { Exemplar } from './exemplar.ts'
import { type ExponentialCounts, zeroThreshold } from './exponential.ts'
import {
  type MetricDefinition,
  type MetricsSnapshot,
  metricDefinitions,
  type Series,
} from './metric-definitions.ts'
import { metricNames } from './snapshots.ts'

const types = { counter: 0, gauge: 1, histogram: 4 } as const

/** Writes a snapshot as MetricFamily messages, each after its length. */
export function writeProtobuf(snapshot: MetricsSnapshot): Uint8Array {
  const families: Uint8Array[] = []
  for (const short of metricNames) {
    const all = snapshot[short]
    if (all === undefined || all.length === 0) continue
    const definition: MetricDefinition = metricDefinitions[short]
    const { type, help } = definition
    const metric = all.map((series) => metricOf(definition, series))
    const family = { name: `sluice_${short}`, help, type: types[type], metric }
    families.push(sizeDelimitedEncode(MetricFamilySchema, create(MetricFamilySchema, family)))
  }
  return Buffer.concat(families)
}

function metricOf(
  definition: MetricDefinition,
  series: Series,
): MessageInitShape<typeof MetricSchema> {
  const label = labelsOf(definition, series)
  const { type, buckets = [] } = definition
  if (type === 'histogram') return { label, histogram: histogramOf(buckets, series) }
  return { label, [type]: { value: series.values[0] ?? 0 } }
}

function labelsOf(
  definition: MetricDefinition,
  series: Series,
): MessageInitShape<typeof LabelPairSchema>[] {
  const { names, values } = allLabels(definition, series)
  return names.map((name, at) => ({ name, value: values[at] ?? 'unknown' }))
}

function histogramOf(
  bounds: readonly number[],
  { values, exemplars, exponential }: Series,
): MessageInitShape<typeof HistogramSchema> {
  const byBucket = new Map(exemplars?.map((one) => [one.bucket, one]))
  let total = 0
  const bucket = [...bounds, Number.POSITIVE_INFINITY].map((upperBound, at) => {
    total += values[at] ?? 0
    const exemplar = byBucket.get(at)
    return {
      upperBound,
      cumulativeCount: BigInt(total),
      ...(exemplar && { exemplar: exemplarOf(exemplar) }),
    }
  })
  return {
    sampleCount: BigInt(total),
    sampleSum: values[bounds.length + 1] ?? 0,
    bucket,
    ...(exponential && nativeOf(exponential)),
  }
}

/**
 * Returns the native form. Bucket i of Prometheus ends where bucket i of OpenTelemetry begins. Counts are differences
 * from the count of the bucket before.
 */
function nativeOf({
  scale,
  zeros,
  offset,
  counts,
}: ExponentialCounts): MessageInitShape<typeof HistogramSchema> {
  return {
    schema: scale,
    zeroThreshold,
    zeroCount: BigInt(zeros),
    positiveSpan: counts.length === 0 ? [] : [{ offset: offset + 1, length: counts.length }],
    positiveDelta: counts.map((count, at) => BigInt(count - (counts[at - 1] ?? 0))),
  }
}

function exemplarOf({
  traceId,
  spanId,
  value,
  atMs,
}: Exemplar): MessageInitShape<typeof ExemplarSchema> {
  const label = [
    { name: 'trace_id', value: traceId },
    { name: 'span_id', value: spanId },
  ]
  const seconds = Math.floor(atMs / 1_000)
  return {
    label,
    value,
    timestamp: { seconds: BigInt(seconds), nanos: Math.round((atMs - seconds * 1_000) * 1e6) },
  }
}
