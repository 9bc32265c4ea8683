/**
 * Finds the facts about a model. A catalog is made of sources, of which the later ones win; the first one ships with
 * the release. Facts are computed once per model and kept.
 */
import { BoundedMap } from '../../../ground/base/bounded-map.ts'
import { hexDigest } from '../../../ground/base/digest.ts'
import { ModelPrices } from '../cost/prices.ts'
import type { Family, ModelEntry, ModelFacts, ModelRules } from './facts.ts'
import families from './families.json' with { type: 'json' }
import { parsePatterns, plainName, priceNames } from './names.ts'
import { type CatalogContent, providerId } from './read-catalog.ts'

export interface CatalogSource extends CatalogContent {
  /** Digest of the source's text. */
  readonly digest: string
}

/** Models that the list of the release no longer has, but that clients still ask for. */
const formerModels = Object.entries(families.providers).map(
  ([id, { models }]) =>
    [id, new Map(Object.entries(models as Record<string, ModelEntry>))] as const,
)

/** The families that ship with the release. A test has checked them, so that no process needs to. */
export const shippedFamilies: CatalogSource = {
  families: families.families as unknown as readonly Family[],
  providers: new Map(formerModels),
  get digest() {
    return hexDigest('sha256', JSON.stringify(families))
  },
}

/** Models of which facts are kept, by provider. Clients choose their names. */
const maxKept = 500

const compatiblePrefix = 'compatible/'

/** A family whose patterns are parsed. */
type ParsedFamily = ReturnType<typeof parseFamily>

const parseFamily = ({ match, home = [], newest, rules, members }: Family) => ({
  newest,
  rules,
  matches: parsePatterns(match),
  isHome: parsePatterns(home),
  members: members.map((member) => ({ ...member, matches: parsePatterns(member.match) })),
})

/** Returns the id of a provider at another host than that of the vendor. Its models may differ. */
export const compatibleWith = (provider: string): string => `${compatiblePrefix}${provider}`

export class ModelCatalog {
  readonly #families: readonly ParsedFamily[]
  readonly #sources: readonly CatalogSource[]
  readonly #found = new Map<string, BoundedMap<string, ModelFacts>>()
  readonly #prices = new Map<string, BoundedMap<string, ModelPrices | undefined>>()
  #digest: string | undefined

  /** The last source has the highest priority. */
  constructor(sources: readonly CatalogSource[]) {
    this.#sources = sources.toReversed()
    this.#families = this.#sources.flatMap((source) => source.families.map(parseFamily))
  }

  /** Identifies the content of the catalog. */
  get digest(): string {
    const digests = () => this.#sources.map(({ digest }) => digest).toReversed()
    this.#digest ??= hexDigest('sha256', digests().join('\n')).slice(0, 12)
    return this.#digest
  }

  /** Reads what is read only when it is needed, so that the first request need not wait for it. */
  prepare(): void {
    for (const { providers } of this.#sources) providers.size
    this.digest
  }

  /** Returns the facts about a model; `provider` is its name in telemetry, or made of it by `compatibleWith`. */
  find(model: string, provider: string): ModelFacts {
    const found = keptOf(this.#found, provider)
    const known = found.get(model)
    if (known !== undefined) return known
    const facts = this.#compute(model, provider)
    found.set(model, facts)
    return facts
  }

  /**
   * Returns the prices of a model; undefined if no source has any. Models of other places, and models that were tuned,
   * have the prices of their own entries only.
   */
  pricesOf(model: string, provider: string): ModelPrices | undefined {
    const kept = keptOf(this.#prices, provider)
    const known = kept.get(model)
    if (known !== undefined || kept.has(model)) return known
    const entry = this.#entryNamed(priceNames(model), provider)
    const hasPrices = entry?.rates ?? entry?.tiers ?? entry?.calls
    const prices = entry && hasPrices && new ModelPrices(entry)
    kept.set(model, prices)
    return prices
  }

  /** Returns the merged entry of a model, under this name or under its name without version and date. */
  entryOf(model: string, provider: string): ModelEntry | undefined {
    return this.#entryNamed([model.toLowerCase(), plainName(model)], provider)
  }

  #entryNamed(names: readonly string[], provider: string): ModelEntry | undefined {
    const id = vendorId(provider)
    const found = this.#sources.flatMap(({ providers }) => {
      const models = providers.get(id)
      const name = names.find((one) => models?.has(one))
      return name === undefined ? [] : [models?.get(name) ?? {}]
    })
    return found.length === 0 ? undefined : Object.assign({}, ...found.toReversed())
  }

  /** Whether any source has models of a provider. */
  hasProvider(id: string): boolean {
    return this.#sources.some(({ providers }) => providers.has(providerId(id)))
  }

  /** Returns the names of the models of a vendor; none for providers at other hosts, which may have any. */
  namesOf(provider: string): string[] {
    if (isCompatible(provider)) return []
    const id = vendorId(provider)
    const names = this.#sources.flatMap(({ providers }) => [...(providers.get(id)?.keys() ?? [])])
    return [...new Set(names)].sort()
  }

  /** Returns the providers that list a model under this name. */
  providersOf(model: string): string[] {
    const ids = new Set(this.#sources.flatMap(({ providers }) => [...providers.keys()]))
    return [...ids].filter((id) => this.entryOf(model, id) !== undefined)
  }

  #compute(model: string, provider: string): ModelFacts {
    const name = plainName(model)
    const { rates, tiers, calls, multipliers, tags, modalities, released, retires, ...own } =
      this.entryOf(model, provider) ?? {}
    const hasOwn = Object.keys(own).length > 0
    const named = [...new Set(tiers?.flatMap(({ service }) => service ?? []))]
    const services = named.length > 0 && { services: named }
    const family = this.#familyOf(model.toLowerCase(), name, provider)
    if (family === undefined || family.newest === '') {
      const basis = hasOwn ? 'known' : 'unknown'
      return { ...family?.rules, ...own, ...services, name: hasOwn ? name : '', basis }
    }
    const isMember = family.members.some(
      ({ matches, providers }) => providers === undefined && matches(name),
    )
    const ruling = isMember ? name : family.newest
    const rules = Object.assign(
      {},
      family.rules,
      ...rulesOf(family, ruling, vendorId(provider)),
      own,
    )
    return { ...rules, ...services, name: ruling, basis: isMember ? 'known' : 'newest' }
  }

  #familyOf(model: string, name: string, provider: string): ParsedFamily | undefined {
    const byName = this.#families.find(({ matches }) => matches(name) || matches(model))
    return byName ?? this.#families.find(({ isHome }) => isHome(homeId(provider)))
  }
}

function keptOf<Value>(
  all: Map<string, BoundedMap<string, Value>>,
  provider: string,
): BoundedMap<string, Value> {
  const kept = all.get(provider) ?? new BoundedMap(maxKept)
  all.set(provider, kept)
  return kept
}

const isCompatible = (provider: string): boolean => provider.startsWith(compatiblePrefix)

const vendorId = (provider: string): string =>
  providerId(isCompatible(provider) ? provider.slice(compatiblePrefix.length) : provider)

const homeId = (provider: string): string =>
  isCompatible(provider) ? compatibleWith(vendorId(provider)) : vendorId(provider)

const rulesOf = ({ members }: ParsedFamily, name: string, provider: string): ModelRules[] =>
  members
    .filter(({ matches, providers }) => {
      const isHere = providers === undefined || providers.includes(provider)
      return isHere && matches(name)
    })
    .map(({ rules }) => rules)

/** The shipped families only, without prices. Translations use it if they are given no catalog. */
export const familyCatalog = new ModelCatalog([shippedFamilies])
