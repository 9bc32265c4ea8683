/** Reads usage and other details from answers that are not translated. */
import type { Usage } from '../chat.ts'
import {
  countAt,
  laterCounts,
  readCompletionsUsage,
  readMessagesUsage,
  readResponsesUsage,
} from '../common/usage.ts'
import { field, type JsonObject, objectAt, stringAt } from '../json/json.ts'
import type { ReadRouteType } from '../route-type.ts'

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
  const countTokens = route === 'VendorCTokenCount' ? countAt(body, 'input_tokens') : undefined
  if (model !== undefined) details.model = model
  if (usage !== undefined) details.usage = usage
  if (serviceTier !== undefined) details.serviceTier = serviceTier
  if (countTokens !== undefined) details.countTokens = countTokens
  return details
}

/** Reads the details in the events of one stream in the client's format. */
export class EventDetails {
  readonly #route: ReadRouteType
  /** The latest counts of a stream of Messages, whose events repeat only some of them. */
  #counts: JsonObject = noCounts

  constructor(route: ReadRouteType) {
    this.#route = route
  }

  read(event: unknown): AnswerDetails {
    const route = this.#route
    switch (route) {
      case 'Messages': {
        const message = objectAt(event, 'message')
        const counts = objectAt(message ?? event, 'usage')
        if (counts === undefined)
          return message === undefined ? none : detailsOfAnswer(route, message)
        this.#counts = laterCounts(this.#counts, counts)
        return detailsOfAnswer(route, { ...message, usage: this.#counts })
      }
      case 'Responses':
        return detailsOfAnswer(route, objectAt(event, 'response'))
      default:
        return detailsOfAnswer(route, event)
    }
  }
}

const none: AnswerDetails = {}
const noCounts: JsonObject = {}
