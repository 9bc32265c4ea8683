import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { addCount, type Groups } from './bucket.ts'
import { CollectedSeries } from './collected.ts'
import { nextReport } from './report.ts'
import { SeriesStore } from './store.ts'

const start = Date.parse('2026-01-31T12:00:00Z')
const minute = 60_000
const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})
function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-collected-'))
  folders.push(folder)
  return folder
}

/** Appends buckets of ten seconds with one request each to the store of a proxy. */
function count(store: SeriesStore, fromMs: number, toMs: number, hasLeft = false): void {
  for (let startMs = fromMs; startMs < toMs; startMs += 10_000) {
    const groups: Groups = new Map()
    const isLast = startMs + 10_000 >= toMs
    addCount(groups, 'all', '', 'requests', 1)
    addCount(groups, 'presence', '', 'known', 10_000)
    if (hasLeft && isLast) addCount(groups, 'presence', '', 'left', 1)
    store.append({ startMs, endMs: startMs + 10_000, groups })
  }
}

/** Sends all that is new, and returns the number of reports. */
function report(store: SeriesStore, collected: CollectedSeries, name: string, nowMs: number) {
  for (let reports = 0; ; reports++) {
    const next = nextReport(store, collected.stored(name), nowMs)
    if (next === undefined) return reports
    collected.take(name, next, nowMs)
  }
}

function ask(collected: CollectedSeries, nowMs: number, fromMs = start, stepMs = 10_000) {
  const question = { by: 'all', fromMs, toMs: nowMs, stepMs, top: 20, withPoints: true } as const
  const { series, proxies, missing = [], to } = collected.answer(question, nowMs)
  return {
    requests: series[0]?.sums.requests ?? 0,
    proxies,
    missing: missing.map((one) => [one.proxy, Date.parse(one.from), Date.parse(one.to)]),
    to: Date.parse(to),
  }
}

describe('the series of several proxies', () => {
  it('are added up once, up to the time until which all have reported', () => {
    const collected = new CollectedSeries({ maxBytes: 1e6 })
    const [a, b] = [new SeriesStore({}), new SeriesStore({})]
    const nowMs = start + 5 * minute + 5_000
    count(a, start, start + 5 * minute)
    count(b, start, start + 5 * minute - 10_000)
    const first = nextReport(a, new Map(), nowMs)
    if (first === undefined) throw new Error('no report')
    // A report whose answer was lost comes again.
    collected.take('a', first, nowMs)
    collected.take('a', first, nowMs)
    report(a, collected, 'a', nowMs)
    report(b, collected, 'b', nowMs)
    const complete = start + 5 * minute - 10_000
    expect(ask(collected, nowMs)).toEqual({ requests: 58, proxies: 2, missing: [], to: complete })
  })

  it('name the proxies that are missing, but not those that were shut down', () => {
    const collected = new CollectedSeries({ maxBytes: 1e6 })
    const stores = {
      gap: new SeriesStore({}),
      gone: new SeriesStore({}),
      left: new SeriesStore({}),
    }
    const nowMs = start + 10 * minute
    count(stores.gap, start, start + 2 * minute)
    count(stores.gap, start + 4 * minute, nowMs)
    count(stores.gone, start, start + 3 * minute)
    count(stores.left, start, start + 3 * minute, true)
    for (const [name, store] of Object.entries(stores)) report(store, collected, name, nowMs)
    collected.connected('silent', start + 8 * minute)
    const missing = [
      ['gap', start + 2 * minute, start + 4 * minute],
      ['gone', start + 3 * minute, nowMs],
      ['silent', start + 8 * minute, nowMs],
    ]
    expect(ask(collected, nowMs)).toMatchObject({ proxies: 4, missing })
    // The same in steps of a minute.
    expect(ask(collected, nowMs, start, minute).missing).toEqual(missing)
    // After an hour, it is not expected to come back.
    const later = start + 120 * minute
    expect(ask(collected, later, later - 15 * minute).missing.map(([name]) => name)).not.toContain(
      'gone',
    )
  })

  it('are in files after a restart, and take no more than their limit', () => {
    const folder = newFolder()
    const maxBytes = 60_000
    let collected = new CollectedSeries({ folder, maxBytes })
    const names = ['ns/edge/a', 'ns/edge/b']
    const stores = names.map(() => new SeriesStore({}))
    const time = 6 * 60 * minute
    for (let at = 0; at < time; at += 60 * minute) {
      stores.forEach((store, index) => {
        count(store, start + at, start + at + 60 * minute)
        report(store, collected, names[index] ?? '', start + at + 60 * minute)
      })
    }
    const bytes = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.series'))
      .reduce((sum, file) => sum + statSync(join(folder, file)).size, 0)
    expect(bytes).toBeLessThan(maxBytes)
    collected = new CollectedSeries({ folder, maxBytes })
    const nowMs = start + time
    const lastHour = ask(collected, nowMs, nowMs - 60 * minute)
    expect(lastHour).toMatchObject({ requests: 2 * 360, proxies: 2, missing: [] })
    // Longer buckets last longer.
    const step = 60 * minute
    expect(ask(collected, nowMs, start, step).requests).toBe(2 * (time / 10_000))
  })

  it('take nothing of reports that are damaged, too large or of another time', () => {
    const collected = new CollectedSeries({ maxBytes: 1e6 })
    const store = new SeriesStore({})
    const future = start + 100 * minute
    count(store, future, future + minute)
    expect(nextReport(store, new Map(), future + minute)).toBeDefined()
    const ahead = nextReport(store, new Map(), future + minute)
    if (ahead !== undefined) collected.take('a', ahead, start)
    collected.take('a', { periodMs: 10_000, frames: Buffer.from('no frames') }, start)
    collected.take('a', { periodMs: 7, frames: ahead?.frames ?? Buffer.alloc(0) }, future)
    expect(ask(collected, future + minute)).toMatchObject({ requests: 0 })
  })
})
