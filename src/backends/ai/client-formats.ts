/** What clients may speak: how each format is read, and how answers are written back. */
import type { Answer, AnswerWriter, Chat, ProviderError } from './chat.ts'
import { readCompletionsRequest } from './formats/completions/read-request.ts'
import { writeCompletion, writeCompletionsError } from './formats/completions/response.ts'
import { CompletionsWriter } from './formats/completions/stream.ts'
import { readMessagesRequest } from './formats/messages/read-request.ts'
import { writeMessage, writeMessagesError } from './formats/messages/response.ts'
import { MessagesWriter } from './formats/messages/stream.ts'
import { readResponsesRequest } from './formats/responses/read-request.ts'
import { writeResponse, writeResponsesError } from './formats/responses/response.ts'
import { ResponsesWriter } from './formats/responses/stream.ts'
import { booleanAt, type JsonObject, objectAt } from './json.ts'

/** Route types whose requests are conversations. */
export type ChatFormat = 'Completions' | 'Messages' | 'Responses'

/** What writing an answer needs beside it. */
export interface AnswerContext {
  /** Seconds since the epoch. */
  readonly created: number
  /** A fresh random part for an id. */
  newId(): string
}

interface ClientFormat {
  /** @throws LlmError 400 where the body is no such request. */
  readRequest(body: JsonObject): Chat
  writeAnswer(answer: Answer, context: AnswerContext): JsonObject
  /** `request`: the body as the client sent it. */
  writer(request: JsonObject, context: AnswerContext): AnswerWriter
  writeError(error: ProviderError): JsonObject
}

export const clientFormats: Readonly<Record<ChatFormat, ClientFormat>> = {
  Completions: {
    readRequest: readCompletionsRequest,
    writeAnswer: (answer, { created }) => writeCompletion(answer, created),
    writer(request, { created }) {
      const wantsUsage = booleanAt(objectAt(request, 'stream_options'), 'include_usage') === true
      return new CompletionsWriter(created, wantsUsage)
    },
    writeError: writeCompletionsError,
  },
  Messages: {
    readRequest: readMessagesRequest,
    writeAnswer: writeMessage,
    writer: () => new MessagesWriter(),
    writeError: writeMessagesError,
  },
  Responses: {
    readRequest: readResponsesRequest,
    writeAnswer: (answer, { created, newId }) => writeResponse(answer, created, newId),
    writer: (_, { created, newId }) => new ResponsesWriter(created, newId),
    writeError: writeResponsesError,
  },
}
