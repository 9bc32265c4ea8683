/** Details of a request to a language model for expressions, logs, spans, metrics and limits. */

import type { ModelFacts } from '../../../../engines/messages/catalog/facts.ts'
import { inputWithCache, type Usage } from '../../../../engines/messages/chat.ts'
import type { CostStatus } from '../../../../engines/messages/cost/cost.ts'
import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import { requestTexts } from '../../../../engines/messages/mask/slots.ts'
import {
  outputLimit,
  type ParameterName,
  parameterNames,
  parameterOf,
} from '../../../../engines/messages/request/parameters.ts'
import type { LearnedRecord, LearnedValue } from '../../../../ground/exchange/learned.ts'
import { tokenLimitsOf } from '../../../../ground/exchange/rate-limits.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { now } from '../../../proxy/upstream/endpoint.ts'
import { costRecord, rateRecord } from './call-cost.ts'
import { noteMatches } from './guard-checks.ts'
import type { ModelCall } from './model-call.ts'
import type { ModelDetails } from './model-record.ts'

import { providerName } from './provider-endpoint.ts'
import { noteSpend, usualOutput } from './spend.ts'

/** Provides `llm` to expressions, with the details that are known when an expression is evaluated. */
export function describeModelCall(call: ModelCall): void {
  if (call.request === undefined || call.isDescribed) return
  call.isDescribed = true
  const { startedAt, learned } = call.context.exchange
  learned.describeLlm(() => recordOf(call, startedAt))
}

function recordOf(call: ModelCall, startedAt: number): LearnedRecord {
  const { details, request } = call
  const timing = timingOf(call, startedAt)
  const known = {
    [described]: call,
    requestModel: request?.model,
    provider: call.provider?.vendor.systemName,
    streaming: request?.isStream,
    ...(details.model !== undefined && { responseModel: details.model }),
    ...(details.usage !== undefined && tokensOf(details.usage)),
    ...(details.serviceTier !== undefined && { serviceTier: details.serviceTier }),
    ...(details.countTokens !== undefined && { countTokens: BigInt(details.countTokens) }),
    ...(timing.firstTokenSeconds !== undefined && { timeToFirstToken: timing.firstTokenSeconds }),
    ...(timing.perTokenSeconds !== undefined && { timePerOutputToken: timing.perTokenSeconds }),
  }
  return Object.defineProperties(known, computedFields)
}

const described = Symbol('described call')

interface Described {
  readonly [described]: ModelCall
}

/**
 * Fields that are computed only if an expression uses them. All records share these functions: V8 keeps getters
 * as part of an object's shape until the next full collection, and with them everything that they refer to.
 */
const computedFields: PropertyDescriptorMap & ThisType<Described> = {
  params: {
    enumerable: true,
    get() {
      return paramsOf(this[described].request?.body.fields)
    },
  },
  cost: {
    enumerable: true,
    get() {
      return costRecord(this[described].cost)
    },
  },
  costStatus: {
    enumerable: true,
    get() {
      return statusOf(this[described])
    },
  },
  costRates: {
    enumerable: true,
    get() {
      return rateRecord(this[described].cost)
    },
  },
  prompt: {
    enumerable: true,
    get() {
      const { request } = this[described]
      return (
        request &&
        requestTexts(request.body.whole, request.format.ownTexts).map((text) => ({ ...text }))
      )
    },
  },
  completion: {
    enumerable: true,
    get() {
      return this[described].output?.completion
    },
  },
  toolCalls: {
    enumerable: true,
    get() {
      return this[described].output?.toolCalls.map((toolCall) => ({ ...toolCall }))
    },
  },
}

/** Operations of which the tokens can be estimated from texts; others have pictures, sounds or searches. */
const textOperations: readonly unknown[] = ['chat', 'embeddings', 'text_completion']

const isPricedByText = ({ outgoing }: ModelCall): boolean =>
  textOperations.includes(outgoing?.format.operation)

/** Says how far the cost is known; undefined if nothing was billed. */
function statusOf(call: ModelCall): CostStatus | 'estimated' | undefined {
  const { cost, estimatedUsage, context } = call
  if (cost !== undefined) {
    if (estimatedUsage !== undefined && !isPricedByText(call)) return 'unknown'
    return estimatedUsage === undefined || cost.status === 'unknown' ? cost.status : 'estimated'
  }
  const status = context.exchange.response?.status ?? 0
  return isBilledCall(call) && status >= 200 && status < 300 ? 'unknown' : undefined
}

/** Called when the exchange is over: ends the call and charges token limits. */
export function finishModelCall(call: ModelCall): ModelDetails {
  const { exchange } = call.context
  describeModelCall(call)
  // Token limits were already charged during the realtime session.
  if (call.route === 'Realtime' && call.details.usage !== undefined) {
    exchange.learned.llm = {
      ...exchange.learned.llm,
      ...tokensOf(call.details.usage),
      costStatus: call.cost?.status,
      cost: costRecord(call.cost),
      costRates: rateRecord(call.cost),
    }
  }
  const isBilled = isBilledCall(call)
  if (isBilled) call.estimatedUsage = estimatedUsage(call, exchange.response?.status)
  const details = modelDetailsOf(call)
  noteMatches(call)
  call.end()
  const usage = call.estimatedUsage ?? call.details.usage
  noteSpend(call, isBilled ? usage : undefined)
  if (isBilled && usage !== undefined) {
    tokenLimitsOf(exchange)?.charge(exchange, inputWithCache(usage) + usage.output)
  }
  return details
}

/** Whether providers bill requests like this one. Nothing is billed that was sent to no provider. */
const isBilledCall = ({ outgoing, stored }: ModelCall): boolean =>
  stored === undefined && outgoing !== undefined && outgoing.format.operation !== 'count_tokens'

/** Estimated bytes of text per token. */
const bytesPerToken = 4

/**
 * Returns the usage that the provider reported and an estimate of what it did not, because it sends no usage or the
 * response was cut off; undefined if nothing is missing. Clients must not evade a limit by disconnecting early.
 */
function estimatedUsage(call: ModelCall, status = 0): Usage | undefined {
  const { details, request, output, uncountedBytes } = call
  const { usage } = details
  const isUnanswered = hasLeft(call)
  const hasResponded = isUnanswered || (status >= 200 && status < 300)
  if (usage !== undefined || !hasResponded || request === undefined) {
    if (uncountedBytes === 0) return undefined
    const known = usage ?? { input: 0, uncachedInput: 0, output: 0 }
    return { ...known, output: known.output + estimate(uncountedBytes) }
  }
  const texts = requestTexts(request.body.whole, request.format.ownTexts)
  const input = estimate(texts.reduce((sum, { content }) => addBytes(sum, content), 0))
  const { completion = [], toolCalls = [] } = output ?? {}
  const whole = request.isStream ? [] : [...completion, ...toolCalls.map((one) => one.arguments)]
  // The provider goes on with a whole answer, and may stop a stream.
  const unseen = isUnanswered && !request.isStream
  const outputTokens = unseen
    ? usualOutput(request.model, outputLimit(request.body.fields))
    : estimate(whole.reduce(addBytes, uncountedBytes))
  return { input, uncachedInput: input, output: outputTokens }
}

/** Whether the client has left after the provider was asked, and before its answer has begun. */
const hasLeft = ({ context: { exchange, attempt } }: ModelCall): boolean =>
  attempt !== undefined &&
  exchange.response === undefined &&
  exchange.error?.code === 'client_closed'

const estimate = (bytes: number): number => Math.ceil(bytes / bytesPerToken)

const addBytes = (sum: number, text: string): number => sum + Buffer.byteLength(text)

function modelDetailsOf(call: ModelCall): ModelDetails {
  const { context, request, details, provider, checks, outgoing } = call
  const batch = call.batch?.results ? call.batch : undefined
  const { exchange, attempt, error } = context
  const costStatus = batch === undefined ? statusOf(call) : batch.cost?.status
  const hasCost = isBilledCall(call) || call.route === 'Realtime'
  const hasFailed = exchange.sentStatus >= 400 || exchange.sentStatus === 0
  const { firstTokenSeconds, perTokenSeconds } = timingOf(call, exchange.startedAt)
  const failure = exchange.error?.code ?? error?.code ?? `${exchange.sentStatus}`
  return {
    operation: request?.format.operation,
    provider: provider?.vendor.systemName,
    requestModel: request?.model,
    responseModel: batch?.model ?? details.model ?? call.answer?.hit?.model,
    usage: batch?.usage ?? details.usage,
    batch,
    serviceTier: batch === undefined ? (details.serviceTier ?? details.usage?.service) : 'batch',
    cost: hasCost && costStatus !== 'unknown' ? call.cost : batch?.cost,
    costStatus,
    catalog: outgoing && call.catalog.digest,
    assumedModel: assumedBy(outgoing?.facts),
    fields: request?.body.fields,
    firstTokenSeconds,
    perTokenSeconds,
    operationSeconds: outgoing && (now() - (attempt?.startedAt ?? 0)) / 1_000,
    failure: hasFailed || exchange.error !== undefined ? failure : undefined,
    checks,
    served: call.selection?.model.name,
    named: call.namedProvider(),
    failedAttempts: failedText(context.failedAttempts),
    skipped: call.skipped?.map(providerName).join(', '),
    answer: call.answer,
    comparison: call.comparison,
  }
}

/** Returns the model whose rules apply to an unknown one; `none` if there are no rules. */
function assumedBy(facts: ModelFacts | undefined): string | undefined {
  if (facts === undefined || facts.basis === 'known') return undefined
  return facts.name === '' ? 'none' : facts.name
}

/** Returns the failed attempts at named providers, such as `first: status 429`. */
function failedText(attempts: RequestContext['failedAttempts']): string | undefined {
  return attempts
    ?.flatMap(({ provider, failure }) => (provider ? [`${provider.name}: ${failure}`] : []))
    .join(', ')
}

type Timing = Pick<ModelDetails, 'firstTokenSeconds' | 'perTokenSeconds'>
const noTiming: Timing = { firstTokenSeconds: undefined, perTokenSeconds: undefined }

function timingOf(
  { firstContentAt, lastContentAt, details }: ModelCall,
  startedAt: number,
): Timing {
  if (firstContentAt === undefined) return noTiming
  const output = details.usage?.output ?? 0
  const streamed = (lastContentAt ?? firstContentAt) - firstContentAt
  return {
    firstTokenSeconds: (firstContentAt - startedAt) / 1_000,
    perTokenSeconds: output > 1 ? streamed / (output - 1) / 1_000 : undefined,
  }
}

/** Returns token counts by their names in expressions; `inputTokens` includes cached tokens. */
function tokensOf(usage: Usage) {
  const { input, output, cacheRead, cacheWrite, reasoning, kinds = {} } = usage
  const inputTokens = inputWithCache(usage)
  return {
    inputTokens: BigInt(inputTokens),
    providerInputTokens: BigInt(input),
    outputTokens: BigInt(output),
    totalTokens: BigInt(inputTokens + output),
    providerTotalTokens: BigInt(input + output),
    ...(cacheRead !== undefined && { cachedInputTokens: BigInt(cacheRead) }),
    ...(cacheWrite !== undefined && { cacheCreationInputTokens: BigInt(cacheWrite) }),
    ...(reasoning !== undefined && { reasoningTokens: BigInt(reasoning) }),
    ...Object.fromEntries(Object.entries(kinds).map(([name, count]) => [name, BigInt(count)])),
  }
}

const integerParameters: ReadonlySet<ParameterName> = new Set(['seed', 'max_tokens', 'dimensions'])

function paramsOf(body: JsonObject | undefined): LearnedRecord | undefined {
  if (body === undefined) return undefined
  const params: Record<string, LearnedValue> = {}
  for (const name of parameterNames) {
    const value = parameterOf(body, name)
    if (value === undefined) continue
    const isWhole = integerParameters.has(name) && Number.isInteger(value)
    params[name] = isWhole ? BigInt(value) : value
  }
  return params
}
