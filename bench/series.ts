/**
 * Time series of 1,000 busy routes: the CPU time of an answer about a day, as the console asks for it, that of a
 * bucket, which is written every ten seconds, and the memory that all of it takes. Requests do nothing for the series,
 * which are read from the metrics: what a bucket costs is all that a GET costs more.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type MetricsSnapshot,
  metricDefinitions,
} from '../src/gateway/proxy/telemetry/metric-definitions.ts'
import { countsOf } from '../src/gateway/proxy/telemetry/series-counts.ts'
import { answerSeries, type SeriesQuestion } from '../src/past/series/answer.ts'
import { addCount, type Groups } from '../src/past/series/bucket.ts'
import { SeriesStore } from '../src/past/series/store.ts'
import type { BenchContext, Row } from './harness.ts'

const day = 86_400_000
const start = Date.parse('2026-01-31T00:00:00Z')
const routes = 1_000
const bounds = ['0.005', '0.01', '0.025', '0.05', '0.1']

function groupsAt(at: number): Groups {
  const groups: Groups = new Map()
  for (let route = 0; route < routes; route++) {
    const name = `shop/route-${route}`
    addCount(groups, 'route', name, 'requests', 10 + ((at + route) % 7))
    for (let near = 0; near < 3; near++) {
      addCount(groups, 'route', name, `le:${bounds[(route + near) % 5]}`, 3 + near)
    }
  }
  addCount(groups, 'all', '', 'requests', 13 * routes)
  return groups
}

/** Metrics of a proxy whose routes have each answered with four statuses, at a time. */
function metricsAt(at: number): MetricsSnapshot {
  const { labels: names = [], buckets = [] } = metricDefinitions.request_duration_seconds
  const series = Array.from({ length: 4 * routes }, (_, index) => {
    const known: Readonly<Record<string, string>> = {
      route: `shop/route-${index >> 2}`,
      backend: `shop/backend-${(index >> 2) % 100}`,
      status: ['200', '304', '404', '503'][index & 3] ?? '',
      reason: 'Upstream',
    }
    const labels = names.map((name) => known[name] ?? 'edge')
    const fastest = index % (buckets.length - 6)
    const isUsed = (bucket: number) => bucket >= fastest && bucket < fastest + 6
    const values = [...buckets, 0, 0].map((_, bucket) => (isUsed(bucket) ? at + bucket : 0))
    return { labels, values }
  })
  return { request_duration_seconds: series }
}

/** Bytes that the process holds after everything unused is collected. */
function heldBytes(): number {
  for (let turn = 0; turn < 3; turn++) global.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** CPU time in ms. */
function cpuOf(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

export default function seriesBench({ rounds, note }: BenchContext): Row[] {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  try {
    const before = heldBytes()
    const store = new SeriesStore({ folder })
    const written: number[] = []
    // Buckets of a minute in place of ten seconds: the answers read those of ten minutes anyway.
    for (let at = 0; at < day; at += 60_000) {
      const groups = groupsAt(at)
      const bucket = { startMs: start + at, endMs: start + at + 60_000, groups }
      written.push(cpuOf(() => store.append(bucket)))
    }
    // The recorder holds the sums since its start, and those of the open bucket.
    const held = [countsOf(metricsAt(1)), countsOf(metricsAt(2))]
    const memory = (heldBytes() - before) / 1e6
    note(`a day is written; ${held.length} sums are held`)
    const snapshot = metricsAt(1)
    const counted = Array.from({ length: rounds }, () => cpuOf(() => countsOf(snapshot)))
    const ask = (question: Pick<SeriesQuestion, 'by' | 'top' | 'withPoints'>) =>
      Array.from({ length: rounds }, () =>
        cpuOf(() => {
          const asked = { ...question, fromMs: start, toMs: start + day, stepMs: day / 180 }
          return JSON.stringify(answerSeries(store, asked, new Map()))
        }),
      )
    const bound = { atMost: 200 }
    return [
      {
        id: 'series.day.points',
        unit: 'ms',
        own: ask({ by: 'route', top: 100, withPoints: true }),
        bound,
        note: 'a day of 1,000 routes, with points of the 100 most active ones',
      },
      {
        id: 'series.day.sums',
        unit: 'ms',
        own: ask({ by: 'route', top: 1_000, withPoints: false }),
        bound,
        note: 'a day of 1,000 routes, sums of each',
      },
      {
        id: 'series.bucket',
        unit: 'ms',
        own: [written.reduce((sum, ms) => sum + ms, 0) / written.length],
        bound: { atMost: 100 },
        note: 'mean of a bucket with all longer ones; 100 ms each ten seconds are 1 % of a core',
      },
      {
        id: 'series.collect',
        unit: 'ms',
        own: counted,
        bound: { atMost: 100 },
        note: 'reading a bucket from metrics of 4,000 series with six latencies each, every ten seconds; with `series.bucket` it must stay below 1 % of a core',
      },
      {
        id: 'series.memory',
        unit: 'MB',
        own: [memory],
        bound: { atMost: 10 },
        note: 'held after a day of 1,000 routes was written to disk, with the sums of the recorder',
      },
    ]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
