/** Responses of vendor A. */
import { textOrList } from '../../common/added-messages.ts'
import type { ChatFormat, ProviderFormat } from '../../format.ts'
import { openAiErrors, openAiHeaders } from '../completions/index.ts'
import { readCompletionsError } from '../completions/response.ts'
import { callsInResponse } from './calls.ts'
import { responsesEvents } from './events.ts'
import { responsesHistory } from './history.ts'
import { responsesPlaces } from './places.ts'
import { readResponsesRequest } from './read-request.ts'
import { readResponse } from './read-response.ts'
import { ResponsesReader } from './reader.ts'
import { writeResponse } from './response.ts'
import { responsesShape } from './shape.ts'
import { responsesSlots } from './slots.ts'
import { openRequest, referringMembers, sealEvent, sealResponse } from './stored.ts'
import { ResponsesWriter } from './stream.ts'
import { responsesTexts } from './texts.ts'
import { billedCalls, readResponsesCalls, readResponsesUsage } from './usage.ts'
import { writeResponsesRequest } from './write-request.ts'

export const responses: ChatFormat<'Responses'> = {
  name: 'Responses',
  core: 'Responses',
  operation: 'chat',
  endings: ['/responses'],
  errors: openAiErrors,
  vendorHeaders: openAiHeaders,
  readUsage: readResponsesUsage,
  readCalls: readResponsesCalls,
  billedItems: [...billedCalls.keys()],
  withMessages: (settings, messages) => ({ ...settings, input: messages }),
  shape: responsesShape,
  history: responsesHistory,
  stored: {
    members: referringMembers,
    open: openRequest,
    stores: ({ store }) => store !== false,
    seal: sealResponse,
    sealEvent,
  },
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
  writer: (context) => new ResponsesWriter(context),
  enrich(body, before, after) {
    const items = textOrList(body, 'input', (content) => ({ role: 'user', content }))
    return { ...body, input: [...before, ...items, ...after] }
  },
  places: responsesPlaces,
  texts: responsesTexts,
  slots: responsesSlots,
  callsIn: callsInResponse,
  events: responsesEvents,
}

export const responsesProvider: ProviderFormat = {
  labels: { maxIdLength: 64, maxNameLength: 64 },
  framing: 'sse',
  writeRequest: writeResponsesRequest,
  readResponse,
  reader: (known) => new ResponsesReader(known),
  readError: readCompletionsError,
}
