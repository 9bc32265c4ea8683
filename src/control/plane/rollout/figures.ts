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

type Kind = RolloutPlan['analysis'][number]

/** A share that is compared, in total and for each series of a group. */
interface Figure {
  readonly group: 'route' | 'guard'
  /** Text for messages, after `COUNT of TOTAL`. */
  readonly text: string
  readonly of: (counts: Counts) => Proportion
}

const shareOf = (name: string, text: string): Figure => ({
  group: 'route',
  text,
  of: (counts) => {
    const total = counts.get('requests') ?? 0
    // A failure may be counted in a later bucket than its request.
    return { count: Math.min(counts.get(name) ?? 0, total), total }
  },
})

/** Bounds in seconds, of the buckets of `request_duration_seconds`. Faster requests are no reason to take back a change. */
const latencies = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Sums all counts whose names begin with a prefix, and those of them that `isCounted` accepts by the rest of the name. */
function sumsOf(counts: Counts, prefix: string, isCounted: (rest: string) => boolean): Proportion {
  let [count, total] = [0, 0]
  for (const [name, value] of counts) {
    if (!name.startsWith(prefix)) continue
    total += value
    if (isCounted(name.slice(prefix.length))) count += value
  }
  return { count, total }
}

const slowerThan = (seconds: number): Figure => ({
  group: 'route',
  text: `requests took longer than ${seconds}s`,
  of: (counts) => sumsOf(counts, 'le:', (bound) => Number(bound) > seconds),
})

const guardHits: Figure = {
  group: 'guard',
  text: 'checks of guards had a match',
  of: (counts) => sumsOf(counts, 'verdict:', (action) => action !== 'Allow'),
}

const figures: Readonly<Record<Kind, readonly Figure[]>> = {
  Errors: [shareOf('errors', 'requests failed')],
  Refusals: [shareOf('refused', 'requests were refused')],
  ClientErrors: [shareOf('clientErrors', 'requests got a 4xx')],
  Latency: latencies.map(slowerThan),
  Resets: [shareOf('resets', 'requests were reset by their backend')],
  Guards: [guardHits],
}

/** Returns the weight of a kind. `Errors` keep half of the total weight, however many other kinds there are. */
function weightOf(kind: Kind, analysis: readonly Kind[]): number {
  const others = analysis.length - 1
  if (others === 0 || !analysis.includes('Errors')) return 1 / analysis.length
  return kind === 'Errors' ? 1 / 2 : 1 / 2 / others
}

/** A series in the comparison: everything, or a part of it such as a route. */
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
  const names = {
    route: new Map([['', everything]]),
    guard: new Map([['', { ...everything, text: 'all guards' }]]),
  }
  for (const [startMs, bucket] of [...buckets].sort(([a], [b]) => a - b)) {
    const step = steps.findLast(({ since }) => Date.parse(since) <= startMs)
    if (step === undefined) continue
    const chosen = new Set(step.proxies)
    const changed = bucket.filter(({ proxy }) => chosen.has(proxy))
    const others = bucket.filter(({ proxy }) => !chosen.has(proxy))
    if (changed.length === 0 || others.length === 0) continue
    addSeries(names.route, 'route', bucket)
    addSeries(names.guard, 'guard', bucket)
    for (const kind of analysis) {
      const share = weightOf(kind, analysis) / figures[kind].length
      for (const figure of figures[kind]) {
        const [total, ...parts] = names[figure.group].values()
        if (total !== undefined)
          compare({ comparisons, figure, share, changed, others }, total, parts)
      }
    }
  }
  if (comparisons.evidence < 1 / falseAlarmRate) return undefined
  const { name = '', comparison } = comparisons.worst() ?? {}
  const { changed, others } = comparison?.totals ?? {}
  return `${name.replace('%s', shareText(changed))} with the change, ${shareText(others)} without`
}

interface Bucket {
  readonly comparisons: Comparisons
  readonly figure: Figure
  /** The weight of the figure. */
  readonly share: number
  readonly changed: readonly FigureSample[]
  readonly others: readonly FigureSample[]
}

/**
 * Compares each part, such as a route, and their total. The total is compared part by part, because proxies may get
 * different shares of requests for a route that fails often.
 */
function compare(
  { comparisons, figure, share, changed, others }: Bucket,
  total: SeriesName,
  parts: readonly SeriesName[],
): void {
  const of = ({ text, weight }: SeriesName) =>
    comparisons.of(`${text}: %s ${figure.text}`, weight * share)
  const pairOf = (series: SeriesName) =>
    [proportionIn(changed, series, figure), proportionIn(others, series, figure)] as const
  const whole = of(total)
  let [restChanged, restOthers] = pairOf(total)
  for (const part of parts) {
    const pair = pairOf(part)
    of(part).add(...pair)
    whole.add(...pair)
    restChanged = without(restChanged, pair[0])
    restOthers = without(restOthers, pair[1])
  }
  // Requests that matched no route.
  whole.add(restChanged, restOthers)
}

/** Returns the total without a part. It is never negative: a request may be counted in its part before the total. */
function without(total: Proportion, part: Proportion): Proportion {
  const rest = Math.max(0, total.total - part.total)
  return { total: rest, count: Math.min(rest, Math.max(0, total.count - part.count)) }
}

const shareText = ({ count, total }: Proportion = { count: 0, total: 0 }): string =>
  `${count} of ${total}`

/** Adds the series of a group in a bucket, those with the most requests first. */
function addSeries(
  names: Map<string, SeriesName>,
  group: Figure['group'],
  bucket: readonly FigureSample[],
): void {
  const requests = new Map<string, number>()
  for (const { groups } of bucket) {
    for (const [route, counts] of groups.get(group) ?? []) {
      if (names.has(`${group} ${route}`)) continue
      requests.set(route, (requests.get(route) ?? 0) + (counts.get('requests') ?? 0))
    }
  }
  const isFirst = names.size === 1
  const before = names.size
  const ranked = [...requests].sort(([, a], [, b]) => b - a)
  for (const [at, [route]] of ranked.entries()) {
    const text = `${group} ${route}`
    const weight = isFirst ? firstWeight(ranked.length) : laterWeight(before - 1 + at)
    names.set(text, { text, weight, find: (groups) => groups.get(group)?.get(route) })
  }
}

/** Whether a proxy can have counted this. A proxy that forges its figures may report any number. */
const isCount = (value: number): boolean => value >= 0 && Number.isFinite(value)

function proportionIn(
  samples: readonly FigureSample[],
  { find }: SeriesName,
  figure: Figure,
): Proportion {
  let [count, total] = [0, 0]
  for (const { groups } of samples) {
    const counts = find(groups)
    if (counts === undefined) continue
    const share = figure.of(counts)
    if (!isCount(share.count) || !isCount(share.total)) continue
    count += share.count
    total += share.total
  }
  return { count, total }
}
