/** Log and span fields of a request to a language model, with OpenTelemetry's names. */

import { inputWithCache, type Usage } from '../../../../engines/messages/chat.ts'
import type { Cost, CostStatus } from '../../../../engines/messages/cost/cost.ts'
import { counterNames, countersOf } from '../../../../engines/messages/cost/counters.ts'
import { usdText } from '../../../../engines/messages/cost/money.ts'
import type { ClientFormat } from '../../../../engines/messages/format.ts'
import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import { type ParameterName, parameterOf } from '../../../../engines/messages/request/parameters.ts'
import type { NamedProvider } from '../../../proxy/request/backend-call.ts'
import type { BackendRecord, VisitField } from '../../../proxy/telemetry/types.ts'
import type { StoredAnswer } from '../answers/answer-memory.ts'
import type { AnswerUse } from '../answers/answer-use.ts'
import type { GuardCheck } from '../guards/guard-call.ts'
import type { Comparison } from './comparison.ts'

/** The details about a request to a language model. */
export interface ModelDetails {
  readonly operation: ClientFormat['operation'] | undefined
  /** The provider name that OpenTelemetry defines, such as `openai`. */
  readonly provider: string | undefined
  readonly requestModel: string | undefined
  readonly responseModel: string | undefined
  readonly usage: Usage | undefined
  /** The batch whose results were fetched, and their number. */
  readonly batch: { readonly id: string; readonly results: number } | undefined
  /** The service that the provider gave, such as `priority`. */
  readonly serviceTier: string | undefined
  /** Undefined if the request was sent to no provider, or if nothing was billed. */
  readonly cost: Cost | undefined
  readonly costStatus: CostStatus | 'estimated' | undefined
  /** Digest of the catalog of models. */
  readonly catalog: string | undefined
  /** The model whose rules applied because the catalog does not know the requested one. */
  readonly assumedModel: string | undefined
  /** Fields of the request, among them its parameters. */
  readonly fields: JsonObject | undefined
  /** Time from the request to the first token of a streamed response. */
  readonly firstTokenSeconds: number | undefined
  /** Time per output token of a streamed response, after the first token. */
  readonly perTokenSeconds: number | undefined
  /** Time from the start of the last attempt to the end of its response; undefined without an attempt. */
  readonly operationSeconds: number | undefined
  /** Error code or HTTP status; undefined if the request succeeded. */
  readonly failure: string | undefined
  readonly checks: readonly GuardCheck[]
  /** `namespace/name` of the model that the client asked for, if the backend serves certain models only. */
  readonly served: string | undefined
  /** The provider of the last attempt, if it has a name. */
  readonly named: NamedProvider | undefined
  /** The attempts before the last one, such as `first: status 429`, separated by commas. */
  readonly failedAttempts: string | undefined
  /** Names of ejected providers that the request would have been sent to, separated by commas. */
  readonly skipped: string | undefined
  /** What the cache of answers did; undefined if there is none. */
  readonly answer: AnswerUse | undefined
  /** The comparison with similar requests; undefined if there was none. */
  readonly comparison: Pick<Comparison, 'use' | 'problem'> | undefined
}

/** The telemetry record of a request to a language model. */
export class ModelRecord implements BackendRecord {
  readonly protocol = 'llm'
  readonly details: ModelDetails
  readonly inner: BackendRecord | undefined

  constructor(details: ModelDetails, inner: BackendRecord | undefined) {
    this.details = details
    this.inner = inner
  }

  get model(): string | undefined {
    return this.details.requestModel
  }

  eachField(visit: VisitField): void {
    const { answer, comparison, failedAttempts } = this.details
    const isUnsent =
      answer?.hit !== undefined && comparison === undefined && failedAttempts === undefined
    const fields = isUnsent ? unsentFields : modelFields
    for (const { name, read } of fields) visit(name, read(this.details), false)
    if (!isUnsent) eachRate(this.details.cost, visit)
    this.inner?.eachField(visit)
  }
}

interface ModelField {
  readonly name: string
  readonly read: (details: ModelDetails) => string | number | undefined
}

const field = (name: string, read: ModelField['read']): ModelField => ({ name, read })
const parameter = (name: string, of: ParameterName): ModelField =>
  field(name, ({ fields }) => fields && parameterOf(fields, of))
const kind = (name: string, of: string): ModelField =>
  field(name, ({ usage }) => usage?.kinds?.[of])

const modelFields: readonly ModelField[] = [
  field('gen_ai.operation.name', ({ operation }) => operation),
  field('gen_ai.provider.name', ({ provider }) => provider),
  field('model.served', ({ served }) => served),
  field('model.provider', ({ named }) => named?.name),
  field('model.group', ({ named }) => named?.group),
  field('model.failed', ({ failedAttempts }) => failedAttempts),
  field('model.skipped', ({ skipped }) => skipped),
  field('model.cache', ({ answer }) => answer?.result),
  field('model.cache.detail', ({ answer }) => answer?.detail),
  field('model.cache.saved', ({ answer }) => answer?.hit && savedText(answer.hit)),
  field('model.cache.similarity', ({ answer }) => roundedTo(answer?.hit?.similarity, 1e4)),
  field('model.cache.embedding.provider', ({ comparison }) => comparison?.use?.provider),
  field('model.cache.embedding.model', ({ comparison }) => comparison?.use?.model),
  field('model.cache.embedding.tokens', ({ comparison }) => comparison?.use?.usage.input),
  field('model.cache.embedding.cost', ({ comparison }) => {
    const cost = comparison?.use?.cost
    return cost === undefined || cost.status === 'unknown' ? undefined : usdText(cost.total)
  }),
  field('model.catalog', ({ catalog }) => catalog),
  field('model.assumed', ({ assumedModel }) => assumedModel),
  field('gen_ai.request.model', ({ requestModel }) => requestModel),
  field('gen_ai.response.model', ({ responseModel }) => responseModel),
  field('gen_ai.usage.input_tokens', ({ usage }) => usage && inputWithCache(usage)),
  field('gen_ai.usage.output_tokens', ({ usage }) => usage?.output),
  field('gen_ai.usage.cache_read.input_tokens', ({ usage }) => usage?.cacheRead),
  field('gen_ai.usage.cache_creation.input_tokens', ({ usage }) => usage?.cacheWrite),
  field('gen_ai.usage.reasoning_tokens', ({ usage }) => usage?.reasoning),
  field('gen_ai.usage.cache_creation_1h.input_tokens', ({ usage }) => usage?.cacheWrite1h),
  field('gen_ai.usage.cache_read.audio_tokens', ({ usage }) => usage?.cacheReadAudio),
  kind('gen_ai.usage.input_image_tokens', 'inputImageTokens'),
  kind('gen_ai.usage.output_image_tokens', 'outputImageTokens'),
  kind('gen_ai.usage.input_audio_tokens', 'inputAudioTokens'),
  kind('gen_ai.usage.output_audio_tokens', 'outputAudioTokens'),
  field('model.calls', ({ usage }) => callsText(usage?.calls)),
  field('model.service_tier', ({ serviceTier }) => serviceTier),
  field('model.geography', ({ usage }) => usage?.geography),
  field('model.speed', ({ usage }) => usage?.speed),
  field('model.batch', ({ batch }) => batch?.id),
  field('model.batch.results', ({ batch }) => batch?.results),
  field('cost.status', ({ costStatus }) => costStatus),
  field('cost.total', ({ cost }) =>
    cost === undefined || cost.status === 'unknown' ? undefined : usdText(cost.total),
  ),
  field('cost.estimated.input_tokens', ({ cost, costStatus }) =>
    costStatus === 'estimated' && cost ? inputWithCache(cost.usage) : undefined,
  ),
  field('cost.estimated.output_tokens', ({ cost, costStatus }) =>
    costStatus === 'estimated' ? cost?.usage.output : undefined,
  ),
  parameter('gen_ai.request.temperature', 'temperature'),
  parameter('gen_ai.request.top_p', 'top_p'),
  parameter('gen_ai.request.max_tokens', 'max_tokens'),
  parameter('gen_ai.request.frequency_penalty', 'frequency_penalty'),
  parameter('gen_ai.request.presence_penalty', 'presence_penalty'),
  parameter('gen_ai.request.seed', 'seed'),
  parameter('gen_ai.request.encoding_formats', 'encoding_format'),
  parameter('gen_ai.embeddings.dimension.count', 'dimensions'),
  field('gen_ai.server.time_to_first_token', ({ firstTokenSeconds }) => rounded(firstTokenSeconds)),
  field('gen_ai.server.time_per_output_token', ({ perTokenSeconds }) => rounded(perTokenSeconds)),
]

/** Fields that only a provider fills. */
const ofProviders =
  /^(?:gen_ai\.(?:usage|server)|cost|model\.(?:assumed|batch|calls|catalog|failed|geography|service_tier|speed|cache\.embedding))\b/

/** The fields of a request that was sent to no provider, because a stored answer was served. */
const unsentFields = modelFields.filter(({ name }) => !ofProviders.test(name))

const savedTexts = new WeakMap<StoredAnswer, string>()

/** Writes what an answer has cost; undefined if that is not known. */
function savedText(answer: StoredAnswer): string | undefined {
  const { cost } = answer
  if (cost === undefined) return undefined
  let text = savedTexts.get(answer)
  if (text === undefined) {
    text = usdText(cost)
    savedTexts.set(answer, text)
  }
  return text
}

/** Writes calls of tools, such as `webSearch=2`. */
function callsText(calls: Usage['calls']): string | undefined {
  if (calls === undefined) return undefined
  return Object.entries(calls)
    .map(([name, count]) => `${name}=${count}`)
    .join(',')
}

const rateNames = counterNames.map((name) => `cost.rate.${name}`)

/** Visits the prices of what the request has used. */
function eachRate(cost: Cost | undefined, visit: VisitField): void {
  if (cost?.rates === undefined) return
  const { perMillion } = cost.rates
  const counters = countersOf(cost.usage)
  for (let at = 0; at < rateNames.length; at++) {
    visit(rateNames[at] ?? '', counters[at] === 0 ? undefined : perMillion[at], false)
  }
}

const roundedTo = (value: number | undefined, parts: number): number | undefined =>
  value === undefined ? undefined : Math.round(value * parts) / parts

/** Rounds seconds to microseconds. */
const rounded = (seconds: number | undefined): number | undefined => roundedTo(seconds, 1e6)
