/**
 * Computes what recorded requests to models have cost, and what the same tokens would cost under the candidate, by
 * the prices of a catalog. A request that the candidate refuses costs nothing.
 */
import type { ModelCatalog } from '../../engines/messages/catalog/catalog.ts'
import { matchesName } from '../../engines/messages/catalog/names.ts'
import { type Money, usdText } from '../../engines/messages/cost/money.ts'
import { vendorNames, vendors } from '../../gateway/backends/ai/providers/index.ts'
import { canonicalJson } from '../../ground/base/canonical.ts'
import type { ProviderConfig } from '../../ground/model/model-providers.ts'
import type { BackendResource } from '../../ground/model/resources.ts'
import type { RecordedDecision } from '../decisions/record.ts'
import type { SimulatedOutcome } from '../simulate/index.ts'
import { type OtherModel, repriced, type SpendEntry, spendOf } from '../spend/entry.ts'
import { destinationOf } from './destinations.ts'
import type { ResourceTable } from './resources.ts'

/** What a request has cost and would cost, or why this is unknown. */
export type RequestCost =
  | { readonly before: Money; readonly after: Money }
  | { readonly unknown: string; readonly isUnchanged?: true }

/** Amounts are exact decimals in USD, by the weights of the records. */
export interface CostChange {
  readonly before: string
  readonly after: string
  /** `after` less `before`. */
  readonly difference: string
  /** Number of records that the amounts include, and of those among them whose cost changes. */
  readonly requests: number
  readonly changed: number
  /** Number of records that the candidate affects, but that the amounts do not include. */
  readonly undecided: number
  /** Records that the amounts do not include, by the reason. */
  readonly unknown: readonly { readonly reason: string; readonly count: number }[]
}

const reasons = {
  noPrice: 'the catalog has no price',
  noUsage: 'their tokens are not recorded',
  newCalls: 'they would be sent to a model for the first time, so their tokens are unknown',
  undecided: 'their outcome is undecided',
  otherFields: 'model aliases, defaults or overrides change',
  answerCache: 'the cache of answers changes, and the answers that it would serve are unknown',
  severalProviders: 'one of several providers would answer',
  otherBackend: 'another backend would answer',
}

const same = 'same'
const refused = 'refused'
type NextModel = typeof same | typeof refused | OtherModel | { readonly unknown: string }

/** Where the prices of requests are found. */
export interface PriceList {
  readonly catalog: ModelCatalog
  /** Returns the name of a provider in the catalog. */
  readonly systemOf: (config: ProviderConfig) => string
}

/** Loads the names that vendors have in catalogs. */
export async function openPriceList(catalog: ModelCatalog): Promise<PriceList> {
  const names = new Map<string, string>(
    await Promise.all(
      vendorNames.map(
        async (name) => [name, (await vendors[name].provider()).default.systemName] as const,
      ),
    ),
  )
  const systemOf = ({ vendor, systemName }: ProviderConfig) =>
    systemName ?? names.get(vendor) ?? vendor
  return { catalog, systemOf }
}

type ModelDestination = Extract<BackendResource['destination'], { readonly type: 'ai' }>

export class RequestCosts {
  readonly #before: ResourceTable
  readonly #after: ResourceTable
  readonly #prices: PriceList
  readonly #hasOtherFields: boolean
  readonly #hasOtherCache: boolean
  readonly #same = new Map<string, boolean>()

  constructor(before: ResourceTable, after: ResourceTable, prices: PriceList) {
    this.#before = before
    this.#after = after
    this.#prices = prices
    const differs = (fields: readonly string[]) =>
      modelFieldsOf(before, fields) !== modelFieldsOf(after, fields)
    this.#hasOtherFields = differs(nameFields)
    this.#hasOtherCache = differs(['cache'])
  }

  /**
   * Returns undefined for a request that no model has answered or would answer.
   * @param after omitted if the candidate does not affect the request
   */
  of(
    decision: RecordedDecision,
    before: SimulatedOutcome,
    after: SimulatedOutcome | undefined,
  ): RequestCost | undefined {
    const entry = spendOf(decision)
    if (entry === undefined) return this.#costOfUnbilled(before, after)
    // The results of a batch are billed once, and fetching them costs nothing.
    if (entry.batch !== undefined) return undefined
    const { catalog } = this.#prices
    const cost = repriced(entry, catalog).cost ?? entry.cost
    const next = after === undefined ? same : this.#nextModel(entry, before, after)
    if (cost === undefined) {
      const unknown = hasTokens(entry) ? reasons.noPrice : reasons.noUsage
      return { unknown, ...(next === same && { isUnchanged: true }) }
    }
    if (next === same) return { before: cost, after: cost }
    if (next === refused) return { before: cost, after: 0n }
    if ('unknown' in next) return next
    const then = repriced(entry, catalog, next).cost
    return then === undefined ? { unknown: reasons.noPrice } : { before: cost, after: then }
  }

  #costOfUnbilled(
    before: SimulatedOutcome,
    after: SimulatedOutcome | undefined,
  ): RequestCost | undefined {
    if (after?.verdict !== 'forward' || modelsOf(this.#after, after) === undefined) return undefined
    const isCalled = before.verdict === 'forward' && modelsOf(this.#before, before) !== undefined
    return isCalled ? undefined : { unknown: reasons.newCalls }
  }

  #nextModel(entry: SpendEntry, a: SimulatedOutcome, b: SimulatedOutcome): NextModel {
    if (a.verdict === 'forward' && b.verdict === 'answer') return refused
    if (a.verdict !== 'forward' || b.verdict !== 'forward') return { unknown: reasons.undecided }
    if (this.#hasOtherFields) return { unknown: reasons.otherFields }
    if (this.#hasOtherCache) return { unknown: reasons.answerCache }
    const [before, after] = [modelsOf(this.#before, a), modelsOf(this.#after, b)]
    if (after === undefined) return { unknown: reasons.otherBackend }
    if (this.#isSame(`${a.backend} ${b.backend}`, before, after)) return same
    const { details } = entry.decision
    const requested = details['gen_ai.request.model']
    const name = `${requested ?? entry.model}`
    const config = providerOf(details, before, after, name)
    if (config === undefined) return { unknown: reasons.severalProviders }
    return { provider: this.#prices.systemOf(config), model: config.model ?? name }
  }

  #isSame(key: string, before: ModelDestination | undefined, after: ModelDestination): boolean {
    const known = this.#same.get(key)
    if (known !== undefined) return known
    const isSame = before !== undefined && canonicalJson(before) === canonicalJson(after)
    this.#same.set(key, isSame)
    return isSame
  }
}

/** The provider that would answer; undefined if one of several would. */
function providerOf(
  details: RecordedDecision['details'],
  before: ModelDestination | undefined,
  after: ModelDestination,
  requested: string,
): ProviderConfig | undefined {
  // A request that the first providers could not serve says nothing about those of the candidate.
  if (Number(details['model.failed'] ?? 0) > 0 || Number(details['model.group'] ?? 1) > 1) {
    return undefined
  }
  const next = firstProviders(after, requested)
  const distinct = new Set(next.map(({ config }) => canonicalJson(config)))
  if (distinct.size === 1) return next[0]?.config
  const names = (list: typeof next) =>
    list
      .map(({ name = '' }) => name)
      .sort()
      .join()
  const present = before === undefined ? [] : firstProviders(before, requested)
  const used = next.find(({ name }) => name !== undefined && name === details['model.provider'])
  return names(present) === names(next) ? used?.config : undefined
}

/** The providers that are asked first for a model. */
function firstProviders({ groups, models }: ModelDestination, requested: string) {
  const first = groups[0] ?? []
  if (models === undefined) return first
  const named = models.find(({ match }) => match === requested)
  const { targets = [] } = named ?? longestPattern(models, requested) ?? {}
  const priority = Math.min(...targets.map((target) => target.priority))
  return targets.flatMap((target) =>
    target.priority === priority ? (first[target.provider] ?? []) : [],
  )
}

function longestPattern(models: NonNullable<ModelDestination['models']>, requested: string) {
  return models
    .filter(({ match }) => match.includes('*') && matchesName(match, requested))
    .sort((a, b) => b.match.length - a.match.length)[0]
}

function modelsOf(
  table: ResourceTable,
  { backend = '' }: SimulatedOutcome,
): ModelDestination | undefined {
  const { namespace, name } = destinationOf(backend)
  const destination = table.backend(`backend/${namespace}/${name}`)?.destination
  return destination?.type === 'ai' ? destination : undefined
}

const hasTokens = ({ decision: { details } }: SpendEntry): boolean =>
  details['gen_ai.usage.input_tokens'] !== undefined

/** Settings of models that may change their names. */
const nameFields = ['modelAliases', 'defaults', 'overrides']

/** The settings of models in policies, as text. */
const modelFieldsOf = (table: ResourceTable, fields: readonly string[]): string =>
  table.policies
    .filter(({ section, field }) => section === 'backend' && field === 'ai')
    .flatMap(({ key, config }) => {
      const settings = JSON.parse(config) ?? {}
      const values = fields.map((name) => settings[name] ?? null)
      return values.every((value) => value === null) ? [] : [`${key} ${canonicalJson(values)}`]
    })
    .sort()
    .join()

/** Adds up costs. */
export class CostTally {
  #before: Money = 0n
  #after: Money = 0n
  #requests = 0
  #changed = 0
  #undecided = 0
  readonly #unknown = new Map<string, number>()
  /** Weights of the requests whose change in cost is known, and of those for which it is unknown. */
  readonly #weights = { known: 0, unknown: 0 }

  add(cost: RequestCost | undefined, weight = 1): void {
    if (cost === undefined) return
    if ('unknown' in cost) {
      if (cost.isUnchanged === true) this.#weights.known += weight
      else {
        this.#weights.unknown += weight
        this.#undecided++
      }
      this.#unknown.set(cost.unknown, (this.#unknown.get(cost.unknown) ?? 0) + 1)
      return
    }
    this.#weights.known += weight
    this.#requests++
    if (cost.before !== cost.after) this.#changed++
    this.#before += weighed(cost.before, weight)
    this.#after += weighed(cost.after, weight)
  }

  /** Share of the requests to models whose change in cost is unknown, from 0 to 1, by weight. */
  get unknownShare(): number {
    const { known, unknown } = this.#weights
    return unknown === 0 ? 0 : unknown / (known + unknown)
  }

  /** Increase of the cost as a share of what it was, such as 0.1; infinite if it was nothing. */
  get increase(): number {
    const difference = this.#after - this.#before
    if (difference <= 0n) return 0
    return this.#before === 0n
      ? Number.POSITIVE_INFINITY
      : Number(difference) / Number(this.#before)
  }

  /** Undefined if no request was billed or would be. */
  result(): CostChange | undefined {
    if (this.#requests + this.#unknown.size === 0) return undefined
    const [before, after] = [this.#before, this.#after]
    return {
      before: usdText(before),
      after: usdText(after),
      difference: usdText(after - before),
      requests: this.#requests,
      changed: this.#changed,
      undecided: this.#undecided,
      unknown: Array.from(this.#unknown, ([reason, count]) => ({ reason, count })),
    }
  }
}

/** Weights may have fractions. */
const weighed = (amount: Money, weight: number): Money =>
  (amount * BigInt(Math.round(weight * 1_000))) / 1_000n
