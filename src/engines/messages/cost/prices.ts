/** The prices of one model: which of them apply to a request, by its size, its service and its time. */
import { BoundedMap } from '../../../ground/base/bounded-map.ts'
import type { Usage } from '../chat.ts'
import { at, type CounterName, counterNames } from './counters.ts'
import { type Money, readUsd } from './money.ts'
import type { PricedEntry, Rates, Tier } from './rates.ts'
import { isWithin, readWindow, type Window } from './windows.ts'

/** What the price depends on in addition to the tokens. */
export interface CostTerms {
  /** The service that the provider says it gave, such as `priority`; the usual one if omitted. */
  readonly service?: string | undefined
  /** The place of the inference, such as `regional`, unless the usage names one. */
  readonly geography?: string | undefined
  /** Time at which the request began, in milliseconds since the epoch. */
  readonly at: number
}

/** Prices that apply to a request. */
export interface RateTable {
  /** Price of one token of each counter, in 10⁻¹² USD, in the order of `counterNames`; undefined if unknown. */
  readonly perToken: readonly (number | undefined)[]
  /** The same prices as text, in USD per million tokens. */
  readonly perMillion: readonly (string | undefined)[]
  /** Price of one call of each tool, in 10⁻¹² USD. */
  readonly perCall: Readonly<Record<string, Money>>
  /** True if the price of tokens that are cached for an hour is not known, so that the usual one applies. */
  readonly isAssumed: boolean
  /** True if the provider names a service or a place whose price is not known, so that the usual one applies. */
  readonly isUncertain: boolean
}

/** Places after the point in a price per million tokens; one unit of the last place is 10⁻¹² USD per token. */
const places = 6

type Service = Tier['service'] & string

/** Names of services in responses, by the vendors' words; an empty text stands for the usual one. */
const services = new Map<string, Service | ''>([
  ['default', ''],
  ['standard', ''],
  ['auto', ''],
  ['on_demand', ''],
  ['priority', 'priority'],
  ['fast', 'priority'],
  ['on_demand_priority', 'priority'],
  ['flex', 'flex'],
  ['on_demand_flex', 'flex'],
  ['batch', 'batch'],
  ['batches', 'batch'],
  ['balanced', 'balanced'],
  ['ultrafast', 'ultrafast'],
  ['on_demand_offpeak', ''],
  // Capacity that was paid in advance: a request costs nothing more, or what the user's catalog says.
  ['scale', 'provisioned'],
  ['reserved', 'provisioned'],
  ['provisioned', 'provisioned'],
  ['provisioned_throughput', 'provisioned'],
])

/** What a counter without a price costs. */
const substitutes: readonly (readonly [counter: CounterName, of: CounterName])[] = [
  ['cacheRead', 'input'],
  ['cacheReadAudio', 'cacheRead'],
  ['cacheWrite', 'input'],
  ['cacheWrite1h', 'cacheWrite'],
  ['inputAudio', 'input'],
  ['inputImage', 'input'],
  ['reasoning', 'output'],
  ['outputAudio', 'output'],
  ['outputImage', 'output'],
]

/** Combinations of conditions for which a table is kept. */
const maxTables = 64

interface PriceTier {
  readonly over: number
  readonly service: string | undefined
  readonly window: Window | undefined
  readonly rates: Rates
}

export class ModelPrices {
  readonly #rates: Rates
  readonly #tiers: readonly PriceTier[]
  readonly #multipliers: NonNullable<PricedEntry['multipliers']>
  readonly #perCall: RateTable['perCall']
  /** True if one table holds for all requests. */
  readonly #isSimple: boolean
  readonly #tables = new BoundedMap<string, RateTable | undefined>(maxTables)
  #usual: RateTable | undefined

  constructor({ rates = {}, tiers = [], multipliers = {}, calls = {} }: PricedEntry) {
    this.#rates = rates
    this.#multipliers = multipliers
    this.#tiers = tiers.map(({ contextOver = -1, service, utc, ...own }) => ({
      over: contextOver,
      service,
      window: utc && readWindow(utc),
      rates: own,
    }))
    const prices = Object.entries(calls).map(([name, price]) => [name, readUsd(price ?? '') ?? 0n])
    this.#perCall = Object.fromEntries(prices)
    this.#isSimple = tiers.length === 0 && Object.keys(multipliers).length === 0
  }

  /** Returns the prices for an input of this size, with cached tokens. */
  ratesFor(context: number, usage: Usage, terms: CostTerms): RateTable | undefined {
    const said = terms.service ?? usage.service
    const geography = usage.geography ?? terms.geography
    const { speed } = usage
    if (this.#isSimple && said === undefined && geography === undefined && speed === undefined) {
      this.#usual ??= this.#tableFor(this.#rates, 1_000_000n, false)
      return this.#usual
    }
    const service = said === undefined ? '' : services.get(said.toLowerCase())
    const applying = this.#tiers.map((tier) => applies(tier, context, service, terms.at))
    const key = `${service}\n${geography}\n${speed}\n${applying.join()}`
    const known = this.#tables.get(key)
    if (known !== undefined) return known
    const table = this.#overlaid(applying, service, geography, speed)
    this.#tables.set(key, table)
    return table
  }

  #overlaid(
    applying: readonly boolean[],
    service: string | undefined,
    geography: string | undefined,
    speed: string | undefined,
  ): RateTable | undefined {
    const tiers = this.#tiers.filter((_, index) => applying[index])
    const own = tiers.filter((tier) => tier.service !== undefined)
    if (service === 'provisioned' && own.length === 0) return undefined
    // Batches cost half unless the list says otherwise.
    const plain = (rates: Rates) => (service === 'batch' ? halved(rates) : rates)
    const rates: Rates = Object.assign(
      {},
      plain(this.#rates),
      ...own.filter(({ over }) => over < 0).map((tier) => tier.rates),
      ...tiers.filter((tier) => tier.service === undefined).map((tier) => plain(tier.rates)),
      ...own.filter(({ over }) => over >= 0).map((tier) => tier.rates),
    )
    const [inPlace, atSpeed] = [
      // A list names places only if their prices differ.
      factorOf(this.#multipliers.geography, geography, usualPlaces) ??
        (this.#multipliers.geography === undefined ? scale : undefined),
      factorOf(this.#multipliers.speed, speed, usualSpeeds),
    ]
    const factor = ((inPlace ?? scale) * (atSpeed ?? scale)) / scale
    const isUncertain = service === undefined || inPlace === undefined || atSpeed === undefined
    return this.#tableFor(rates, factor, isUncertain)
  }

  #tableFor(rates: Rates, factor: bigint, isUncertain: boolean): RateTable {
    const perToken = counterNames.map((name) => unitsOf(rates[name], factor))
    const isAssumed = perToken[at.cacheWrite1h] === undefined
    for (const [counter, of] of substitutes) perToken[at[counter]] ??= perToken[at[of]]
    const perMillion = perToken.map((units) => (units === undefined ? units : millionText(units)))
    return { perToken, perMillion, perCall: this.#perCall, isAssumed, isUncertain }
  }
}

/** Places and speeds for which lists name no multiplier, because the usual prices are theirs. */
const usualPlaces: readonly string[] = ['global', 'not_available']
const usualSpeeds: readonly string[] = ['standard', 'default']

/** The factor 1. */
const scale = 10n ** BigInt(places)

/** Returns a factor times `scale`; undefined if the list has none for this value. */
function factorOf(
  factors: Readonly<Record<string, string>> | undefined,
  value: string | undefined,
  usual: readonly string[],
): bigint | undefined {
  if (value === undefined) return scale
  const name = value.toLowerCase()
  const factor = factors && Object.hasOwn(factors, name) ? factors[name] : undefined
  if (factor !== undefined) return BigInt(decimalUnits(factor))
  return usual.includes(name) ? scale : undefined
}

function applies(
  { over, service, window }: PriceTier,
  context: number,
  wanted: string | undefined,
  time: number,
): boolean {
  if (context <= over || (service !== undefined && service !== wanted)) return false
  return window === undefined || isWithin(window, time)
}

/** Returns a decimal with at most six places, times a million. */
function decimalUnits(text: string): number {
  const [whole = '', fraction = ''] = text.split('.')
  return Number(whole + fraction.padEnd(places, '0'))
}

/** Returns a price per million tokens times a factor, rounded, as the price of one token in 10⁻¹² USD. */
function unitsOf(rate: string | undefined, factor: bigint): number | undefined {
  if (rate === undefined) return undefined
  const units = decimalUnits(rate)
  if (factor === scale) return units
  return Number((BigInt(units) * factor + scale / 2n) / scale)
}

/** Writes a price of one token in 10⁻¹² USD as USD per million tokens. */
function millionText(units: number): string {
  const digits = `${units}`.padStart(places + 1, '0')
  const fraction = digits.slice(-places).replace(/0+$/, '')
  return `${digits.slice(0, -places)}${fraction === '' ? '' : `.${fraction}`}`
}

/** Returns half of each price, rounded up at the last place. */
function halved(rates: Rates): Rates {
  const entries = Object.entries(rates).flatMap(([name, rate]) => {
    if (rate === undefined) return []
    return [[name, millionText(Math.ceil(decimalUnits(rate) / 2))]]
  })
  return Object.fromEntries(entries)
}
