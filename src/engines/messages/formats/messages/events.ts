/** The events of streamed responses. */
import type { EventFormat } from '../../format.ts'
import { objectAt, textsAt } from '../../json/json.ts'
import { addMessagesCalls } from './calls.ts'
import { MessagesEventDetails } from './event-details.ts'
import { readMessagesEvent } from './event-texts.ts'

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
  read: readMessagesEvent,
  addCalls: addMessagesCalls,
  repeatsTexts: false,
  losesEmptyParts: true,
  groups: { in: () => [whole], of: () => whole },
}
