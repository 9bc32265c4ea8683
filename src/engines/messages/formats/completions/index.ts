/** Chat completions. */

import type { ChatFormat, ErrorForm, ProviderFormat } from '../../format.ts'
import { isObject, isObjects, needList } from '../../json/json.ts'
import { callsInCompletion } from './calls.ts'
import { asksForUsage, complete, isComplete, withoutUsage } from './completion.ts'
import { completionsEvents } from './events.ts'
import { completionsHistory, maxIdLength } from './history.ts'
import { completionsPlaces } from './places.ts'
import { readCompletionsRequest } from './read-request.ts'
import {
  readCompletion,
  readCompletionsError,
  writeCompletion,
  writeCompletionsError,
} from './response.ts'
import { completionsShape } from './shape.ts'
import { completionsSlots } from './slots.ts'
import { asksForSound, openCompletions, sealCompletions } from './stored.ts'
import { CompletionsReader, CompletionsWriter } from './stream.ts'
import { completionsTexts } from './texts.ts'
import { readCompletionsUsage } from './usage.ts'
import { writeCompletionsRequest } from './write-request.ts'

/** Errors in the APIs of vendor A. */
export const openAiErrors: ErrorForm = {
  name: 'openai',
  read: readCompletionsError,
  write: writeCompletionsError,
  finalCode: 'insufficient_quota',
}

/** Headers of SDKs of vendor A, and of Codex: versions, organization, session, device. */
export const openAiHeaders =
  /^(?:openai-|x-openai-|x-stainless-|x-codex-|x-oai-|chatgpt-|originator$|(?:session|thread|conversation)[-_]id$|x-client-request-id$|version$)/

export const completions: ChatFormat<'Completions'> = {
  name: 'Completions',
  core: 'Completions',
  operation: 'chat',
  endings: ['/chat/completions'],
  errors: openAiErrors,
  vendorHeaders: openAiHeaders,
  readUsage: readCompletionsUsage,
  withMessages: (settings, messages) => ({ ...settings, messages }),
  shape: completionsShape,
  history: completionsHistory,
  stored: {
    members: { any: ['audio', 'modalities'], texts: ['file_id'] },
    open: openCompletions,
    stores: asksForSound,
    seal: sealCompletions,
    sealEvent: sealCompletions,
  },
  textMembers: ['messages'],
  limitMembers: ['max_tokens', 'max_completion_tokens'],
  decidedMembers: ['stream_options'],
  canStream: true,
  completion: { isComplete, complete, hidesUsage: (body) => !asksForUsage(body), withoutUsage },
  responseFields: ['choices'],
  hasResponse: ({ choices }) => isObjects(choices) || isObject(choices),
  readRequest: readCompletionsRequest,
  writeResponse: writeCompletion,
  writer: (context) => new CompletionsWriter(context, asksForUsage(context.request)),
  enrich: (body, before, after) => ({
    ...body,
    messages: [...before, ...needList(body, 'messages'), ...after],
  }),
  places: completionsPlaces,
  texts: completionsTexts,
  slots: completionsSlots,
  callsIn: callsInCompletion,
  events: completionsEvents,
}

export const completionsProvider: ProviderFormat = {
  labels: { maxIdLength, maxNameLength: 64 },
  framing: 'sse',
  writeRequest: writeCompletionsRequest,
  readResponse: readCompletion,
  reader: (known) => new CompletionsReader(known),
  readError: readCompletionsError,
}
