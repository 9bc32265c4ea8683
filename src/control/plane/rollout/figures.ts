/** The comparison of the figures of proxies during a rollout. */
import type { RolloutPlan } from '../../../../events/index.ts'
import { compareText } from '../../../ground/model/names.ts'
import { type Groups, noRoute } from '../../../past/series/bucket.ts'
import type { RolloutStep } from '../../actors/rollout.machine.ts'
import {
  Comparisons,
  firstWeight,
  laterWeight,
  logRatios,
  type Proportion,
  type RateComparison,
  sumWeight,
} from './evidence.ts'
import { type Family, type Figure, figures, type Kind, type Strata, weightOf } from './kinds.ts'

/** What a proxy, or a worker of `sluice run`, has counted in a bucket. */
export interface FigureSample {
  readonly proxy: string
  readonly startMs: number
  readonly endMs: number
  readonly groups: Groups
}

/** The largest probability that a rollout is taken back although its proxies are not worse. */
export const falseAlarmRate = 0.01

/** Maximum number of strata of a group, and of members of a family. Others count only in the sums. */
const maxNames = 1_000

/** Names in the order in which they were seen, with the weights of their comparisons. */
class Names {
  readonly #weights = new Map<string, number>()
  #bucket: Bucket | undefined

  /**
   * Returns the weights of all names up to a bucket. Its new names are added, the largest first, and those of one size
   * by name. `sizesIn` returns the sizes at all proxies together, because weights must not depend on the proxies at which
   * something was counted.
   */
  upTo(
    bucket: Bucket,
    sizesIn: (bucket: Bucket) => ReadonlyMap<string, number>,
  ): ReadonlyMap<string, number> {
    const weights = this.#weights
    if (bucket === this.#bucket) return weights
    this.#bucket = bucket
    const before = weights.size
    const ranked = [...sizesIn(bucket)]
      .filter(([name]) => !weights.has(name))
      .sort(([a, sizeOfA], [b, sizeOfB]) => sizeOfB - sizeOfA || compareText(a, b))
      .slice(0, maxNames - before)
    for (const [at, [name]] of ranked.entries()) {
      const weight = before === 0 ? firstWeight(ranked.length) : laterWeight(before - 1 + at)
      weights.set(name, weight)
    }
    return weights
  }
}

/** The proportions at the proxies with the change, and at the others. */
type Pair = readonly [changed: Proportion, others: Proportion]

/** One bucket of all proxies. */
interface Bucket {
  readonly changed: readonly FigureSample[]
  readonly others: readonly FigureSample[]
}

/** Texts for strata in messages. Requests outside of all strata have an empty name. */
const textOf: Readonly<Record<Strata, (stratum: string) => string>> = {
  route: (route) => (route === '' ? 'no route' : `route ${route}`),
  guard: (guard) => (guard === '' ? 'no guard' : `guard ${guard}`),
}

/** Key of the comparison of all strata; no name has a line break. */
const sumKey = '\n'

/** Everything that is compared for a Gateway. */
export class FigureTest {
  readonly comparisons = new Comparisons()
  readonly #strata: Readonly<Record<Strata, Names>> = { route: new Names(), guard: new Names() }
  readonly #members = new Map<Family, Names>()
  readonly #comparisons = new Map<Figure, Map<string, RateComparison>>()

  /** Adds what the proxies have counted in a bucket. */
  add(bucket: Bucket, analysis: readonly Kind[]): void {
    for (const kind of analysis) {
      const share = weightOf(kind, analysis) / figures[kind].length
      for (const figure of figures[kind]) this.#compare(bucket, figure, share)
    }
  }

  /** `share` is the weight of the figure. */
  #compare(bucket: Bucket, figure: Figure, share: number): void {
    const strata = this.#strata[figure.strata].upTo(bucket, (one) => strataIn(one, figure.strata))
    if (figure.members !== undefined) {
      this.#addMembers(bucket, figure, figure.members, [...strata.keys()], share)
      return
    }
    const sum = this.#comparison(figure, sumKey, () => `all ${figure.strata}s`, sumWeight * share)
    sum.count(...allOf(bucket, figure, ''))
    for (const [stratum, pair] of pairsOf(bucket, figure, '', strata.keys())) {
      const weight = (strata.get(stratum) ?? 0) * share
      const logs = logRatios(...pair)
      sum.weigh(logs)
      const one = this.#comparison(figure, stratum, textOf[figure.strata], weight)
      one.weigh(logs)
      one.count(...pair)
    }
  }

  #addMembers(
    bucket: Bucket,
    figure: Figure,
    family: Family,
    strata: readonly string[],
    share: number,
  ): void {
    const names = this.#members.get(family) ?? new Names()
    this.#members.set(family, names)
    for (const [member, weight] of names.upTo(bucket, (one) => membersIn(one, figure, family))) {
      const one = this.#comparison(figure, member, family.text, weight * share)
      one.count(...allOf(bucket, figure, member))
      for (const [, pair] of pairsOf(bucket, figure, member, strata)) one.weigh(logRatios(...pair))
    }
  }

  /** Returns the comparison of a stratum or a member. Its name for messages is needed only once. */
  #comparison(figure: Figure, key: string, nameOf: (key: string) => string, weight: number) {
    let found = this.#comparisons.get(figure)
    if (found === undefined) {
      found = new Map()
      this.#comparisons.set(figure, found)
    }
    let one = found.get(key)
    if (one === undefined) {
      one = this.comparisons.of(`${nameOf(key)}: %s ${figure.text}`, weight)
      found.set(key, one)
    }
    return one
  }
}

/** Returns the number of requests of each stratum in a bucket. The key '' is for requests outside of all strata. */
function strataIn({ changed, others }: Bucket, group: Strata): ReadonlyMap<string, number> {
  const sizes = new Map([['', 0]])
  for (const { groups } of [...changed, ...others]) {
    for (const [name, counts] of groups.get(group) ?? []) {
      if (name === noRoute) continue
      sizes.set(name, (sizes.get(name) ?? 0) + (counts.get('requests') ?? 0))
    }
  }
  return sizes
}

/** Returns the number of requests that a figure counts for each member in a bucket, such as a policy. */
function membersIn(bucket: Bucket, figure: Figure, family: Family): ReadonlyMap<string, number> {
  const sizes = new Map<string, number>()
  for (const { groups } of [...bucket.changed, ...bucket.others]) {
    const all = groups.get('all')?.get('')
    for (const member of all === undefined ? [] : family.of(all)) sizes.set(member, 0)
  }
  for (const member of sizes.keys()) {
    const [changed, others] = allOf(bucket, figure, member)
    sizes.set(member, changed.count + others.count)
  }
  return sizes
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
  const test = new FigureTest()
  const buckets = Map.groupBy(samples, ({ startMs }) => startMs)
  for (const [startMs, bucket] of [...buckets].sort(([a], [b]) => a - b)) {
    const step = steps.findLast(({ since }) => Date.parse(since) <= startMs)
    if (step === undefined) continue
    const chosen = new Set(step.proxies)
    const changed = bucket.filter(({ proxy }) => chosen.has(proxy))
    const others = bucket.filter(({ proxy }) => !chosen.has(proxy))
    if (changed.length === 0 || others.length === 0) continue
    test.add({ changed, others }, analysis)
  }
  const { comparisons } = test
  if (comparisons.evidence < 1 / falseAlarmRate) return undefined
  const { name = '', comparison } = comparisons.worst() ?? {}
  const { changed, others } = comparison?.totals ?? {}
  return `${name.replace('%s', () => shareText(changed))} with the change, ${shareText(others)} without`
}

/** Yields the shares in each stratum, and those outside of all strata, whose total is that of all requests (see `without`). */
function* pairsOf(
  bucket: Bucket,
  figure: Figure,
  member: string,
  strata: Iterable<string>,
): Generator<readonly [stratum: string, pair: Pair]> {
  let [changed, others] = allOf(bucket, figure, member)
  for (const stratum of strata) {
    if (stratum === '') continue
    const pair: Pair = [
      proportionIn(bucket.changed, figure, member, figure.strata, stratum),
      proportionIn(bucket.others, figure, member, figure.strata, stratum),
    ]
    changed = without(changed, pair[0])
    others = without(others, pair[1])
    yield [stratum, pair]
  }
  yield ['', [changed, others]]
}

/**
 * Returns a proportion without the count of a stratum. Its denominator remains that of all requests, because a request
 * that is refused before a route is selected would have had a route without the change. The count is never negative,
 * although a request may be counted in its stratum before it is counted in the total.
 */
const without = ({ count, total }: Proportion, part: Proportion): Proportion => ({
  count: Math.max(0, count - part.count),
  total,
})

const allOf = ({ changed, others }: Bucket, figure: Figure, member: string): Pair => [
  proportionIn(changed, figure, member, 'all', ''),
  proportionIn(others, figure, member, 'all', ''),
]

const shareText = ({ count, total }: Proportion = { count: 0, total: 0 }): string =>
  `${count} of ${total}`

/** Whether a proxy can have counted this. A proxy that forges its figures may report any number. */
const isPossible = ({ count, total }: Proportion): boolean =>
  Number.isSafeInteger(count) && Number.isSafeInteger(total) && count >= 0 && count <= total

/** Sums up what proxies have counted in a series. */
function proportionIn(
  samples: readonly FigureSample[],
  figure: Figure,
  member: string,
  group: Strata | 'all',
  series: string,
): Proportion {
  let [count, total] = [0, 0]
  for (const { groups } of samples) {
    const counts = groups.get(group)?.get(series)
    if (counts === undefined) continue
    const share = figure.of(counts, member)
    if (!isPossible(share)) continue
    count += share.count
    total += share.total
  }
  return { count, total }
}
