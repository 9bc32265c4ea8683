/** Reads usage and other details from answers that are not translated. */
import type { Usage } from '../chat.ts'
import { readCompletionsUsage, readMessagesUsage, readResponsesUsage } from '../formats/usage.ts'
import { field, numberAt, objectAt, stringAt } from '../json.ts'
import type { ReadRouteType } from '../providers/provider.ts'

/** Details of an answer, as far as they are known. */
export interface AnswerDetails {
  readonly model?: string
  readonly usage?: Usage
  /** The price tier, such as `default`. */
  readonly serviceTier?: string
  /** The result of a token count. */
  readonly countTokens?: number
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

/** Reads the details in a whole answer in the client's format. */
export function detailsOfAnswer(route: ReadRouteType, body: unknown): AnswerDetails {
  const details: { -readonly [Name in keyof AnswerDetails]: AnswerDetails[Name] } = {}
  const model = stringAt(body, 'model')
  const usage = readUsage(route, field(body, 'usage'))
  const serviceTier =
    stringAt(body, 'service_tier') ?? stringAt(objectAt(body, 'usage'), 'service_tier')
  const countTokens = route === 'VendorCTokenCount' ? numberAt(body, 'input_tokens') : undefined
  if (model !== undefined) details.model = model
  if (usage !== undefined) details.usage = usage
  if (serviceTier !== undefined) details.serviceTier = serviceTier
  if (countTokens !== undefined) details.countTokens = countTokens
  return details
}

/** Reads the details in one event of a stream in the client's format. */
export function detailsOfEvent(route: ReadRouteType, event: unknown): AnswerDetails {
  switch (route) {
    case 'Messages': {
      const message = objectAt(event, 'message') ?? { usage: field(event, 'usage') }
      return detailsOfAnswer(route, message)
    }
    case 'Responses':
      return detailsOfAnswer(route, objectAt(event, 'response'))
    default:
      return detailsOfAnswer(route, event)
  }
}
