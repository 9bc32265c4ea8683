import {
  detailsOfResponse,
  type EventDetails,
  type ResponseDetails,
} from '../../common/response-details.ts'
import { laterCounts } from '../../common/usage.ts'
import { type JsonObject, objectAt } from '../../json/json.ts'
import { readMessagesUsage } from './usage.ts'

const none: ResponseDetails = {}
const noCounts: JsonObject = {}
const facts = { readUsage: readMessagesUsage }

/** Reads the details in the events of one stream, which repeat only some of the counts. */
export class MessagesEventDetails implements EventDetails {
  /** The latest counts. */
  #counts: JsonObject = noCounts

  read(event: unknown): ResponseDetails {
    const message = objectAt(event, 'message')
    const counts = objectAt(message ?? event, 'usage')
    if (counts === undefined)
      return message === undefined ? none : detailsOfResponse(facts, message)
    this.#counts = laterCounts(this.#counts, counts)
    return detailsOfResponse(facts, { ...message, usage: this.#counts })
  }
}
