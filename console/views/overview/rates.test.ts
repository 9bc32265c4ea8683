import { describe, expect, it } from 'vitest'
import { readMetrics } from '../../source/prometheus.ts'
import { countersOf, ratesBetween } from './rates.ts'

const metrics = (ok: number, failed: number, fast: number) =>
  readMetrics(
    [
      '# TYPE sluice_requests_total counter',
      `sluice_requests_total{route="a",status="200"} ${ok}`,
      `sluice_requests_total{route="a \\"b\\"",status="503"} ${failed}`,
      `sluice_request_duration_seconds_bucket{le="0.01"} ${fast}`,
      `sluice_request_duration_seconds_bucket{le="0.1"} ${ok + failed}`,
      `sluice_request_duration_seconds_bucket{le="+Inf"} ${ok + failed}`,
      'sluice_gen_ai_client_token_usage_sum{gen_ai_token_type="input"} 40',
      'sluice_gen_ai_client_token_usage_sum{gen_ai_token_type="input_cache_read"} 30',
    ].join('\n'),
  )

describe('rates of a proxy', () => {
  it('are the differences of its counters, and quantiles of what ended in between', () => {
    const before = countersOf(metrics(100, 0, 100), 1_000)
    const after = countersOf(metrics(118, 2, 110), 3_000)
    const rates = ratesBetween(before, after)
    expect(rates).toMatchObject({ requests: 10, errors: 1, tokens: 0, p50Ms: 10 })
    expect(rates?.p99Ms).toBeCloseTo(98.2)
  })

  it('have no quantile if no request ended, and are unknown after a restart', () => {
    const before = countersOf(metrics(100, 0, 100), 1_000)
    expect(ratesBetween(before, { ...before, timeMs: 2_000 })).toMatchObject({
      requests: 0,
      p50Ms: undefined,
    })
    expect(ratesBetween(before, countersOf(metrics(1, 0, 1), 2_000))).toBeUndefined()
  })

  it('read label values with quotes, commas and braces', () => {
    const [sample] = readMetrics('a{x="1,\\"}",y="z"} 2')
    expect(sample).toEqual({ name: 'a', labels: { x: '1,"}', y: 'z' }, value: 2 })
  })
})
