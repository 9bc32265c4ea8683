import { fromBinary } from '@bufbuild/protobuf'
import { sizeDelimitedPeek } from '@bufbuild/protobuf/wire'
import { describe, expect, it } from 'vitest'
import { MetricFamilySchema } from '../../../../proto/gen/called/prometheus_metrics_pb.ts'
import { ExponentialCounter } from './exponential.ts'
import { expose } from './exposition.ts'
import type { MetricsSnapshot } from './metric-definitions.ts'
import { canonicalNumber } from './prometheus.ts'
import { sumSnapshots } from './snapshots.ts'

const trace = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
const values = [1, 2, ...Array<number>(13).fill(0), 4, 0.5]
const snapshot: MetricsSnapshot = {
  upstream_connect_duration_seconds: [
    {
      labels: ['plaintext'],
      values,
      exemplars: [{ ...trace, bucket: 1, value: 0.0007, atMs: 1_700_000_000_123 }],
    },
  ],
  upstream_connections_total: [{ labels: [], values: [5] }],
  upstream_connections: [{ labels: [], values: [1] }],
  requests_total: [{ labels: [], values: [2] }],
}
const types = {
  protobuf:
    'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited',
  openMetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  text: 'text/plain; version=0.0.4; charset=utf-8',
}

describe('the format of metrics', () => {
  it.each([
    ['', types.text],
    ['*/*', types.text],
    ['application/openmetrics-text', types.openMetrics],
    ['application/openmetrics-text; version=1.0.0', types.openMetrics],
    ['application/openmetrics-text; version="1.0.0"', types.openMetrics],
    // A version that the gateway does not write.
    ['application/openmetrics-text; version=2.0.0', types.text],
    ['application/openmetrics-text; version=0.0.1', types.text],
    ['application/openmetrics-text; q=0', types.text],
    ['application/openmetrics-text; q=nonsense', types.text],
    ['application/openmetrics-text;q=0.4,text/plain;version=0.0.4;q=0.5', types.text],
    // What Prometheus 3 sends, without and with native histograms.
    [
      'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2',
      types.openMetrics,
    ],
    [
      'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,application/openmetrics-text;version=1.0.0;q=0.6,*/*;q=0.2',
      types.protobuf,
    ],
    // Other encodings of protobuf are not written.
    [
      'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text',
      types.text,
    ],
    ['application/vnd.google.protobuf', types.text],
  ])('follows accept: %s', (accept, type) =>
    expect(expose(snapshot, accept).contentType).toBe(type),
  )
})

describe('the OpenMetrics format', () => {
  const lines = String(expose(snapshot, 'application/openmetrics-text').body).split('\n')

  it('has exemplars and ends with EOF', () => {
    expect(lines).toContain(
      `sluice_upstream_connect_duration_seconds_bucket{transport="plaintext",le="0.001"} 3 # {trace_id="${trace.traceId}",span_id="${trace.spanId}"} 0.0007 1700000000.123`,
    )
    expect(lines.filter((line) => line.includes(' # '))).toHaveLength(1)
    expect(lines).toContain(
      'sluice_upstream_connect_duration_seconds_bucket{transport="plaintext",le="8.0"} 3',
    )
    expect(lines.slice(-2)).toEqual(['# EOF', ''])
  })

  it('names counters without _total, unless a gauge has that name', () => {
    expect(lines).toContain('# TYPE sluice_requests counter')
    expect(lines).toContainEqual(expect.stringMatching(/^sluice_requests_total\{.*\} 2$/))
    expect(lines).toContain('# TYPE sluice_upstream_connections gauge')
    expect(lines).toContain('# TYPE sluice_upstream_connections_total unknown')
  })

  it('has no exemplars in the text format of Prometheus, which would refuse them', () =>
    expect(String(expose(snapshot).body)).not.toContain('trace_id'))

  it('writes numbers of labels in the canonical form', () =>
    expect([1, 300, 0.0005, 0.00001, 262_144, 1_048_576, 0.025].map(canonicalNumber)).toEqual([
      '1.0',
      '300.0',
      '0.0005',
      '1e-05',
      '262144.0',
      '1.048576e+06',
      '0.025',
    ]))
})

describe('the protobuf format', () => {
  it('has classic and native histograms, whose buckets end at the bounds of Prometheus', () => {
    const counter = new ExponentialCounter()
    for (const value of [0, 1, 1, 1.05, 8]) counter.record(value)
    const [series] = snapshot.upstream_connect_duration_seconds ?? []
    const { body, contentType } = expose(
      {
        upstream_connect_duration_seconds: [
          { labels: [], values: [], ...series, exponential: counter.snapshot() },
        ],
      },
      types.protobuf,
    )
    expect(contentType).toBe(types.protobuf)
    const bytes = Buffer.from(body)
    const { offset } = sizeDelimitedPeek(bytes)
    const family = fromBinary(MetricFamilySchema, bytes.subarray(offset ?? undefined))
    const histogram = family.metric[0]?.histogram
    expect(family).toMatchObject({ name: 'sluice_upstream_connect_duration_seconds', type: 4 })
    expect(family.metric[0]?.label).toMatchObject([{ name: 'transport', value: 'plaintext' }])
    expect(histogram).toMatchObject({ sampleCount: 7n, sampleSum: 0.5, schema: 3, zeroCount: 1n })
    expect(histogram?.bucket[1]).toMatchObject({
      cumulativeCount: 3n,
      upperBound: 0.001,
      exemplar: { value: 0.0007, timestamp: { seconds: 1_700_000_000n, nanos: 123_000_000 } },
    })
    expect(histogram?.bucket.at(-1)?.upperBound).toBe(Number.POSITIVE_INFINITY)
    // Bucket i ends at 2^(i/8): 1 is in bucket 0, 1.05 in bucket 1 and 8 in bucket 24.
    expect(histogram?.positiveSpan).toMatchObject([{ offset: 0, length: 25 }])
    expect(histogram?.positiveDelta.map(Number)).toEqual([2, -1, -1, ...Array(21).fill(0), 1])
  })
})

it('keeps the newest exemplar of each bucket when workers are added up', () => {
  const series = (atMs: number, bucket: number) => ({
    requests_total: [
      { labels: [], values: [1], exemplars: [{ ...trace, bucket, value: 1, atMs }] },
    ],
  })
  const sum = sumSnapshots([series(2, 0), series(3, 0), series(1, 0), series(1, 4)])
  expect(sum.requests_total?.[0]?.exemplars?.map(({ bucket, atMs }) => [bucket, atMs])).toEqual([
    [0, 3],
    [4, 1],
  ])
})
