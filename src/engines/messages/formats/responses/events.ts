/** The events of streamed responses. */

import { detailsIn, withModelIn } from '../../common/response-details.ts'
import type { EventFormat } from '../../format.ts'
import { objectAt, stringAt, textsAt } from '../../json/json.ts'
import { addResponsesCalls } from './calls.ts'
import { optInOfResponses, readResponsesEvent } from './event-texts.ts'
import { readResponsesCalls, readResponsesUsage } from './usage.ts'

const facts = { readUsage: readResponsesUsage, readCalls: readResponsesCalls }
const details = detailsIn(facts, (event) => objectAt(event, 'response'))

export const responsesEvents: EventFormat = {
  isEvent(event) {
    const type = stringAt(event, 'type')
    return type === undefined
      ? objectAt(event, 'response') !== undefined
      : /^response\../.test(type)
  },
  lastTypes: ['error', 'response.completed', 'response.incomplete', 'response.failed'],
  endsWithDone: false,
  isForeignError: (event) => event.error != null && stringAt(event, 'type') === undefined,
  contentOf: (event) =>
    stringAt(event, 'type')?.endsWith('.delta') === true ? textsAt(event, ['delta']) : [],
  details: () => details,
  withModel: (event, model) => withModelIn(event, 'response', model),
  read: readResponsesEvent,
  optIn: optInOfResponses,
  addCalls: addResponsesCalls,
  repeatsTexts: true,
  losesEmptyParts: false,
  // Names of texts begin with the index of the item.
  groups: { in: () => [], of: (part) => part.split('/')[0] ?? '' },
}
