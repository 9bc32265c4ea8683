/** Messages of vendor C, and their token counts. */

import { countAt } from '../../common/usage.ts'
import type { ChatFormat, ErrorForm, OtherFormat, ProviderFormat } from '../../format.ts'
import { responseSlot } from '../../mask/slot.ts'
import { callsInMessage } from './calls.ts'
import { messagesEvents } from './events.ts'
import { maxIdLength, messagesHistory } from './history.ts'
import { messagesPlaces } from './places.ts'
import { readMessagesRequest } from './read-request.ts'
import { readMessage, readMessagesError, writeMessage, writeMessagesError } from './response.ts'
import { messagesShape } from './shape.ts'
import { isPlainType, mayMakeFiles, openMessages, sealMessages } from './stored.ts'
import { MessagesReader, MessagesWriter } from './stream.ts'
import { enrichMessages, withMessages } from './system-messages.ts'
import { messagesTexts } from './texts.ts'
import { readMessagesUsage } from './usage.ts'
import { writeMessagesRequest } from './write-request.ts'

/** Errors in the API of vendor C. */
export const anthropicErrors: ErrorForm = {
  name: 'anthropic',
  read: readMessagesError,
  write: writeMessagesError,
}

/** Headers of SDKs of vendor C, and of Claude Code: versions, beta features, session. */
const anthropicHeaders = /^(?:anthropic-|x-stainless-|x-claude-|x-app$|x-client-request-id$)/

/** Requests of both formats are the same. */
const requests = {
  errors: anthropicErrors,
  vendorHeaders: anthropicHeaders,
  shape: messagesShape,
  history: messagesHistory,
  stored: {
    members: { any: ['container'], texts: ['file_id'], checked: { type: isPlainType } },
    open: openMessages,
    stores: mayMakeFiles,
    seal: sealMessages,
    sealEvent: sealMessages,
  },
  textMembers: ['messages', 'system'],
  limitMembers: ['max_tokens'],
  decidedMembers: ['top_k'],
  withMessages,
  canStream: true,
}

export const messages: ChatFormat<'Messages'> = {
  ...requests,
  name: 'Messages',
  core: 'Messages',
  operation: 'chat',
  endings: ['/v1/messages'],
  readUsage: readMessagesUsage,
  readRequest: readMessagesRequest,
  writeResponse: writeMessage,
  writer: () => new MessagesWriter(),
  responseFields: ['content'],
  hasResponse: ({ content }) => Array.isArray(content) || typeof content === 'string',
  enrich: enrichMessages,
  places: messagesPlaces,
  texts: messagesTexts,
  slots: { messages: (body, scope) => [responseSlot(body, 'content', undefined, scope)] },
  callsIn: callsInMessage,
  events: messagesEvents,
}

export const tokenCount: OtherFormat<'VendorCTokenCount'> = {
  ...requests,
  name: 'VendorCTokenCount',
  core: 'VendorCTokenCount',
  operation: 'count_tokens',
  endings: ['/messages/count_tokens'],
  readUsage: () => undefined,
  responseFields: ['input_tokens'],
  hasResponse: (body) => typeof body.input_tokens === 'number',
  readCount: (body) => countAt(body, 'input_tokens'),
  count: {
    readRequest: readMessagesRequest,
    writeResponse: (tokens) => ({ input_tokens: tokens }),
  },
}

export const messagesProvider: ProviderFormat = {
  labels: { maxIdLength, maxNameLength: 128 },
  framing: 'sse',
  writeRequest: writeMessagesRequest,
  readResponse: readMessage,
  reader: () => new MessagesReader(),
  readError: readMessagesError,
}
