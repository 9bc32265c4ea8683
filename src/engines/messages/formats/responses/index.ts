/** Responses of vendor A. */
import { textOrList } from '../../common/added-messages.ts'
import type { ChatFormat } from '../../format.ts'
import { openAiErrors } from '../completions/index.ts'
import { callsInResponse } from './calls.ts'
import { responsesEvents } from './events.ts'
import { responsesHistory } from './history.ts'
import { readResponsesRequest } from './read-request.ts'
import { writeResponse } from './response.ts'
import { responsesShape } from './shape.ts'
import { responsesSlots } from './slots.ts'
import { ResponsesWriter } from './stream.ts'
import { responsesTexts } from './texts.ts'
import { readResponsesUsage } from './usage.ts'

export const responses: ChatFormat<'Responses'> = {
  name: 'Responses',
  core: 'Responses',
  operation: 'chat',
  ending: '/responses',
  errors: openAiErrors,
  readUsage: readResponsesUsage,
  withMessages: (settings, messages) => ({ ...settings, input: messages }),
  shape: responsesShape,
  history: responsesHistory,
  textMembers: ['instructions', 'prompt', 'input'],
  limitMembers: ['max_output_tokens'],
  decidedMembers: ['background'],
  problemOf: ({ prompt }) => (typeof prompt === 'string' ? 'prompt must be an object' : undefined),
  canStream: true,
  hasBackground: true,
  responseFields: ['output'],
  hasResponse: ({ output }) => Array.isArray(output),
  readRequest: readResponsesRequest,
  writeResponse,
  writer: (_, context) => new ResponsesWriter(context),
  enrich(body, before, after) {
    const items = textOrList(body, 'input', (content) => ({ role: 'user', content }))
    return { ...body, input: [...before, ...items, ...after] }
  },
  texts: responsesTexts,
  slots: responsesSlots,
  callsIn: callsInResponse,
  events: responsesEvents,
}
