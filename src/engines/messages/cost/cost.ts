/**
 * Computes what a request has cost, from the tokens that the provider reported and the prices of the catalog:
 *
 *     const prices = catalog.pricesOf('gpt-4o', 'openai')        // ModelPrices; undefined if the model is unknown
 *     const cost = costOf(usage, prices, { service: 'flex', at: Date.now() })
 *     cost.status    // 'exact', 'partial' (part of the usage has no price) or 'unknown' (nothing has one)
 *     cost.total     // Money: a bigint in 10⁻¹² USD; what is known, so 0n if the status is 'unknown'
 *
 * An unknown price is never 0: look at `status` before `total`. A free model has the status 'exact' and the total 0n.
 * To estimate a request that has not been sent, give `costOf` the tokens that it may use.
 */
import { inputWithCache, type Usage } from '../chat.ts'
import { at, type CounterName, counterNames, countersOf } from './counters.ts'
import type { Money } from './money.ts'
import type { CostTerms, ModelPrices, RateTable } from './prices.ts'

export type CostStatus = 'exact' | 'partial' | 'unknown'

export interface Cost {
  readonly status: CostStatus
  /** The sum of everything that has a price. */
  readonly total: Money
  readonly usage: Usage
  /** The prices that applied, after tiers and multipliers; undefined if the model has none. */
  readonly rates: RateTable | undefined
}

/** What was added up so far. Most sums fit into a number; what does not is added to `large`. */
interface Tally {
  small: number
  large: Money
  hasPriced: boolean
  hasUnpriced: boolean
}

/** Adds up what has a price. */
export function costOf(usage: Usage, prices: ModelPrices | undefined, terms: CostTerms): Cost {
  const rates = prices?.ratesFor(inputWithCache(usage), usage, terms)
  if (rates === undefined) return { status: 'unknown', total: 0n, usage, rates }
  const tally: Tally = { small: 0, large: 0n, hasPriced: false, hasUnpriced: rates.isUncertain }
  addTokens(tally, usage, rates)
  if (usage.calls !== undefined) addCalls(tally, usage.calls, rates)
  const { small, large, hasPriced, hasUnpriced } = tally
  const total = BigInt(small) + large
  if (!hasUnpriced) return { status: 'exact', total, usage, rates }
  return { status: hasPriced ? 'partial' : 'unknown', total, usage, rates }
}

function addTokens(tally: Tally, usage: Usage, { perToken, isAssumed }: RateTable): void {
  const counters = countersOf(usage)
  for (let index = 0; index < counters.length; index++) {
    const count = counters[index] ?? 0
    if (count === 0) continue
    const rate = perToken[index]
    if (rate === undefined || (isAssumed && index === at.cacheWrite1h)) tally.hasUnpriced = true
    if (rate === undefined) continue
    tally.hasPriced = true
    const sum = tally.small + count * rate
    if (Number.isSafeInteger(sum)) tally.small = sum
    else tally.large += BigInt(count) * BigInt(rate)
  }
}

type Calls = NonNullable<Usage['calls']>

function addCalls(tally: Tally, calls: Calls, rates: RateTable): void {
  tally.large += costOfCalls(calls, rates)
  for (const [name, count] of Object.entries(calls)) {
    if (rates.perCall[name] !== undefined) tally.hasPriced = true
    else if (count > 0) tally.hasUnpriced = true
  }
}

const costOfCalls = (calls: Calls, { perCall }: RateTable): Money =>
  Object.entries(calls).reduce(
    (sum, [name, count]) => sum + BigInt(count) * (perCall[name] ?? 0n),
    0n,
  )

/** The parts of a cost. They are disjoint, and their sum is the total. */
type CostPart = Exclude<CounterName, 'cacheReadAudio' | 'cacheWrite1h'> | 'calls'

const partOf = (name: CounterName): CostPart => {
  if (name === 'cacheReadAudio') return 'cacheRead'
  return name === 'cacheWrite1h' ? 'cacheWrite' : name
}

/** Returns the parts of a cost that are not 0. */
export function partsOf({ usage, rates }: Cost): Partial<Record<CostPart, Money>> {
  const parts: Partial<Record<CostPart, Money>> = {}
  if (rates === undefined) return parts
  const counters = countersOf(usage)
  for (const [index, name] of counterNames.entries()) {
    const rate = rates.perToken[index]
    const count = counters[index] ?? 0
    if (rate === undefined || count === 0) continue
    const part = partOf(name)
    parts[part] = (parts[part] ?? 0n) + BigInt(count) * BigInt(rate)
  }
  if (usage.calls !== undefined) parts.calls = costOfCalls(usage.calls, rates)
  return parts
}
