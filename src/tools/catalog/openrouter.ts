/** Reads the list of OpenRouter, with prices per token as decimal text. */
import { isObject } from '../../ground/base/json-object.ts'
import { decimalOf } from './decimal.ts'
import {
  addModel,
  entryOf,
  type Fields,
  type ListedModels,
  perMillion,
  type RateFields,
  ratesOf,
  withoutEmpty,
} from './list.ts'
import type { Losses } from './losses.ts'

const provider = 'openrouter'

const rateFields: RateFields = {
  input: 'prompt',
  output: 'completion',
  cacheRead: 'input_cache_read',
  cacheWrite: 'input_cache_write',
  cacheWrite1h: 'input_cache_write_1h',
  reasoning: 'internal_reasoning',
  inputAudio: 'audio',
  outputAudio: 'audio_output',
  inputImage: 'image_token',
  outputImage: 'image_output',
}

export function readOpenRouter(list: Fields, losses: Losses): ListedModels {
  const found: ListedModels = new Map()
  const models = Array.isArray(list.data) ? list.data.filter(isObject) : []
  for (const model of models) {
    if (typeof model.id !== 'string') continue
    for (const field of Object.values(rateFields)) {
      const price = isObject(model.pricing) ? model.pricing[field] : undefined
      if (price !== undefined) losses.checkPrice(model.id, field, price, perMillion)
    }
    addModel(found, provider, model.id, modelOf(model))
  }
  return found
}

function modelOf({ pricing, context_length: context, architecture, top_provider: top }: Fields) {
  const { input_modalities: takes, output_modalities: makes } = isObject(architecture)
    ? architecture
    : {}
  const rates = isObject(pricing) ? ratesOf(pricing, rateFields, perMillion) : undefined
  const calls = isObject(pricing) ? { webSearch: decimalOf(pricing.web_search) } : {}
  const output = isObject(top) ? top.max_completion_tokens : undefined
  return entryOf({ rates, calls: withoutEmpty(calls), context, output, takes, makes })
}
