/** What expressions, the access log and limits learn of a request to a language model. */
import { tokenLimitsOf } from '../../exchange/rate-limits.ts'
import { inputWithCache, type Usage } from '../../llm/chat.ts'
import type { OutgoingRequest } from '../../llm/serve/request.ts'
import type { Walk } from '../walk.ts'

/** Before the request is sent: `llm` of expressions. */
export function describeRequest(
  { exchange, model }: Walk,
  { model: requestModel, isStream }: OutgoingRequest,
): void {
  exchange.learned.llm = {
    requestModel,
    provider: model?.provider?.vendor.systemName,
    streaming: isStream,
  }
}

/** When the exchange is over: what was used is told, and charged to limits of tokens. */
export function finishModelCall({ exchange, model }: Walk): void {
  model?.end()
  // Sessions are charged as they go.
  if (model?.route === 'Realtime' && model.facts.usage !== undefined) {
    exchange.learned.llm = { ...exchange.learned.llm, ...tokensOf(model.facts.usage) }
  }
  if (model?.outgoing === undefined) return
  const { usage, model: responseModel } = model.facts
  const { firstContentAt } = model
  const sinceStart = firstContentAt === undefined ? undefined : firstContentAt - exchange.startedAt
  exchange.learned.llm = {
    ...exchange.learned.llm,
    ...(responseModel !== undefined && { responseModel }),
    ...(usage !== undefined && tokensOf(usage)),
    ...(sinceStart !== undefined && { timeToFirstToken: sinceStart / 1_000 }),
  }
  if (usage === undefined || model.outgoing.route === 'VendorCTokenCount') return
  tokenLimitsOf(exchange)?.charge(exchange, inputWithCache(usage) + usage.output)
}

/** Whole numbers, by the names that expressions have for them; input with what a cache gave. */
function tokensOf(usage: Usage) {
  const { input, output, cacheRead, cacheWrite, reasoning } = usage
  const all = inputWithCache(usage)
  return {
    inputTokens: BigInt(all),
    providerInputTokens: BigInt(input),
    outputTokens: BigInt(output),
    totalTokens: BigInt(all + output),
    ...(cacheRead !== undefined && { cachedInputTokens: BigInt(cacheRead) }),
    ...(cacheWrite !== undefined && { cacheCreationInputTokens: BigInt(cacheWrite) }),
    ...(reasoning !== undefined && { reasoningTokens: BigInt(reasoning) }),
  }
}
