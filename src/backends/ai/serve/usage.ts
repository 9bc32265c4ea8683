/** What native answers say of themselves, without being converted. */
import type { Usage } from '../chat.ts'
import { kindsOf, readCompletionsUsage } from '../formats/completions/usage.ts'
import { readMessagesUsage } from '../formats/messages/usage.ts'
import { field, numberAt, objectAt, stringAt } from '../json.ts'
import type { ReadRouteType } from '../providers/provider.ts'

/** What is learned of an answer. */
export interface AnswerFacts {
  readonly model?: string
  readonly usage?: Usage
  /** Of the provider's price list, such as `default`. */
  readonly serviceTier?: string
  /** What a token count has counted. */
  readonly countTokens?: number
}

function readResponsesUsage(usage: unknown): Usage | undefined {
  const input = numberAt(usage, 'input_tokens')
  const output = numberAt(usage, 'output_tokens')
  if (input === undefined && output === undefined) return undefined
  const inputDetails = objectAt(usage, 'input_tokens_details')
  const outputDetails = objectAt(usage, 'output_tokens_details')
  const cacheRead = numberAt(inputDetails, 'cached_tokens')
  const reasoning = numberAt(outputDetails, 'reasoning_tokens')
  return {
    input: input ?? 0,
    uncachedInput: Math.max(0, (input ?? 0) - (cacheRead ?? 0)),
    output: output ?? 0,
    ...(cacheRead !== undefined && { cacheRead }),
    ...(reasoning !== undefined && { reasoning }),
    ...kindsOf(inputDetails, outputDetails),
  }
}

function readUsage(route: ReadRouteType, usage: unknown): Usage | undefined {
  switch (route) {
    case 'Messages':
      return readMessagesUsage(usage)
    case 'Responses':
      return readResponsesUsage(usage)
    default:
      return readCompletionsUsage(usage)
  }
}

/** Of a whole answer in the client's own format. */
export function factsOfAnswer(route: ReadRouteType, body: unknown): AnswerFacts {
  const model = stringAt(body, 'model')
  const usage = readUsage(route, field(body, 'usage'))
  const serviceTier =
    stringAt(body, 'service_tier') ?? stringAt(objectAt(body, 'usage'), 'service_tier')
  const countTokens = route === 'VendorCTokenCount' ? numberAt(body, 'input_tokens') : undefined
  return {
    ...(model !== undefined && { model }),
    ...(usage && { usage }),
    ...(serviceTier !== undefined && { serviceTier }),
    ...(countTokens !== undefined && { countTokens }),
  }
}

/** Of one event of a stream in the client's own format; what an event does not say is absent. */
export function factsOfEvent(route: ReadRouteType, event: unknown): AnswerFacts {
  switch (route) {
    case 'Messages':
      return messagesFacts(event)
    case 'Responses':
      return factsOfAnswer(route, objectAt(event, 'response'))
    default:
      return factsOfAnswer(route, event)
  }
}

function messagesFacts(event: unknown): AnswerFacts {
  const message = objectAt(event, 'message')
  return factsOfAnswer('Messages', message ?? { usage: field(event, 'usage') })
}
