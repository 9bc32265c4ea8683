/**
 * The figures that a rollout can compare. Each kind of `analysis` is a row of a table with the shares that belong to it.
 * A share has a numerator and a denominator in the counts of a stratum, such as a route. Only requests of the same
 * stratum are compared with each other, because proxies may get different shares of requests for each.
 */
import type { RolloutPlan } from '../../../../events/index.ts'
import { costBuckets } from '../../../engines/messages/cost/cost-bounds.ts'
import { type Counts, costPrefix, refusedPrefix } from '../../../past/series/bucket.ts'
import type { Proportion } from './evidence.ts'

export type Kind = RolloutPlan['analysis'][number]
export type Strata = 'route' | 'guard'

/** A share that is compared. */
export interface Figure {
  /** The group of series whose series are the strata. */
  readonly strata: Strata
  /** Text for messages, after `COUNT of TOTAL`. */
  readonly text: string
  /**
   * The members, such as policies, among which the counts of a stratum are divided. The share of each member is then
   * compared in all strata together. If omitted, the share of the stratum is compared, in total and for each stratum.
   */
  readonly members?: Family
  /** Returns the share in a stratum: that of the member if the figure has members. */
  readonly of: (counts: Counts, member: string) => Proportion
}

/** The members among which counts are divided. */
export interface Family {
  /** Returns the members that have counts in a series. */
  readonly of: (counts: Counts) => Iterable<string>
  /** Returns the name of a member for messages. */
  readonly text: (member: string) => string
}

/** Caches a result for each series, because many figures need it. */
function once<Result>(read: (counts: Counts) => Result): (counts: Counts) => Result {
  const known = new WeakMap<Counts, Result>()
  return (counts) => {
    let result = known.get(counts)
    if (result === undefined) {
      result = read(counts)
      known.set(counts, result)
    }
    return result
  }
}

/** Returns the share that a count has of the requests. A failure may be counted in a later bucket than its request. */
function shareIn(counts: Counts, name: string, of = 'requests'): Proportion {
  const total = counts.get(of) ?? 0
  return { count: Math.min(counts.get(name) ?? 0, total), total }
}

const shareOf = (name: string, text: string, of?: string): Figure => ({
  strata: 'route',
  text,
  of: (counts) => shareIn(counts, name, of),
})

/** The counts whose names begin with a prefix, by the rest of the name. */
function countsWith(counts: Counts, prefix: string): [rest: string, count: number][] {
  const found: [string, number][] = []
  for (const [name, value] of counts) {
    if (name.startsWith(prefix)) found.push([name.slice(prefix.length), value])
  }
  return found
}

/** A histogram: the number of requests, and of those above each bound. */
interface Histogram {
  readonly total: number
  readonly above: readonly number[]
}

/** `buckets` are the numbers of requests by the position of their upper bound in the list of bounds. */
function histogramOf(buckets: Iterable<readonly [at: number, count: number]>): Histogram {
  let total = 0
  const above: number[] = []
  for (const [at, count] of buckets) {
    total += count
    for (let below = 0; below < at; below++) above[below] = (above[below] ?? 0) + count
  }
  return { total, above }
}

const shareAbove = (histogram: Histogram | undefined, bound: number): Proportion => ({
  count: histogram?.above[bound] ?? 0,
  total: histogram?.total ?? 0,
})

/** Bounds in seconds, of the buckets of `request_duration_seconds`. Faster requests are no reason to take back a change. */
const latencies = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

const latenciesIn = once((counts) =>
  histogramOf(
    countsWith(counts, 'le:').map(([bound, count]) => [
      latencies.filter((one) => one < Number(bound)).length,
      count,
    ]),
  ),
)

const slowerThan = (bound: number): Figure => ({
  strata: 'route',
  text: `requests took longer than ${latencies[bound]}s`,
  of: (counts) => shareAbove(latenciesIn(counts), bound),
})

const checksIn = once((counts) => countsWith(counts, 'verdict:'))

const guardHits: Figure = {
  strata: 'guard',
  text: 'checks of guards had a match',
  of: (counts) => {
    let [count, total] = [0, 0]
    for (const [action, value] of checksIn(counts)) {
      total += value
      if (action !== 'Allow') count += value
    }
    return { count, total }
  },
}

const policyRefusals: Figure = {
  strata: 'route',
  text: 'requests were refused',
  members: {
    of: once((counts) => countsWith(counts, refusedPrefix).map(([policy]) => policy)),
    text: (policy) => policy,
  },
  of: (counts, policy) => shareIn(counts, `${refusedPrefix}${policy}`),
}

/** Numbers of buckets by the text of their bounds. */
const bucketNumbers = new Map(costBuckets.map((bound, at) => [bound, at]))

/** The costs of requests by model, and those of all models under an empty name. */
const costsIn = once((counts) => {
  const found = new Map<string, [number, number][]>([['', []]])
  for (const [rest, count] of countsWith(counts, costPrefix)) {
    const end = rest.indexOf(' ')
    const bucket = bucketNumbers.get(rest.slice(0, end))
    if (bucket === undefined) continue
    const model = rest.slice(end + 1)
    if (!found.has(model)) found.set(model, [])
    for (const name of new Set(['', model])) found.get(name)?.push([bucket, count])
  }
  return new Map(Array.from(found, ([model, buckets]) => [model, histogramOf(buckets)]))
})

const models: Family = {
  of: (counts) => [...costsIn(counts).keys()].filter((model) => model !== ''),
  text: (model) => `model ${model}`,
}

/** The share of requests that cost more than the bound of a bucket, of all models and of each. */
function costAbove(bucket: number): Figure[] {
  const text = `requests cost more than ${costBuckets[bucket]} USD`
  const of = (counts: Counts, model: string) => shareAbove(costsIn(counts).get(model), bucket)
  return [
    { strata: 'route', text, of },
    { strata: 'route', text, of, members: models },
  ]
}

export const figures: Readonly<Record<Kind, readonly Figure[]>> = {
  Errors: [shareOf('errors', 'requests failed')],
  Refusals: [shareOf('refused', 'requests were refused'), policyRefusals],
  ClientErrors: [shareOf('clientErrors', 'requests got a 4xx')],
  Latency: latencies.map((_, bound) => slowerThan(bound)),
  Resets: [shareOf('resets', 'requests were reset by their backend')],
  Guards: [guardHits],
  Costs: [
    ...costBuckets.slice(0, -1).flatMap((_, bucket) => costAbove(bucket)),
    shareOf('unpriced', 'requests had a cost that is not known', 'billed'),
  ],
}

/** Returns the weight of a kind. `Errors` keep half of the total weight, however many other kinds there are. */
export function weightOf(kind: Kind, analysis: readonly Kind[]): number {
  const others = analysis.length - 1
  if (others === 0 || !analysis.includes('Errors')) return 1 / analysis.length
  return kind === 'Errors' ? 1 / 2 : 1 / 2 / others
}
