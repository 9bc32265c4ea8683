import { appendFileSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { answerSeries, type SeriesQuestion } from './answer.ts'
import { addCount, differenceOf, type Groups, otherName, type SeriesGroup } from './bucket.ts'
import { readQuestion } from './question.ts'
import { SeriesStore } from './store.ts'

const hour = 3_600_000
const start = Date.parse('2026-01-31T12:00:00Z')
const folders: string[] = []
function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-series-'))
  folders.push(folder)
  return folder
}
afterEach(() => {
  vi.useRealTimers()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

type Entry = readonly [group: SeriesGroup, name: string, counts: Readonly<Record<string, number>>]

function groupsOf(...entries: readonly Entry[]): Groups {
  const groups: Groups = new Map()
  for (const [group, name, counts] of entries) {
    for (const [count, value] of Object.entries(counts)) addCount(groups, group, name, count, value)
  }
  return groups
}

const appendAt = (store: SeriesStore, startMs: number, ...entries: readonly Entry[]) =>
  store.append({ startMs, endMs: startMs + 10_000, groups: groupsOf(...entries) })

function ask(store: SeriesStore, question: Partial<SeriesQuestion> = {}, open: Groups = new Map()) {
  const defaults = { by: 'all', fromMs: start, toMs: start + hour, stepMs: 60_000 } as const
  return answerSeries(store, { ...defaults, top: 20, withPoints: true, ...question }, open)
}

const one = (requests: number): Entry => ['all', '', { requests }]

describe('time series', () => {
  it('answers ten seconds, minutes, ten minutes and hours from the same counts', () => {
    const store = new SeriesStore({})
    for (let at = 0; at < 3 * hour; at += 10_000) appendAt(store, start + at, one(1))
    const sum = (stepMs: number) => {
      const { series, stepSeconds } = ask(store, { stepMs, toMs: start + 3 * hour })
      const points = series[0]?.points?.requests ?? []
      return { stepSeconds, count: points.length, first: points[0], all: series[0]?.sums.requests }
    }
    expect(sum(10_000)).toEqual({ stepSeconds: 10, count: 1_080, first: 1, all: 1_080 })
    expect(sum(60_000)).toEqual({ stepSeconds: 60, count: 180, first: 6, all: 1_080 })
    expect(sum(600_000)).toEqual({ stepSeconds: 600, count: 18, first: 60, all: 1_080 })
    expect(sum(hour)).toEqual({ stepSeconds: 3_600, count: 3, first: 360, all: 1_080 })
  })

  it('adds what is newer than the last whole minute, and what is not stored yet', () => {
    const store = new SeriesStore({})
    vi.useFakeTimers({ now: start + 85_000 })
    for (let at = 0; at < 80_000; at += 10_000) appendAt(store, start + at, one(1))
    const { series } = ask(store, { toMs: start + 85_000 }, groupsOf(one(5)))
    expect(series[0]?.points?.requests).toEqual([6, 7])
    expect(series[0]?.sums.requests).toBe(13)
  })

  it('says when each series had its last request, and how guards decided in each step', () => {
    const store = new SeriesStore({})
    const key = (name: string): Entry => ['key', name, { requests: 1 }]
    appendAt(store, start, key('principal=ann'), key('principal=bob'))
    appendAt(store, start + 120_000, key('principal=ann'), ['key', 'principal=bob', { cost: 1 }])
    const { series } = ask(store, { by: 'key' })
    expect(series.map(({ name, lastRequest }) => [name, lastRequest])).toEqual([
      ['principal=ann', '2026-01-31T12:02:10.000Z'],
      ['principal=bob', '2026-01-31T12:01:00.000Z'],
    ])
    expect(ask(store, { by: 'key', top: 1 }).series[1]).toMatchObject({ isOther: true })
    expect(ask(store, { by: 'key', top: 1 }).series[1]).not.toHaveProperty('lastRequest')
    const guard = 'Request regex'
    appendAt(store, start + 180_000, ['guard', guard, { requests: 3, 'verdict:Mask': 3 }])
    appendAt(store, start + 240_000, ['guard', guard, { requests: 1, 'verdict:Reject': 1 }])
    const [decided] = ask(store, { by: 'guard', toMs: start + 300_000 }).series
    expect(decided?.points?.verdicts).toEqual({ Mask: [0, 0, 0, 3, 0], Reject: [0, 0, 0, 0, 1] })
  })

  it('keeps everything but the torn block after a restart', () => {
    const folder = newFolder()
    const before = new SeriesStore({ folder })
    for (let at = 0; at < 130_000; at += 10_000) appendAt(before, start + at, one(1))
    const file = join(folder, readdirSync(folder).find((name) => name.startsWith('ten')) ?? '')
    truncateSync(file, statSync(file).size - 3)
    const after = new SeriesStore({ folder })
    expect(ask(after).series[0]?.sums.requests).toBe(12)
    appendAt(after, start + 130_000, one(100))
    expect(ask(after).series[0]?.sums.requests).toBe(112)
    // The minute in which the process was restarted has the buckets of both.
    for (let at = 140_000; at < 180_000; at += 10_000) appendAt(after, start + at, one(1))
    expect(ask(after).series[0]?.points?.requests.slice(0, 3)).toEqual([6, 6, 104])
  })

  it('reads what follows a damaged part of a file', () => {
    const folder = newFolder()
    const before = new SeriesStore({ folder })
    appendAt(before, start, one(1))
    const file = join(folder, readdirSync(folder).find((name) => name.startsWith('ten')) ?? '')
    appendFileSync(file, Buffer.from('SLD1 not a block of series'))
    const after = new SeriesStore({ folder })
    appendAt(after, start + 10_000, one(2))
    expect(ask(new SeriesStore({ folder }), { stepMs: 10_000 }).series[0]?.sums.requests).toBe(3)
  })

  it('drops the oldest buckets when the files are full, and answers with longer steps', () => {
    const folder = newFolder()
    const store = new SeriesStore({ folder, maxBytes: 24_000 })
    for (let at = 0; at < 12 * hour; at += 10_000) appendAt(store, start + at, one(1))
    const bytes = readdirSync(folder).reduce(
      (sum, file) => sum + statSync(join(folder, file)).size,
      0,
    )
    expect(bytes).toBeLessThan(30_000)
    const { stepSeconds, series } = ask(store, { stepMs: 10_000, toMs: start + 12 * hour })
    expect(stepSeconds).toBe(600)
    expect(series[0]?.sums.requests).toBe(12 * 360)
  })

  it('does not lose counts after the clock was set back', () => {
    const store = new SeriesStore({ folder: newFolder() })
    for (const at of [60_000, 70_000, 0, 10_000, 20_000, 80_000]) {
      appendAt(store, start + at, one(1))
    }
    expect(ask(store, { stepMs: 10_000 }).series[0]?.sums.requests).toBe(6)
  })

  it('sums up the series beyond the limit, and says so', () => {
    const store = new SeriesStore({})
    const routes = Array.from(
      { length: 1_200 },
      (_, at): Entry => ['route', `ns/r${at}`, { requests: at + 1 }],
    )
    appendAt(store, start, ...routes)
    const { series } = ask(store, { by: 'route', top: 2 })
    expect(series.map(({ name, isOther }) => [name, isOther])).toEqual([
      ['ns/r1199', false],
      ['ns/r1198', false],
      [otherName, true],
    ])
    const all = series.reduce((sum, { sums }) => sum + sums.requests, 0)
    expect(all).toBe((1_200 * 1_201) / 2)
    expect(series[2]?.points?.requests[0]).toBe(all - 1_200 - 1_199)
  })

  it('estimates latencies, and lists causes and verdicts', () => {
    const store = new SeriesStore({})
    const counts = { requests: 100, 'le:0.01': 90, 'le:0.1': 10, cost: 0.0125, errors: 3 }
    const more = { 'cause:UpstreamFailure 503': 2, 'cause:Upstream 500': 1, 'verdict:Mask': 4 }
    appendAt(store, start, ['all', '', { ...counts, ...more }])
    const [all] = ask(store).series
    expect(all?.sums).toMatchObject({
      cost: 0.0125,
      causes: [
        { name: 'UpstreamFailure 503', count: 2 },
        { name: 'Upstream 500', count: 1 },
      ],
      verdicts: [{ name: 'Mask', count: 4 }],
    })
    expect(all?.sums.p50Ms).toBeCloseTo(5.56, 1)
    expect(all?.sums.p99Ms).toBeCloseTo(91, 0)
  })

  it('counts from 0 again if a sum has fallen', () => {
    const difference = differenceOf(groupsOf(one(3)), groupsOf(one(10)))
    expect(difference).toEqual(groupsOf(one(3)))
  })
})

describe('questions about time series', () => {
  const read = (query: string) => readQuestion(new URLSearchParams(query), start)

  it('reads a range, a step and a group', () => {
    const query = 'from=2026-01-31T10:00:00Z&to=2026-01-31T11:00:00Z&step=1m&by=route&points'
    expect(read(query)).toMatchObject({
      value: { by: 'route', fromMs: start - 2 * hour, toMs: start - hour, stepMs: 60_000 },
    })
    expect(read('since=1h')).toMatchObject({ value: { fromMs: start - hour, toMs: start } })
  })

  it.each([
    ['by=colour', 'by: expected one of all, route'],
    ['from=yesterday', 'from, to, since: expected times'],
    ['to=2026-13-01T00:00:00Z', 'from, to, since: expected times'],
    ['since=long', 'from, to, since: expected times'],
    ['step=0s', 'step: expected a duration'],
    ['top=0', 'top: expected a number'],
    ['form=1', 'form: unknown'],
  ])('refuses %s', (query, message) => {
    expect(read(query)).toMatchObject({ ok: false, problems: [expect.stringContaining(message)] })
  })
})
