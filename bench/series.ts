/**
 * Time series of 1,000 busy routes: the CPU time of an answer about a day, as the console asks for it, and that of
 * a bucket, which is written every ten seconds. Both without the requests, which do nothing for the series.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
    const store = new SeriesStore({ folder })
    const written: number[] = []
    // Buckets of a minute in place of ten seconds: the answers read those of ten minutes anyway.
    for (let at = 0; at < day; at += 60_000) {
      const groups = groupsAt(at)
      const bucket = { startMs: start + at, endMs: start + at + 60_000, groups }
      written.push(cpuOf(() => store.append(bucket)))
    }
    note('a day is written')
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
    ]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
