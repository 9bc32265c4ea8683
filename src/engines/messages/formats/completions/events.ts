/** The events of streamed responses. */

import { detailsIn, withModel } from '../../common/response-details.ts'
import type { EventFormat } from '../../format.ts'
import { isObjects, listAt, numberAt, objectAt, textsAt } from '../../json/json.ts'
import { EventCallIndexes } from './call-indexes.ts'
import { addCompletionsCalls } from './calls.ts'
import { messageTexts } from './content.ts'
import { isFinished } from './ending.ts'
import { optInOfCompletions, readCompletionsEvent } from './event-texts.ts'
import { readCompletionsUsage } from './usage.ts'

/** Each event is a piece of the response. */
const details = detailsIn({ readUsage: readCompletionsUsage }, (event) => event)

export const completionsEvents: EventFormat = {
  isEvent: ({ choices }) => isObjects(choices),
  lastTypes: [],
  isLast: (event) => listAt(event, 'choices').some(isFinished),
  endsWithDone: true,
  correction: () => new EventCallIndexes(),
  isForeignError: ({ type, error }) => type === 'error' && error == null,
  contentOf: (event) => listAt(event, 'choices').flatMap(contentOfChoice),
  details: () => details,
  withModel,
  read: readCompletionsEvent,
  optIn: optInOfCompletions,
  addCalls: addCompletionsCalls,
  repeatsTexts: false,
  losesEmptyParts: false,
  groups: {
    in: (event) => listAt(event, 'choices').map((choice) => `${numberAt(choice, 'index') ?? 0}`),
    of: choiceOf,
  },
}

function contentOfChoice(choice: unknown): string[] {
  const piece = objectAt(choice, 'delta')
  const calls = listAt(piece, 'tool_calls').map((call) => objectAt(call, 'function'))
  const { thinking, text, refusal } = messageTexts(piece)
  return [
    ...[thinking, text, refusal].filter(Boolean),
    ...calls.flatMap((call) => textsAt(call, ['name', 'arguments'])),
  ]
}

/** Names of texts begin with the index of the choice. */
function choiceOf(part: string): string {
  return part.split('/')[0] ?? ''
}
