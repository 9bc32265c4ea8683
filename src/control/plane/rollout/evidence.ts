/**
 * A sequential test of whether a share, such as that of failed requests, is higher at some proxies than at others in
 * the same time. It may be evaluated after every bucket: a mixture of likelihood ratios (mSPRT).
 *
 * In each bucket, only the division of the failed requests between the two sides counts, given how many requests each
 * side had. So the share may change over time. If requests fail equally often on both sides of a bucket, the failed
 * requests of one side are hypergeometric; if the odds are higher on one side, they are Fisher's noncentral
 * hypergeometric. Each ratio of these two has the expected value 1, so by Ville's inequality the probability that the
 * evidence ever reaches 1/α is at most α.
 */

/** How many of some requests were counted, such as failed ones. */
export interface Proportion {
  readonly count: number
  readonly total: number
}

/** Factors by which the odds may be higher, with equal weights. Smaller factors are not tested. */
const ratios = [1.25, 1.5, 2, 3, 5, 10, 100, 10_000]

/** The evidence of one bucket of a stratum: the logarithm of the likelihood ratio for each of `ratios`. */
type Logs = readonly number[]

/** Returns the evidence of the counts at the proxies with a change and at the others; undefined if there is none. */
export function logRatios(changed: Proportion, others: Proportion): Logs | undefined {
  const failed = changed.count + others.count
  const isDivided = failed > 0 && failed < changed.total + others.total
  if (!isDivided || changed.total === 0 || others.total === 0) return undefined
  const expected = logMeansOf(failed, changed.total, others.total)
  return ratios.map((ratio, at) => changed.count * Math.log(ratio) - (expected[at] ?? 0))
}

export class RateComparison {
  readonly #logs = ratios.map(() => 0)
  #changed: Proportion = { count: 0, total: 0 }
  #others: Proportion = { count: 0, total: 0 }

  /** Adds what was counted at the proxies with a change, and at the others, in the same bucket. */
  add(changed: Proportion, others: Proportion): void {
    this.weigh(logRatios(changed, others))
    this.count(changed, others)
  }

  /** Adds the evidence of a bucket of a stratum. */
  weigh(logs: Logs | undefined): void {
    if (logs === undefined) return
    for (const [at, log] of logs.entries()) this.#logs[at] = (this.#logs[at] ?? 0) + log
  }

  /** Adds to the totals only. */
  count(changed: Proportion, others: Proportion): void {
    this.#changed = sumOf(this.#changed, changed)
    this.#others = sumOf(this.#others, others)
  }

  /** How much more likely what was counted is if the share is higher with the change; 1 at first. */
  get evidence(): number {
    return this.#logs.reduce((sum, log) => sum + Math.exp(Math.min(log, 600)), 0) / ratios.length
  }

  /** All that was counted with the change, and at the others. */
  get totals(): { readonly changed: Proportion; readonly others: Proportion } {
    return { changed: this.#changed, others: this.#others }
  }
}

/** Maximum number of failed requests for which the exact value is computed. */
const maxExact = 1_000

/**
 * For each ratio, the logarithm of the expected value of `ratio ** X`, where X is the number of failed requests on the
 * side of `changed`. With many failures, the value of the binomial distribution is used instead. It is larger (Hoeffding
 * 1963), so the evidence is never overstated.
 */
function logMeansOf(failed: number, changed: number, others: number): readonly number[] {
  const share = changed / (changed + others)
  if (failed > maxExact) return ratios.map((ratio) => failed * Math.log1p(share * (ratio - 1)))
  const least = Math.max(0, failed - others)
  const most = Math.min(failed, changed)
  const odds: number[] = []
  for (let x = least; x < most; x++) {
    odds.push(((failed - x) * (changed - x)) / ((x + 1) * (others - failed + x + 1)))
  }
  const all = logSeries(odds, 1)
  return ratios.map((ratio) => least * Math.log(ratio) + logSeries(odds, ratio) - all)
}

/** Sums are divided by this number before they are too large. */
const scale = 2 ** 512

/** The logarithm of `1 + o₀r(1 + o₁r(1 + …))`. */
function logSeries(odds: readonly number[], ratio: number): number {
  let [sum, one, log] = [1, 1, 0]
  for (let at = odds.length - 1; at >= 0; at--) {
    sum = one + (odds[at] ?? 0) * ratio * sum
    if (sum < scale) continue
    sum /= scale
    one /= scale
    log += Math.log(scale)
  }
  return log + Math.log(sum)
}

const sumOf = (a: Proportion, b: Proportion): Proportion => ({
  count: a.count + b.count,
  total: a.total + b.total,
})

/**
 * Several comparisons in one test. Each has a weight that must be chosen before what it compares is known. The sum of
 * the weights must be at most 1, so that the expected evidence of all is, too.
 */
export class Comparisons {
  readonly #comparisons = new Map<string, { weight: number; comparison: RateComparison }>()

  /** Returns the comparison with a name. A new one gets the weight. */
  of(name: string, weight: number): RateComparison {
    const known = this.#comparisons.get(name)
    if (known !== undefined) return known.comparison
    const comparison = new RateComparison()
    this.#comparisons.set(name, { weight, comparison })
    return comparison
  }

  /** The evidence that any of the shares is higher with the change. */
  get evidence(): number {
    return this.#weighted().reduce((sum, { evidence }) => sum + evidence, 0)
  }

  /** The comparison with the most evidence. If several have equal evidence, the last one, because parts follow their sum. */
  worst(): { readonly name: string; readonly comparison: RateComparison } | undefined {
    return this.#weighted()
      .sort((a, b) => a.evidence - b.evidence)
      .at(-1)
  }

  #weighted() {
    return Array.from(this.#comparisons, ([name, { weight, comparison }]) => ({
      name,
      comparison,
      evidence: weight * comparison.evidence,
    }))
  }
}

/** The weight of the sum of all strata, such as routes. */
export const sumWeight = 1 / 4

/** The weight of each of the strata, or of members such as policies, that are known when the test begins. */
export const firstWeight = (count: number): number => 1 / 2 / count

/** The weight of a stratum or member that is first seen later, by its number from 0. */
export const laterWeight = (at: number): number => 1 / 4 / ((at + 1) * (at + 2))
