/** The cost of a request to a language model, as far as the provider reported what it bills. */
import type { ModelCatalog } from '../../../../engines/messages/catalog/catalog.ts'
import type { Usage } from '../../../../engines/messages/chat.ts'
import type { ResponseDetails } from '../../../../engines/messages/common/response-details.ts'
import { type Cost, costOf, partsOf } from '../../../../engines/messages/cost/cost.ts'
import { counterNames } from '../../../../engines/messages/cost/counters.ts'
import { usdNumber } from '../../../../engines/messages/cost/money.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import type { LearnedRecord } from '../../../../ground/exchange/learned.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { ProviderEndpoint } from './provider-endpoint.ts'

/** What the price of a call depends on, in addition to its usage. */
export interface PricedCall {
  readonly catalog: ModelCatalog
  readonly details: ResponseDetails
  readonly provider: ProviderEndpoint | undefined
  readonly outgoing: OutgoingRequest | undefined
  readonly context: RequestContext
}

const noPlace: { readonly geography?: string; readonly region?: string } = {}

/**
 * The model that answered decides the price. If no list has it, because the vendor gives it another name, the model
 * that the provider was asked for decides. Names that only clients use have no price.
 */
export function costOfCall(
  { catalog, details, provider, outgoing, context }: PricedCall,
  usage: Usage,
): Cost {
  const { model, serviceTier: service } = details
  const id = provider?.catalogId ?? ''
  const { geography, region } = provider?.vendor.place?.(provider.provider.config) ?? noPlace
  const pricesOf = (name: string) =>
    (region && catalog.pricesOf(`${region}/${name}`, id)) || catalog.pricesOf(name, id)
  const prices = (model && pricesOf(model)) || (outgoing && pricesOf(outgoing.model))
  const at = performance.timeOrigin + context.exchange.startedAt
  return costOf(usage, prices || undefined, { service, geography, at })
}

/** Returns the cost and its parts in USD, for expressions; undefined if the price is not known. */
export function costRecord(cost: Cost | undefined): LearnedRecord | undefined {
  if (cost === undefined || cost.status === 'unknown') return undefined
  const record: Record<string, number> = { total: usdNumber(cost.total) }
  for (const [name, part] of Object.entries(partsOf(cost))) record[name] = usdNumber(part)
  return record
}

/** Returns the prices per million tokens that applied, for expressions; undefined if there are none. */
export function rateRecord(cost: Cost | undefined): LearnedRecord | undefined {
  if (cost?.rates === undefined) return undefined
  const { perMillion } = cost.rates
  const entries = counterNames.flatMap((name, at) => {
    const price = perMillion[at]
    return price === undefined ? [] : [[name, Number(price)]]
  })
  return Object.fromEntries(entries)
}
