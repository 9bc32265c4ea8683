/** Details of a request to a language model for expressions, logs, spans, metrics and limits. */

import { inputWithCache, type Usage } from '../../../../engines/messages/chat.ts'
import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import { requestTexts } from '../../../../engines/messages/mask/slots.ts'
import {
  type ParameterName,
  parameterNames,
  parameterOf,
} from '../../../../engines/messages/request/parameters.ts'
import type { LearnedRecord, LearnedValue } from '../../../../ground/exchange/learned.ts'
import { tokenLimitsOf } from '../../../../ground/exchange/rate-limits.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { now } from '../../../proxy/upstream/endpoint.ts'
import { noteMatches } from './guard-checks.ts'
import type { ModelCall } from './model-call.ts'
import { providerName } from './model-providers.ts'
import type { ModelDetails } from './model-record.ts'

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
  prompt: {
    enumerable: true,
    get() {
      const { request } = this[described]
      return request && requestTexts(request.body.whole).map((text) => ({ ...text }))
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

/** Called when the exchange is over: ends the call and charges token limits. */
export function finishModelCall(call: ModelCall): ModelDetails {
  const { exchange } = call.context
  describeModelCall(call)
  // Token limits were already charged during the realtime session.
  if (call.route === 'Realtime' && call.details.usage !== undefined) {
    exchange.learned.llm = { ...exchange.learned.llm, ...tokensOf(call.details.usage) }
  }
  const details = modelDetailsOf(call)
  noteMatches(call)
  call.end()
  if (call.outgoing === undefined || call.outgoing.format.operation === 'count_tokens')
    return details
  const limits = tokenLimitsOf(exchange)
  const used = limits === undefined ? 0 : usedTokens(call, exchange.response?.status)
  if (used > 0) limits?.charge(exchange, used)
  return details
}

/** Estimated bytes of text per token. */
const bytesPerToken = 4

/**
 * Returns the tokens that the provider reported. If a report is missing, because the provider sends none or
 * the response was cut off, the texts since the last report are estimated, so that clients cannot
 * evade a limit by disconnecting early.
 */
function usedTokens({ details, request, output, uncountedBytes }: ModelCall, status = 0): number {
  const { usage } = details
  const reported = usage === undefined ? 0 : inputWithCache(usage) + usage.output
  const hasResponded = status >= 200 && status < 300
  if (usage !== undefined || !hasResponded || request === undefined) {
    return reported + estimate(uncountedBytes)
  }
  const texts = requestTexts(request.body.whole).map(({ content }) => content)
  const { completion = [], toolCalls = [] } = output ?? {}
  const whole = request.isStream ? [] : [...completion, ...toolCalls.map((call) => call.arguments)]
  return estimate([...texts, ...whole].reduce(addBytes, uncountedBytes))
}

const estimate = (bytes: number): number => Math.ceil(bytes / bytesPerToken)

const addBytes = (sum: number, text: string): number => sum + Buffer.byteLength(text)

function modelDetailsOf(call: ModelCall): ModelDetails {
  const { context, request, details, provider, checks, outgoing } = call
  const { exchange, attempt, error } = context
  const hasFailed = exchange.sentStatus >= 400 || exchange.sentStatus === 0
  const { firstTokenSeconds, perTokenSeconds } = timingOf(call, exchange.startedAt)
  const failure = exchange.error?.code ?? error?.code ?? `${exchange.sentStatus}`
  return {
    operation: request?.format.operation,
    provider: provider?.vendor.systemName,
    requestModel: request?.model,
    responseModel: details.model,
    usage: details.usage,
    fields: request?.body.fields,
    firstTokenSeconds,
    perTokenSeconds,
    operationSeconds: outgoing && (now() - (attempt?.startedAt ?? 0)) / 1_000,
    failure: hasFailed || exchange.error !== undefined ? failure : undefined,
    checks,
    named: call.namedProvider(),
    failedAttempts: failedText(context.failedAttempts),
    skipped: call.skipped?.map(providerName).join(', '),
  }
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
