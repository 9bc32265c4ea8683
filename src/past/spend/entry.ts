/** Reads from the record of a request to a model what it has used, who it belongs to, and what it has cost. */
import type { ModelCatalog } from '../../engines/messages/catalog/catalog.ts'
import type { Usage } from '../../engines/messages/chat.ts'
import { costOf } from '../../engines/messages/cost/cost.ts'
import { type CounterName, counterNames, countersOf } from '../../engines/messages/cost/counters.ts'
import { type Money, readUsd } from '../../engines/messages/cost/money.ts'
import type { RecordedDecision } from '../decisions/record.ts'

type SpendStatus = 'exact' | 'partial' | 'estimated' | 'unknown'

/** A billed request. */
export interface SpendEntry {
  readonly decision: RecordedDecision
  /** `gen_ai.provider.name`, such as `openai`. */
  readonly provider: string
  /** The model that answered, or else the requested one. */
  readonly model: string
  readonly usage: Usage
  readonly status: SpendStatus
  /** What is known of the cost; undefined if nothing is. */
  readonly cost: Money | undefined
  /** The batch, if the record is of a request for its results. */
  readonly batch?: { readonly id: string; readonly results: number }
}

/** A request that a stored answer has served, so that no provider has billed anything. */
export interface CacheHit extends Pick<SpendEntry, 'decision' | 'provider' | 'model'> {
  /** What the stored answer had cost; undefined if that is not known. */
  readonly saved: Money | undefined
  /** Cosine similarity to the request of the answer, such as `0.97`; undefined if the requests are equal. */
  readonly similarity: string | undefined
}

type Details = RecordedDecision['details']

const textOf = (details: Details, name: string): string | undefined =>
  details[name] === undefined ? undefined : `${details[name]}`

const statuses: readonly (string | undefined)[] = ['exact', 'partial', 'estimated', 'unknown']

/** Returns undefined for a request for which no provider has billed anything. */
export function spendOf(decision: RecordedDecision): SpendEntry | undefined {
  const { details } = decision
  const status = textOf(details, 'cost.status')
  const hasUsage = details['gen_ai.usage.input_tokens'] !== undefined
  const isBilled = hasUsage && details['gen_ai.operation.name'] !== 'count_tokens'
  // Records of earlier versions have tokens but no cost.
  if (status === undefined && !isBilled) return undefined
  const model = textOf(details, 'gen_ai.response.model') ?? requestedModel(details)
  const isKnown = statuses.includes(status)
  const batch = textOf(details, 'model.batch')
  return {
    decision,
    provider: textOf(details, 'gen_ai.provider.name') ?? '',
    model,
    usage: usageOfRecord(details),
    status: isKnown ? (status as SpendStatus) : 'unknown',
    cost: readUsd(textOf(details, 'cost.total') ?? ''),
    ...(batch !== undefined && {
      batch: { id: batch, results: Number(details['model.batch.results'] ?? 0) },
    }),
  }
}

/** Returns the spend of the embedding with which a request was compared with similar ones; undefined without one. */
export function embeddingSpendOf(decision: RecordedDecision): SpendEntry | undefined {
  const { details } = decision
  const read = (name: string) => textOf(details, `model.cache.embedding.${name}`)
  const model = read('model')
  if (model === undefined) return undefined
  const input = Number(read('tokens') ?? 0)
  const cost = readUsd(read('cost') ?? '')
  return {
    decision,
    provider: read('provider') ?? '',
    model,
    usage: { input, uncachedInput: input, output: 0 },
    status: cost === undefined ? 'unknown' : 'exact',
    cost,
  }
}

/** Returns undefined for a request that no stored answer has served. */
export function cacheHitOf(decision: RecordedDecision): CacheHit | undefined {
  const { details } = decision
  if (details['model.cache'] !== 'hit') return undefined
  return {
    decision,
    provider: textOf(details, 'gen_ai.provider.name') ?? '',
    model: textOf(details, 'gen_ai.response.model') ?? requestedModel(details),
    saved: readUsd(textOf(details, 'model.cache.saved') ?? ''),
    similarity: textOf(details, 'model.cache.similarity'),
  }
}

const requestedModel = (details: Details): string => textOf(details, 'gen_ai.request.model') ?? ''

/** Returns the usage that a record contains, for other prices. */
function usageOfRecord(details: Details): Usage {
  const count = (name: string): number => Number(details[name] ?? 0)
  const tokens = (name: string): number => count(`gen_ai.usage.${name}`)
  const cacheRead = tokens('cache_read.input_tokens')
  const cacheWrite = tokens('cache_creation.input_tokens')
  const input = count('cost.estimated.input_tokens') || tokens('input_tokens')
  const calls = callsOf(textOf(details, 'model.calls'))
  const [service, geography, speed] = ['service_tier', 'geography', 'speed'].map((name) =>
    textOf(details, `model.${name}`),
  )
  return {
    input,
    uncachedInput: Math.max(0, input - cacheRead - cacheWrite),
    output: count('cost.estimated.output_tokens') || tokens('output_tokens'),
    cacheRead,
    cacheReadAudio: tokens('cache_read.audio_tokens'),
    cacheWrite,
    cacheWrite1h: tokens('cache_creation_1h.input_tokens'),
    reasoning: tokens('reasoning_tokens'),
    kinds: {
      inputAudioTokens: tokens('input_audio_tokens'),
      inputImageTokens: tokens('input_image_tokens'),
      outputAudioTokens: tokens('output_audio_tokens'),
      outputImageTokens: tokens('output_image_tokens'),
    },
    ...(calls && { calls }),
    ...(service !== undefined && { service }),
    ...(geography !== undefined && { geography }),
    ...(speed !== undefined && { speed }),
  }
}

/** Reads calls such as `webSearch=2,fileSearch=1`. */
function callsOf(text: string | undefined): Usage['calls'] {
  if (text === undefined) return undefined
  const pairs = text.split(',').map((pair) => pair.split('='))
  return Object.fromEntries(pairs.map(([name = '', count]) => [name, Number(count)]))
}

/** The model as which a request is priced instead of its own. */
export interface OtherModel {
  readonly provider: string
  readonly model: string
}

/** Computes the cost of a recorded request again: by the prices of a catalog, maybe as if another model had answered. */
export function repriced(entry: SpendEntry, catalog: ModelCatalog, as?: OtherModel): SpendEntry {
  const { usage, decision, status: before } = entry
  const { provider, model } = as ?? entry
  const prices =
    catalog.pricesOf(model, provider) ??
    (as === undefined ? catalog.pricesOf(requestedModel(decision.details), provider) : undefined)
  // Other models have other services, places and speeds.
  const { service: _service, geography: _geography, speed: _speed, ...tokens } = usage
  const priced = as === undefined ? usage : tokens
  const { status, total } = costOf(priced, prices, { at: Date.parse(decision.time) })
  return {
    ...entry,
    status: before === 'estimated' && status !== 'unknown' ? 'estimated' : status,
    cost: status === 'unknown' ? undefined : total,
  }
}

/** One part of a recorded cost. */
interface CostLine {
  readonly counter: CounterName
  readonly tokens: number
  /** USD per million tokens, as recorded; undefined if no price is known. */
  readonly rate: string | undefined
  readonly cost: Money | undefined
}

/** Price lists are per million tokens. */
const million = 1_000_000n

/** Returns the counters of a request with their prices and costs. */
export function costLines({ usage, decision: { details } }: SpendEntry): CostLine[] {
  const counters = countersOf(usage)
  return counterNames.flatMap((counter, at) => {
    const tokens = counters[at] ?? 0
    if (tokens === 0) return []
    const rate = textOf(details, `cost.rate.${counter}`)
    const price = readUsd(rate ?? '')
    const cost = price === undefined ? undefined : (BigInt(tokens) * price) / million
    return [{ counter, tokens, rate, cost }]
  })
}
