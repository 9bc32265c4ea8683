/** The figures of proxies during a rollout, and their comparison. */
import type { RolloutPlan } from '../../../../events/index.ts'
import type { Counts, Groups } from '../../../past/series/bucket.ts'
import type { RolloutStep } from '../../actors/rollout.machine.ts'
import { Comparisons, firstWeight, laterWeight, type Proportion, sumWeight } from './evidence.ts'

/** What a proxy, or a worker of `sluice run`, has counted in a bucket. */
export interface FigureSample {
  readonly proxy: string
  readonly startMs: number
  readonly endMs: number
  readonly groups: Groups
}

/** The largest probability that a rollout is taken back although its proxies are not worse. */
export const falseAlarmRate = 0.01

const kinds = {
  Errors: { count: 'errors', text: 'failed' },
  Refusals: { count: 'refused', text: 'were refused' },
} as const

/** A series in the comparison: everything, or a route. */
interface SeriesName {
  readonly text: string
  readonly weight: number
  readonly find: (groups: Groups) => Counts | undefined
}

const everything: SeriesName = {
  text: 'all routes',
  weight: sumWeight,
  find: (groups) => groups.get('all')?.get(''),
}

/**
 * Compares the proxies that each step names with the others of the Gateway, in buckets that begin at the same time.
 * Returns why the change should be taken back; undefined if its proxies are not worse.
 */
export function problemOf(
  { analysis }: Pick<RolloutPlan, 'analysis'>,
  steps: readonly RolloutStep[],
  samples: readonly FigureSample[],
): string | undefined {
  const comparisons = new Comparisons()
  const buckets = Map.groupBy(samples, ({ startMs }) => startMs)
  const names = new Map([['', everything]])
  for (const [startMs, bucket] of [...buckets].sort(([a], [b]) => a - b)) {
    const step = steps.findLast(({ since }) => Date.parse(since) <= startMs)
    if (step === undefined) continue
    const chosen = new Set(step.proxies)
    const changed = bucket.filter(({ proxy }) => chosen.has(proxy))
    const others = bucket.filter(({ proxy }) => !chosen.has(proxy))
    if (changed.length === 0 || others.length === 0) continue
    addRoutes(names, bucket)
    for (const kind of analysis) {
      for (const series of names.values()) {
        const { count, text } = kinds[kind]
        const of = (part: readonly FigureSample[]) => proportionIn(part, series, count)
        const weight = series.weight / analysis.length
        comparisons.of(`${series.text}: %s requests ${text}`, weight).add(of(changed), of(others))
      }
    }
  }
  if (comparisons.evidence < 1 / falseAlarmRate) return undefined
  const { name = '', comparison } = comparisons.worst() ?? {}
  const { changed, others } = comparison?.totals ?? {}
  return `${name.replace('%s', shareText(changed))} with the change, ${shareText(others)} without`
}

const shareText = ({ count, total }: Proportion = { count: 0, total: 0 }): string =>
  `${count} of ${total}`

/** Adds the routes of a bucket, those with the most requests first. */
function addRoutes(names: Map<string, SeriesName>, bucket: readonly FigureSample[]): void {
  const requests = new Map<string, number>()
  for (const { groups } of bucket) {
    for (const [route, counts] of groups.get('route') ?? []) {
      if (names.has(`route ${route}`)) continue
      requests.set(route, (requests.get(route) ?? 0) + (counts.get('requests') ?? 0))
    }
  }
  const isFirst = names.size === 1
  const before = names.size
  const ranked = [...requests].sort(([, a], [, b]) => b - a)
  for (const [at, [route]] of ranked.entries()) {
    const text = `route ${route}`
    const weight = isFirst ? firstWeight(ranked.length) : laterWeight(before - 1 + at)
    names.set(text, { text, weight, find: (groups) => groups.get('route')?.get(route) })
  }
}

function proportionIn(
  samples: readonly FigureSample[],
  { find }: SeriesName,
  name: 'errors' | 'refused',
): Proportion {
  let count = 0
  let total = 0
  for (const { groups } of samples) {
    const counts = find(groups)
    count += counts?.get(name) ?? 0
    total += counts?.get('requests') ?? 0
  }
  // A request may be counted as failed in a later bucket than as a request.
  return { count: Math.min(count, total), total }
}
