/** Encodes metrics as ExportMetricsServiceRequests of the OpenTelemetry protocol. */

import { create, type MessageInitShape } from '@bufbuild/protobuf'
import {
  type ExemplarSchema,
  type ExponentialHistogramDataPointSchema,
  ExportMetricsServiceRequestSchema,
  type MetricSchema,
  type NumberDataPointSchema,
} from '../../../../../proto/gen/called/otlp_metrics_pb.ts'
import { allLabels } from '../added-labels.ts'
import type { Exemplar } from '../exemplar.ts'
import { type ExponentialCounts, exponentialSince, zeroThreshold } from '../exponential.ts'
import {
  type MetricDefinition,
  type MetricName,
  type MetricsSnapshot,
  metricDefinitions,
  type Series,
} from '../metric-definitions.ts'
import { encodeRequest } from './values.ts'

export type Temporality = 'cumulative' | 'delta'
export type HistogramKind = 'explicit' | 'exponential'

/** Values that the collector has taken, and when; the proxy's start before the first. */
export interface Exported {
  readonly snapshot: MetricsSnapshot
  readonly atMs: number
}

const temporalities = { delta: 1, cumulative: 2 } as const

type Attributes = readonly (readonly [name: string, value: string])[]

/** A request, and how many points of data it has. */
export interface EncodedMetrics {
  readonly body: Uint8Array
  readonly points: number
}

interface EncodeOptions {
  /** JSON instead of protobuf. */
  readonly isJson: boolean
  readonly temporality: Temporality
  /** `exponential` is for histograms that have such buckets. */
  readonly histograms: HistogramKind
  /** Exemplars up to this time have been exported. In milliseconds since 1970. */
  readonly exemplarsAfterMs: number
  readonly resource: Attributes
  readonly version: string
  /** Maximum number of points in a request. */
  readonly maxPoints: number
}

/** Yields requests with the metrics of `now`. With `delta`, sums and histograms count from `before` on. */
export function* encodeMetrics(
  now: Exported,
  before: Exported,
  options: EncodeOptions,
): Generator<EncodedMetrics> {
  const { isJson, temporality, resource, version, maxPoints } = options
  const scope = { name: 'sluice', version }
  let metrics: MessageInitShape<typeof MetricSchema>[] = []
  let points = 0
  const request = (): EncodedMetrics => {
    const attributes = keyValues(resource)
    const resourceMetrics = [{ resource: { attributes }, scopeMetrics: [{ scope, metrics }] }]
    const message = create(ExportMetricsServiceRequestSchema, { resourceMetrics })
    return { body: encodeRequest(ExportMetricsServiceRequestSchema, message, isJson), points }
  }
  for (const [name, all] of Object.entries(now.snapshot) as [MetricName, readonly Series[]][]) {
    const at = times(name, temporality, now, before)
    for (const part of partsOf(seriesSince(name, all, before, temporality), maxPoints)) {
      if (points > 0 && points + part.length > maxPoints) {
        yield request()
        metrics = []
        points = 0
      }
      metrics.push(metricOf(name, part, options, at))
      points += part.length
    }
  }
  if (points > 0) yield request()
}

function* partsOf<Item>(items: readonly Item[], size: number): Generator<readonly Item[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size)
}

/** Subtracts what was exported before from counters, if these are wanted as deltas. */
function seriesSince(
  name: MetricName,
  all: readonly Series[],
  { snapshot }: Exported,
  temporality: Temporality,
): readonly Series[] {
  if (temporality === 'cumulative' || metricDefinitions[name].type === 'gauge') return all
  const earlier = new Map(snapshot[name]?.map((series) => [series.labels.join('\0'), series]))
  return all.flatMap((series) => {
    const old = earlier.get(series.labels.join('\0'))
    const rest = old === undefined ? series : difference(series, old)
    return rest.values.some((value) => value !== 0) ? [rest] : []
  })
}

function difference(series: Series, old: Series): Series {
  // A counter that has fallen began again at 0.
  if (series.values.some((value, at) => value < (old.values[at] ?? 0))) return series
  const exponential = series.exponential && exponentialSince(series.exponential, old.exponential)
  return {
    ...series,
    values: series.values.map((value, at) => value - (old.values[at] ?? 0)),
    ...(exponential && { exponential }),
  }
}

interface Times {
  readonly startTimeUnixNano: bigint
  readonly timeUnixNano: bigint
}

const nanos = (ms: number): bigint => BigInt(Math.round(ms)) * 1_000_000n
const processStartMs = performance.timeOrigin

function times(name: MetricName, temporality: Temporality, now: Exported, before: Exported): Times {
  const isGauge = metricDefinitions[name].type === 'gauge'
  const startMs = temporality === 'delta' ? before.atMs : processStartMs
  return { startTimeUnixNano: isGauge ? 0n : nanos(startMs), timeUnixNano: nanos(now.atMs) }
}

const units = [
  ['_seconds', 's'],
  ['_seconds_total', 's'],
  ['_bytes', 'By'],
  ['_bytes_total', 'By'],
] as const

function metricOf(
  short: MetricName,
  series: readonly Series[],
  { temporality, histograms, exemplarsAfterMs }: EncodeOptions,
  at: Times,
): MessageInitShape<typeof MetricSchema> {
  const definition: MetricDefinition = metricDefinitions[short]
  const unit = units.find(([end]) => short.endsWith(end))?.[1] ?? ''
  const aggregationTemporality = temporalities[temporality]
  const head = { name: `sluice_${short}`, description: definition.help, unit }
  if (definition.type === 'histogram') {
    const points = series.map((one) => histogramPoint(definition, one, at, exemplarsAfterMs))
    if (histograms === 'exponential' && series.every((one) => one.exponential !== undefined)) {
      const dataPoints = points.map((point, at) => exponentialPoint(point, series[at]?.exponential))
      const value = { dataPoints, aggregationTemporality }
      return { ...head, data: { case: 'exponentialHistogram', value } }
    }
    const dataPoints = points.map(({ shared, explicit }) => ({ ...shared, ...explicit }))
    return { ...head, data: { case: 'histogram', value: { dataPoints, aggregationTemporality } } }
  }
  const dataPoints = series.map((one) => numberPoint(definition, one, at))
  return definition.type === 'gauge'
    ? { ...head, data: { case: 'gauge', value: { dataPoints } } }
    : {
        ...head,
        data: { case: 'sum', value: { dataPoints, aggregationTemporality, isMonotonic: true } },
      }
}

/** A label without a value is no attribute, as in Prometheus. */
function attributesOf(definition: MetricDefinition, series: Series) {
  const { names, values } = allLabels(definition, series)
  return keyValues(
    names.map((name, at) => [name, values[at] ?? ''] as const).filter(([, text]) => text),
  )
}

const keyValues = (attributes: Attributes) =>
  attributes.map(([key, value]) => ({
    key,
    value: { value: { case: 'stringValue' as const, value } },
  }))

function numberPoint(
  definition: MetricDefinition,
  series: Series,
  at: Times,
): MessageInitShape<typeof NumberDataPointSchema> {
  const value = series.values[0] ?? 0
  return {
    ...at,
    attributes: attributesOf(definition, series),
    value: Number.isSafeInteger(value)
      ? { case: 'asInt', value: BigInt(value) }
      : { case: 'asDouble', value },
  }
}

/** What explicit and exponential buckets share, and the former. */
type HistogramPoint = ReturnType<typeof histogramPoint>

/** Values are the counts of the buckets, that of the last, unbounded one, and the sum. */
function histogramPoint(
  definition: MetricDefinition,
  series: Series,
  at: Times,
  exemplarsAfterMs: number,
) {
  const bounds = definition.buckets ?? []
  const counts = [...bounds, undefined].map((_, bucket) => series.values[bucket] ?? 0)
  const exemplars = series.exemplars?.filter(({ atMs }) => atMs > exemplarsAfterMs) ?? []
  return {
    shared: {
      ...at,
      attributes: attributesOf(definition, series),
      count: BigInt(counts.reduce((sum, count) => sum + count, 0)),
      sum: series.values[bounds.length + 1] ?? 0,
      exemplars: exemplars.map(exemplarOf),
    },
    explicit: { bucketCounts: counts.map(BigInt), explicitBounds: [...bounds] },
  }
}

function exponentialPoint(
  { shared }: HistogramPoint,
  counts: ExponentialCounts | undefined,
): MessageInitShape<typeof ExponentialHistogramDataPointSchema> {
  if (counts === undefined) return shared
  const { scale, zeros, offset, counts: all } = counts
  const positive = { offset, bucketCounts: all.map(BigInt) }
  return { ...shared, scale, zeroCount: BigInt(zeros), zeroThreshold, positive }
}

const exemplarOf = ({
  traceId,
  spanId,
  value,
  atMs,
}: Exemplar): MessageInitShape<typeof ExemplarSchema> => ({
  timeUnixNano: nanos(atMs),
  asDouble: value,
  traceId: Buffer.from(traceId, 'hex'),
  spanId: Buffer.from(spanId, 'hex'),
})
