/** Reads the list of models.dev, with prices per million tokens. */
import { knownProviders, providerId } from '../../engines/messages/catalog/read-catalog.ts'
import type { Tier } from '../../engines/messages/cost/rates.ts'
import { isObject } from '../../ground/base/json-object.ts'
import {
  addModel,
  countOf,
  entryOf,
  type Fields,
  type ListedModels,
  type RateFields,
  ratesOf,
} from './list.ts'
import type { Losses } from './losses.ts'

/** Our ids of providers, by those of the list. Others keep theirs. */
const providers: Readonly<Record<string, string>> = {
  google: 'gcp.gemini',
  'google-vertex': 'gcp.vertex_ai',
  'google-vertex-anthropic': 'gcp.vertex_ai',
  'amazon-bedrock': 'aws.bedrock',
}

const rateFields: RateFields = {
  input: 'input',
  output: 'output',
  cacheRead: 'cache_read',
  cacheWrite: 'cache_write',
  reasoning: 'reasoning',
  inputAudio: 'input_audio',
  outputAudio: 'output_audio',
}

export function readModelsDev(list: Fields, losses: Losses): ListedModels {
  const found: ListedModels = new Map()
  for (const [key, provider] of Object.entries(list)) {
    const id = Object.hasOwn(providers, key) ? (providers[key] ?? key) : key
    const models = isObject(provider) && isObject(provider.models) ? provider.models : {}
    for (const [name, model] of Object.entries(models)) {
      if (!isObject(model)) continue
      if (!knownProviders.has(providerId(id))) {
        losses.leaveOut(name, `of provider ${key}`)
        continue
      }
      if (isObject(model.cost)) noteLosses(name, model.cost, losses)
      addModel(found, id, name, modelOf(model))
    }
  }
  return found
}

function noteLosses(model: string, cost: Fields, losses: Losses): void {
  const { tiers, ...prices } = cost
  losses.checkPrices(model, prices, 0)
  for (const one of Array.isArray(tiers) ? tiers.filter(isObject) : []) {
    const { tier, ...tierPrices } = one
    if (sizeOf(one) === undefined) losses.leaveOutField(model, `tier ${JSON.stringify(tier)}`)
    else losses.checkPrices(model, tierPrices, 0)
  }
}

/** The size of the input above which a tier applies; undefined if it depends on something else. */
const sizeOf = ({ tier }: Fields): number | undefined =>
  isObject(tier) && (tier.type ?? 'context') === 'context' ? countOf(tier.size) : undefined

function modelOf({ cost, limit, modalities, release_date: released }: Fields) {
  const { input: takes, output: makes } = isObject(modalities) ? modalities : {}
  const { context, output } = isObject(limit) ? limit : {}
  const rates = isObject(cost) ? ratesOf(cost, rateFields) : undefined
  return entryOf({ rates, tiers: tiersOf(cost), context, output, takes, makes, released })
}

/** Size of the context from which the older form of the list has other prices. */
const oldThreshold = 200_000

function tiersOf(cost: unknown): Tier[] {
  if (!isObject(cost)) return []
  const given = Array.isArray(cost.tiers) ? cost.tiers.filter(isObject) : []
  const sized = given.map((one) => ({
    size: sizeOf(one),
    rates: ratesOf(one, rateFields),
  }))
  const over = cost.context_over_200k
  const old = { size: oldThreshold, rates: isObject(over) ? ratesOf(over, rateFields) : undefined }
  return (sized.length > 0 ? sized : [old])
    .flatMap(({ size, rates }) => (size && rates ? [{ contextOver: size, ...rates }] : []))
    .sort((a, b) => a.contextOver - b.contextOver)
}
