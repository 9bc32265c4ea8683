/** Reads a question about series from the query of a URL. */
import { parseDurationMs } from '../../ground/base/duration.ts'
import { fail, type Outcome, succeed } from '../../ground/base/outcome.ts'
import type { SeriesQuestion } from './answer.ts'
import { type SeriesGroup, seriesGroups } from './bucket.ts'

const defaultSince = '15m'
const defaultTop = 20
const maxTop = 1_000
/** Number of points if the query names no step. */
const defaultPoints = 180

const known = ['from', 'to', 'since', 'step', 'by', 'top', 'points']

/** `since` is a duration before `to`, which is now by default. Times are RFC 3339. */
export function readQuestion(
  query: URLSearchParams,
  nowMs: number,
): Outcome<SeriesQuestion, string> {
  const unknown = [...query.keys()].find((name) => !known.includes(name))
  if (unknown !== undefined) return fail(`${unknown}: unknown; known are ${known.join(', ')}`)
  const by = query.get('by') ?? 'all'
  if (!isGroup(by)) return fail(`by: expected one of ${seriesGroups.join(', ')}`)
  const toMs = query.has('to') ? timeOf(query.get('to')) : nowMs
  const sinceMs = parseDurationMs(query.get('since') ?? defaultSince)
  const fromMs = query.has('from')
    ? timeOf(query.get('from'))
    : (toMs ?? Number.NaN) - (sinceMs ?? Number.NaN)
  if (fromMs === undefined || toMs === undefined || !(fromMs < toMs)) {
    return fail('from, to, since: expected times such as 2026-01-31T12:00:00Z, or since=15m')
  }
  const step = query.get('step')
  const stepMs = step === null ? (toMs - fromMs) / defaultPoints : parseDurationMs(step)
  if (stepMs === undefined || stepMs <= 0) return fail('step: expected a duration such as 1m')
  const top = Number(query.get('top') ?? defaultTop)
  if (!Number.isInteger(top) || top < 1 || top > maxTop) {
    return fail(`top: expected a number between 1 and ${maxTop}`)
  }
  return succeed({ by, fromMs, toMs, stepMs, top, withPoints: query.has('points') })
}

const isGroup = (text: string): text is SeriesGroup =>
  (seriesGroups as readonly string[]).includes(text)

function timeOf(text: string | null): number | undefined {
  if (text === null) return undefined
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}
