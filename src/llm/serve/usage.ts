/** What native answers say of themselves, without being converted. */
import type { Usage } from '../chat.ts'
import { readCompletionsUsage } from '../formats/completions/usage.ts'
import { readMessagesUsage } from '../formats/messages/usage.ts'
import { field, numberAt, objectAt, stringAt } from '../json.ts'
import type { ReadRouteType } from '../providers/provider.ts'

/** What is learned of an answer. */
export interface AnswerFacts {
  readonly model?: string
  readonly usage?: Usage
}

function readResponsesUsage(usage: unknown): Usage | undefined {
  const input = numberAt(usage, 'input_tokens')
  const output = numberAt(usage, 'output_tokens')
  if (input === undefined && output === undefined) return undefined
  const cacheRead = numberAt(objectAt(usage, 'input_tokens_details'), 'cached_tokens')
  const reasoning = numberAt(objectAt(usage, 'output_tokens_details'), 'reasoning_tokens')
  return {
    input: input ?? 0,
    uncachedInput: Math.max(0, (input ?? 0) - (cacheRead ?? 0)),
    output: output ?? 0,
    ...(cacheRead !== undefined && { cacheRead }),
    ...(reasoning !== undefined && { reasoning }),
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
  return { ...(model !== undefined && { model }), ...(usage && { usage }) }
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
