/** The events of streamed responses. */
import {
  detailsOfResponse,
  type EventDetails,
  type ResponseDetails,
  withModelIn,
} from '../../common/response-details.ts'
import { LatestCounts } from '../../common/usage.ts'
import type { EventFormat } from '../../format.ts'
import { objectAt, textsAt } from '../../json/json.ts'
import { addMessagesCalls } from './calls.ts'
import { optInOfMessages, readMessagesEvent } from './event-texts.ts'
import { readMessagesUsage } from './usage.ts'

const types = new Set<unknown>([
  'content_block_delta',
  'content_block_start',
  'message_start',
  'message_delta',
])

/** The name of the only group. */
const whole = ''

export const messagesEvents: EventFormat = {
  isEvent: ({ type }) => types.has(type),
  lastTypes: ['message_stop', 'error'],
  endsWithDone: false,
  isForeignError: ({ type, error }, name) =>
    error != null && (type !== 'error' || name !== 'error'),
  contentOf: (event) => textsAt(objectAt(event, 'delta'), ['text', 'thinking', 'partial_json']),
  details: () => new MessagesEventDetails(),
  withModel: (event, model) => withModelIn(event, 'message', model),
  read: readMessagesEvent,
  optIn: optInOfMessages,
  addCalls: addMessagesCalls,
  repeatsTexts: false,
  losesEmptyParts: true,
  groups: { in: () => [whole], of: () => whole },
}

const none: ResponseDetails = {}
const facts = { readUsage: readMessagesUsage }

/** Reads the details in the events of one stream, which repeat only some of the counts. */
class MessagesEventDetails implements EventDetails {
  readonly #counts = new LatestCounts()

  read(event: unknown): ResponseDetails {
    const message = objectAt(event, 'message')
    const counts = objectAt(message ?? event, 'usage')
    if (counts === undefined)
      return message === undefined ? none : detailsOfResponse(facts, message)
    return detailsOfResponse(facts, { ...message, usage: this.#counts.add(counts) })
  }
}
