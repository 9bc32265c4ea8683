/** Reads the price list of LiteLLM, a flat map from model to prices per token and abilities. */
import type { ModelEntry } from '../../engines/messages/catalog/facts.ts'
import type { Tier } from '../../engines/messages/cost/rates.ts'
import { isObject } from '../../ground/base/json-object.ts'
import { decimalOf } from './decimal.ts'
import {
  addModel,
  countOf,
  entryOf,
  type Fields,
  type ListedModels,
  perMillion,
  type RateFields,
  ratesOf,
  withoutEmpty,
} from './list.ts'
import type { Losses } from './losses.ts'

/** Our ids of providers, by those of the list. */
const providers: readonly (readonly [pattern: RegExp, id: string])[] = [
  [/^openai$/, 'openai'],
  [/^azure(_ai)?$/, 'azure'],
  [/^anthropic$/, 'anthropic'],
  [/^gemini$/, 'gcp.gemini'],
  [/^vertex_ai/, 'gcp.vertex_ai'],
  [/^bedrock(_converse)?$/, 'aws.bedrock'],
  [/^groq$/, 'groq'],
  [/^mistral$/, 'mistral_ai'],
  [/^deepseek$/, 'deepseek'],
  [/^xai$/, 'x_ai'],
  [/^cerebras$/, 'cerebras'],
  [/^cohere(_chat)?$/, 'cohere'],
  [/^together_ai$/, 'together_ai'],
  [/^fireworks_ai$/, 'fireworks'],
]

/** Fields with prices per token, without suffixes. */
const rateFields: RateFields = {
  input: 'input_cost_per_token',
  output: 'output_cost_per_token',
  cacheRead: 'cache_read_input_token_cost',
  cacheReadAudio: 'cache_read_input_audio_token_cost',
  cacheWrite: 'cache_creation_input_token_cost',
  cacheWrite1h: 'cache_creation_input_token_cost_above_1hr',
  reasoning: 'output_cost_per_reasoning_token',
  inputAudio: 'input_cost_per_audio_token',
  outputAudio: 'output_cost_per_audio_token',
  inputImage: 'input_cost_per_image_token',
  outputImage: 'output_cost_per_image_token',
}

const services = [
  ['', undefined],
  ['_batches', 'batch'],
  ['_flex', 'flex'],
  ['_priority', 'priority'],
  ['_balanced', 'balanced'],
  ['_ultrafast', 'ultrafast'],
] as const

const modes: readonly unknown[] = [
  'chat',
  'responses',
  'completion',
  'embedding',
  'rerank',
  'audio_transcription',
  'audio_speech',
  'image_generation',
  'image_edit',
  'moderation',
  'realtime',
  undefined,
]

/** What models of these modes take and make, if the list does not say. */
const mediaOfModes: Fields = {
  audio_transcription: [['audio'], ['text']],
  audio_speech: [['text'], ['audio']],
  image_generation: [['text'], ['image']],
  image_edit: [['text', 'image'], ['image']],
}

export function readLiteLlm(list: Fields, losses: Losses): ListedModels {
  const found: ListedModels = new Map()
  for (const [key, value] of Object.entries(list)) {
    if (key === 'sample_spec') continue
    const fields = resolveAlias(list, value)
    if (fields === undefined) {
      losses.leaveOut(key, 'that are no objects')
      continue
    }
    const id = providers.find(([pattern]) => pattern.test(String(fields.litellm_provider)))?.[1]
    if (id === undefined) losses.leaveOut(key, `of provider ${fields.litellm_provider}`)
    else if (!modes.includes(fields.mode)) losses.leaveOut(key, `of mode ${fields.mode}`)
    // Keys with a resolution or a region in front are no names of models.
    else if (!/^[\w-]*\d+-x-|\/\d+-x-|^max-x-max\//.test(key)) {
      noteLosses(key, fields, losses)
      addModel(found, id, nameOf(key), modelOf(fields, id))
    }
  }
  return found
}

/** Fields with prices per token, and prices of calls. */
const pricesPerToken: ReadonlySet<string> = new Set(Object.values(rateFields))
const pricesOfCalls: ReadonlySet<string> = new Set([
  'google_maps_grounding_cost_per_query',
  'input_cost_per_query',
  'input_cost_per_second',
])
const endings = /(?:_above_\d+[km]?_tokens)?(?:_batches|_flex|_priority|_balanced|_ultrafast)?$/

function noteLosses(model: string, fields: Fields, losses: Losses): void {
  for (const [field, value] of Object.entries(fields)) {
    const isPrice =
      /(^|_)cost($|_)/.test(field) && (typeof value === 'number' || typeof value === 'string')
    if (!isPrice || value === 0) continue
    if (pricesPerToken.has(field.replace(endings, ''))) {
      losses.checkPrice(model, field, value, perMillion)
    } else if (pricesOfCalls.has(field)) losses.checkPrice(model, field, value, 0)
    else losses.leaveOutField(model, field)
  }
}

/** Follows `alias_of` once. */
function resolveAlias(list: Fields, value: unknown): Fields | undefined {
  if (!isObject(value)) return undefined
  const target = typeof value.alias_of === 'string' ? list[value.alias_of] : undefined
  return isObject(target) ? { ...target, ...value } : value
}

/** Removes the provider in front of a name. */
const nameOf = (key: string): string =>
  key.replace(
    /^(?:openai|azure_ai|azure|anthropic|gemini|vertex_ai|bedrock|groq|mistral|deepseek|xai|cerebras|cohere|together_ai|fireworks_ai)\//,
    '',
  )

function modelOf(fields: Fields, provider: string): ModelEntry {
  const [takes, makes] = (mediaOfModes[String(fields.mode)] ?? []) as readonly unknown[]
  return entryOf({
    rates: ratesOf(fields, rateFields, perMillion) ?? firstRange(fields),
    tiers: [...tiersOf(fields, provider), ...rangesOf(fields), ...offPeakOf(fields)],
    calls: callsOf(fields),
    multipliers: multipliersOf(fields),
    context: fields.max_input_tokens,
    output: fields.mode === 'embedding' ? undefined : fields.max_output_tokens,
    takes: fields.supported_modalities ?? takes,
    makes: fields.supported_output_modalities ?? makes,
    retires: fields.deprecation_date,
  })
}

const units: Readonly<Record<string, number>> = { '': 1, k: 1_000, m: 1_000_000 }

/** Sizes of the input above which fields have other prices, by the text in their names, such as `200k`. */
function sizesOf(fields: Fields): (readonly [text: string, size: number])[] {
  const sizes = new Map<string, number>()
  for (const name of Object.keys(fields)) {
    const [, digits, unit = ''] = /_above_(\d+)([km]?)_tokens/.exec(name) ?? []
    if (digits !== undefined) sizes.set(`${digits}${unit}`, Number(digits) * (units[unit] ?? 1))
  }
  return [...sizes].sort(([, a], [, b]) => a - b)
}

function tiersOf(fields: Fields, provider: string): Tier[] {
  const sizes = [undefined, ...sizesOf(fields)]
  return services.flatMap(([ending, service]) =>
    sizes.flatMap((sized): Tier[] => {
      if (sized === undefined && service === undefined) return []
      const over = sized === undefined ? '' : `_above_${sized[0]}_tokens`
      const rates = ratesOf(fields, rateFields, perMillion, (name) => `${name}${over}${ending}`)
      if (rates === undefined) return []
      // At xAI, the prices apply to an input of exactly this size, too.
      const contextOver = sized && sized[1] - (provider === 'x_ai' ? 1 : 0)
      return [withoutEmpty({ contextOver, service, ...rates })]
    }),
  )
}

const listAt = (fields: Fields, name: string): Fields[] => {
  const list = fields[name]
  return Array.isArray(list) ? list.filter(isObject) : []
}

const lowerEnd = ({ range }: Fields): unknown => (Array.isArray(range) ? range[0] : undefined)

function firstRange(fields: Fields) {
  const [first] = listAt(fields, 'tiered_pricing')
  return first === undefined ? undefined : ratesOf(first, rateFields, perMillion)
}

/** Some models have a list of prices by the size of the input instead. */
function rangesOf(fields: Fields): Tier[] {
  return listAt(fields, 'tiered_pricing').flatMap((range) => {
    const contextOver = countOf(lowerEnd(range))
    const rates = ratesOf(range, rateFields, perMillion)
    return contextOver === undefined || rates === undefined ? [] : [{ contextOver, ...rates }]
  })
}

const hoursForm = /^\d\d:\d\d-\d\d:\d\d$/

function offPeakOf({ off_peak_pricing: offPeak }: Fields): Tier[] {
  const rates = isObject(offPeak) ? ratesOf(offPeak, rateFields, perMillion) : undefined
  if (!isObject(offPeak) || rates === undefined) return []
  return listAt(offPeak, 'windows').flatMap(({ hours_utc: hours, weekdays }) => {
    const days = Array.isArray(weekdays) ? { days: weekdays.map(Number) } : {}
    return [hours]
      .flat()
      .filter((text): text is string => typeof text === 'string' && hoursForm.test(text))
      .map((text) => ({ utc: { hours: text, ...days }, ...rates }))
  })
}

function callsOf(fields: Fields): ModelEntry['calls'] {
  const { search_context_cost_per_query: search } = fields
  return withoutEmpty({
    webSearch: isObject(search) ? decimalOf(search.search_context_size_medium) : undefined,
    mapSearch: decimalOf(fields.google_maps_grounding_cost_per_query),
    searchUnit: fields.mode === 'rerank' ? decimalOf(fields.input_cost_per_query) : undefined,
    audioSecond:
      fields.mode === 'audio_transcription' ? decimalOf(fields.input_cost_per_second) : undefined,
  })
}

function multipliersOf(fields: Fields): ModelEntry['multipliers'] {
  const { provider_specific_entry: own } = fields
  const { us, fast } = isObject(own) ? own : {}
  const regional = decimalOf(fields.regional_endpoint_uplift_multiplier)
  return withoutEmpty({
    geography: withoutEmpty({ us: decimalOf(us), regional }),
    speed: withoutEmpty({ fast: decimalOf(fast) }),
  }) as ModelEntry['multipliers']
}
