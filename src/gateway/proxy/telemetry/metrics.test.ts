import { describe, expect, it } from 'vitest'
import { writePrometheus } from './prometheus.ts'
import { sumSnapshots } from './snapshots.ts'
import { type Label, TimedCounters } from './timed-counters.ts'

const describeLabels = (labels: readonly Label[]) => labels.map(String)

describe('TimedCounters', () => {
  it('keeps a series for each combination of labels', () => {
    const counters = new TimedCounters([0.125, 1], describeLabels)
    counters.record(['a', 200, ''], 0.125, 5)
    counters.record(['a', 200, ''], 0.25, 6)
    counters.record(['b', 200, ''], 3, 0)
    counters.record(['a', 404, 'x'], 0, 1)
    counters.record(['a', 200, ''], 9, 1)
    expect(counters.snapshot()).toMatchObject([
      {
        count: { labels: ['a', '200', ''], values: [3] },
        bytes: { labels: ['a', '200', ''], values: [12] },
        duration: { labels: ['a', '200', ''], values: [1, 1, 1, 9.375] },
      },
      {
        count: { labels: ['b', '200', ''], values: [1] },
        bytes: { labels: ['b', '200', ''], values: [0] },
        duration: { labels: ['b', '200', ''], values: [0, 0, 1, 3] },
      },
      {
        count: { labels: ['a', '404', 'x'], values: [1] },
        bytes: { labels: ['a', '404', 'x'], values: [1] },
        duration: { labels: ['a', '404', 'x'], values: [1, 0, 0, 0] },
      },
    ])
  })

  it('counts label combinations above the limit as one overflow series', () => {
    const counters = new TimedCounters([1], describeLabels, 2)
    for (const label of ['a', 'b', 'c', 'd', 'a']) counters.record([label, 'x'], 0, 0)
    expect(counters.snapshot().map(({ count }) => [count.labels, count.values[0]])).toEqual([
      [['a', 'x'], 2],
      [['b', 'x'], 1],
      [['overflow', 'overflow'], 2],
    ])
  })
})

describe('sumSnapshots', () => {
  it('adds series with equal labels and keeps the others', () => {
    const one = { requests_total: [{ labels: ['a'], values: [1] }] }
    const two = {
      requests_total: [
        { labels: ['b'], values: [5] },
        { labels: ['a'], values: [2] },
      ],
    }
    expect(sumSnapshots([one, {}, two])).toEqual({
      requests_total: [
        { labels: ['a'], values: [3] },
        { labels: ['b'], values: [5] },
      ],
    })
    expect(one.requests_total[0]?.values).toEqual([1])
  })
})

describe('writePrometheus', () => {
  it('writes counters with help, type and escaped labels', () =>
    expect(writePrometheus({ build_info: [{ labels: ['a"\\\nb'], values: [1] }] })).toBe(
      '# HELP sluice_build_info Version of the proxy.\n# TYPE sluice_build_info gauge\n' +
        'sluice_build_info{tag="a\\"\\\\\\nb"} 1\n',
    ))

  it('writes metrics without labels, and omits metrics without a series', () =>
    expect(writePrometheus({ workers: [{ labels: [], values: [2] }], requests_total: [] })).toBe(
      '# HELP sluice_workers Worker threads that serve traffic.\n' +
        '# TYPE sluice_workers gauge\nsluice_workers 2\n',
    ))

  it('writes histograms with cumulative buckets, sum and count', () => {
    const values = [1, 2, ...Array(13).fill(0), 4, 0.5]
    const text = writePrometheus({
      upstream_connect_duration_seconds: [{ labels: ['plaintext'], values }],
    })
    const name = 'sluice_upstream_connect_duration_seconds'
    expect(text).toContain(`${name}_bucket{transport="plaintext",le="0.0005"} 1\n`)
    expect(text).toContain(`${name}_bucket{transport="plaintext",le="0.001"} 3\n`)
    expect(text).toContain(`${name}_bucket{transport="plaintext",le="8"} 3\n`)
    expect(text).toContain(`${name}_bucket{transport="plaintext",le="+Inf"} 7\n`)
    expect(text).toContain(`${name}_sum{transport="plaintext"} 0.5\n`)
    expect(text).toContain(`${name}_count{transport="plaintext"} 7\n`)
  })
})
