/** What the overview makes of time series: lines of charts, and problems of traffic by cause. */

import type { ObjectHealth } from '../../src/past/explain/health.ts'
import type { AnsweredSeries, SeriesAnswer, SeriesPoints } from '../../src/past/series/answer.ts'

const number = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })

export const formatNumber = (value: number): string =>
  value >= 10_000 ? compact.format(value) : number.format(value)

export const formatMs = (ms: number): string =>
  ms >= 1_000 ? `${number.format(ms / 1_000)} s` : `${number.format(ms)} ms`

/** Start of each step, in seconds since 1970. */
export function timesOfAnswer({ from, stepSeconds, series: [first] }: SeriesAnswer): number[] {
  const start = Date.parse(from) / 1_000
  return (first?.points?.requests ?? []).map((_, at) => start + at * stepSeconds)
}

/** Points per second. */
export const ratesOf = (
  points: SeriesPoints | undefined,
  name: Exclude<keyof SeriesPoints, 'verdicts'>,
  stepSeconds: number,
): (number | null)[] =>
  (points?.[name] ?? []).map((value) => (value === null ? null : value / stepSeconds))

/** Where requests fail for a reason. */
interface Affected {
  readonly group: 'backend' | 'route'
  /** `namespace/name`. */
  readonly name: string
  readonly failed: number
  readonly requests: number
}

export interface TrafficProblem {
  /** Reason and status, such as `UpstreamFailure 503`. */
  readonly cause: string
  readonly health: ObjectHealth
  readonly count: number
  readonly affected: readonly Affected[]
}

/** Share of failed requests from which on a backend or a route is broken rather than disturbed. */
const brokenShare = 0.5
/** Share below which failures are not a problem. */
const leastShare = 0.01

/** Returns the reasons for failed requests, the worst first. */
export function trafficProblems(
  routes: readonly AnsweredSeries[],
  backends: readonly AnsweredSeries[],
): TrafficProblem[] {
  const byCause = new Map<string, Affected[]>()
  const add = (group: Affected['group'], all: readonly AnsweredSeries[]) => {
    for (const { name, isOther, sums } of all) {
      for (const { name: cause, count } of sums.causes) {
        if (isOther || name === 'none' || count < leastShare * sums.requests) continue
        const affected = byCause.get(cause) ?? []
        affected.push({ group, name, failed: count, requests: sums.requests })
        byCause.set(cause, affected)
      }
    }
  }
  add('backend', backends)
  add('route', routes)
  const shareOf = ({ failed, requests }: Affected) => failed / Math.max(1, requests)
  return [...byCause]
    .map(([cause, all]) => {
      const affected = all.sort((a, b) => shareOf(b) - shareOf(a) || b.failed - a.failed)
      const isBroken = affected.some((one) => shareOf(one) >= brokenShare)
      const sum = (group: Affected['group']) =>
        affected.reduce((total, one) => total + (one.group === group ? one.failed : 0), 0)
      return {
        cause,
        health: isBroken ? ('problem' as const) : ('warning' as const),
        count: Math.max(sum('backend'), sum('route')),
        affected,
      }
    })
    .sort((a, b) => rank(a) - rank(b) || b.count - a.count)
}

const rank = ({ health }: TrafficProblem): number => (health === 'problem' ? 0 : 1)

/** Such as `every request fails` or `12 % of 340 requests fail`. */
export function failureText({ failed, requests }: Affected): string {
  if (failed >= requests) {
    return requests === 1
      ? 'its only request failed'
      : `all ${formatNumber(requests)} requests failed`
  }
  const share = number.format((100 * failed) / requests)
  return `${share} % of ${formatNumber(requests)} requests failed`
}
