/** What expressions, access log, spans, metrics and limits learn of a request to a language model. */

import type { LearnedRecord } from '../../../exchange/learned.ts'
import { tokenLimitsOf } from '../../../exchange/rate-limits.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { now } from '../../../proxy/upstream/choose.ts'
import { inputWithCache, type Usage } from '../chat.ts'
import { requestTexts } from '../guards/slots.ts'
import { type JsonObject, numberAt, stringAt } from '../json.ts'
import type { Said } from '../serve/said.ts'
import { type ModelCall, operationOf } from './model-call.ts'
import type { ModelFacts, ModelParameters } from './model-record.ts'

/** `llm` of expressions, as far as it is known when they ask. */
export function describeModelCall({ exchange }: RequestContext, call: ModelCall): void {
  if (call.asked === undefined || call.isDescribed) return
  call.isDescribed = true
  const { startedAt, learned } = exchange
  learned.describeLlm(() => recordOf(call, startedAt))
}

function recordOf(call: ModelCall, startedAt: number): LearnedRecord {
  const { facts, asked } = call
  const timing = timingOf(call, startedAt)
  const record: LearnedRecord = {
    requestModel: asked?.model,
    provider: call.provider?.vendor.systemName,
    streaming: asked?.isStream,
    ...(facts.model !== undefined && { responseModel: facts.model }),
    ...(facts.usage !== undefined && tokensOf(facts.usage)),
    ...(facts.serviceTier !== undefined && { serviceTier: facts.serviceTier }),
    ...(facts.countTokens !== undefined && { countTokens: BigInt(facts.countTokens) }),
    ...(timing.firstTokenSeconds !== undefined && { timeToFirstToken: timing.firstTokenSeconds }),
    ...(timing.perTokenSeconds !== undefined && { timePerOutputToken: timing.perTokenSeconds }),
    // Made only where an expression asks for them.
    get params() {
      return paramsOf(asked?.body)
    },
    get prompt() {
      return (
        asked &&
        requestTexts(asked.body, asked.route).map(({ role, content }) => ({ role, content }))
      )
    },
    get completion() {
      return call.said?.completion
    },
    get toolCalls() {
      return call.said?.toolCalls.map((said) => ({ ...said }))
    },
  }
  return record
}

/** When the exchange is over: what was used is told, and charged to limits of tokens. */
export function finishModelCall(context: RequestContext, call: ModelCall): ModelFacts {
  const { exchange } = context
  describeModelCall(context, call)
  // Sessions are charged as they go.
  if (call.route === 'Realtime' && call.facts.usage !== undefined) {
    exchange.learned.llm = { ...exchange.learned.llm, ...tokensOf(call.facts.usage) }
  }
  const facts = modelFactsOf(context, call)
  call.end()
  if (call.outgoing === undefined || call.outgoing.route === 'VendorCTokenCount') return facts
  const limits = tokenLimitsOf(exchange)
  const used = limits === undefined ? 0 : usedTokens(call, exchange.response?.status)
  if (used > 0) limits?.charge(exchange, used)
  return facts
}

/** Bytes of text that make a token, where nobody has counted them. */
const bytesPerToken = 4

/**
 * Tokens of a request as the provider has told them. Where it has not - it never does, or the client
 * or the provider went away before the end - what was asked and said since is estimated: nobody
 * passes a limit by hanging up early.
 */
function usedTokens({ facts, asked, said, uncountedBytes }: ModelCall, status = 0): number {
  const { usage } = facts
  const told = usage === undefined ? 0 : inputWithCache(usage) + usage.output
  const hasAnswered = status >= 200 && status < 300
  if (usage !== undefined || !hasAnswered || asked === undefined) {
    return told + estimate(uncountedBytes)
  }
  const texts = requestTexts(asked.body, asked.route).map(({ content }) => content)
  const whole = asked.isStream ? [] : [...(said?.completion ?? []), ...argumentsOf(said)]
  return estimate([...texts, ...whole].reduce(addBytes, uncountedBytes))
}

const estimate = (bytes: number): number => Math.ceil(bytes / bytesPerToken)

const addBytes = (sum: number, text: string): number => sum + Buffer.byteLength(text)

const argumentsOf = (said: Said | undefined): string[] =>
  (said?.toolCalls ?? []).map((call) => call.arguments)

function modelFactsOf(
  { exchange, attemptStartedAt, error }: RequestContext,
  call: ModelCall,
): ModelFacts {
  const { asked, facts, provider, checks, outgoing } = call
  const hasFailed = exchange.sentStatus >= 400 || exchange.sentStatus === 0
  const failure = exchange.error?.code ?? error?.code ?? `${exchange.sentStatus}`
  return {
    operation: asked && operationOf(asked.route),
    provider: provider?.vendor.systemName,
    requestModel: asked?.model,
    responseModel: facts.model,
    usage: facts.usage,
    parameters: asked && once(() => parametersOf(asked.body)),
    ...timingOf(call, exchange.startedAt),
    operationSeconds: outgoing && (now() - attemptStartedAt) / 1_000,
    failure: hasFailed || exchange.error !== undefined ? failure : undefined,
    checks,
  }
}

function timingOf(
  { firstContentAt, lastContentAt, facts }: ModelCall,
  startedAt: number,
): Pick<ModelFacts, 'firstTokenSeconds' | 'perTokenSeconds'> {
  if (firstContentAt === undefined) return {}
  const output = facts.usage?.output ?? 0
  const streamed = (lastContentAt ?? firstContentAt) - firstContentAt
  return {
    firstTokenSeconds: (firstContentAt - startedAt) / 1_000,
    ...(output > 1 && { perTokenSeconds: streamed / (output - 1) / 1_000 }),
  }
}

/** Whole numbers, by the names that expressions have for them; input with what a cache gave. */
function tokensOf(usage: Usage) {
  const { input, output, cacheRead, cacheWrite, reasoning, kinds = {} } = usage
  const all = inputWithCache(usage)
  return {
    inputTokens: BigInt(all),
    providerInputTokens: BigInt(input),
    outputTokens: BigInt(output),
    totalTokens: BigInt(all + output),
    ...(cacheRead !== undefined && { cachedInputTokens: BigInt(cacheRead) }),
    ...(cacheWrite !== undefined && { cacheCreationInputTokens: BigInt(cacheWrite) }),
    ...(reasoning !== undefined && { reasoningTokens: BigInt(reasoning) }),
    ...Object.fromEntries(Object.entries(kinds).map(([name, count]) => [name, BigInt(count)])),
  }
}

function once<Value>(make: () => Value): () => Value {
  let made: Value | undefined
  return () => {
    made ??= make()
    return made
  }
}

/** Of the request, under the names that chat completions have for them. */
function parametersOf(body: JsonObject): ModelParameters {
  return {
    temperature: numberAt(body, 'temperature'),
    top_p: numberAt(body, 'top_p'),
    frequency_penalty: numberAt(body, 'frequency_penalty'),
    presence_penalty: numberAt(body, 'presence_penalty'),
    seed: numberAt(body, 'seed'),
    max_tokens:
      numberAt(body, 'max_tokens') ??
      numberAt(body, 'max_completion_tokens') ??
      numberAt(body, 'max_output_tokens'),
    encoding_format: stringAt(body, 'encoding_format'),
    dimensions: numberAt(body, 'dimensions'),
  }
}

const wholeParameters = new Set(['seed', 'max_tokens', 'dimensions'])

function paramsOf(body: JsonObject | undefined): LearnedRecord | undefined {
  if (body === undefined) return undefined
  const found = Object.entries(parametersOf(body)).filter(([, value]) => value !== undefined)
  return Object.fromEntries(
    found.map(([name, value]) => {
      const isWhole = wholeParameters.has(name) && Number.isInteger(value)
      return [name, isWhole ? BigInt(value as number) : (value as number | string)]
    }),
  )
}
