/** Client formats: functions that read requests and write answers. */
import type { SpentLimit } from '../../ground/exchange/exchange.ts'
import type { Answer, AnswerContext, AnswerWriter, Chat, ProviderError } from './chat.ts'
import { readCompletionsRequest } from './formats/completions/read-request.ts'
import { writeCompletion, writeCompletionsError } from './formats/completions/response.ts'
import { CompletionsWriter } from './formats/completions/stream.ts'
import { readMessagesRequest } from './formats/messages/read-request.ts'
import { writeMessage, writeMessagesError } from './formats/messages/response.ts'
import { MessagesWriter } from './formats/messages/stream.ts'
import { readResponsesRequest } from './formats/responses/read-request.ts'
import { writeResponse } from './formats/responses/response.ts'
import { ResponsesWriter } from './formats/responses/stream.ts'
import type { JsonObject } from './json/json.ts'
import { asksForUsage } from './request/body.ts'
import type { RouteType } from './route-type.ts'

/** Route types whose requests are conversations. */
export type ChatFormat = 'Completions' | 'Messages' | 'Responses'

interface ClientFormat {
  /** @throws LlmError 400 if the body is not a request in this format. */
  readRequest(body: JsonObject): Chat
  writeAnswer(answer: Answer, context: AnswerContext): JsonObject
  /** Creates the writer of a streamed answer. `request` is the body as the client sent it. */
  writer(request: JsonObject, context: AnswerContext): AnswerWriter
  writeError(error: ProviderError): JsonObject
}

export const clientFormats: Readonly<Record<ChatFormat, ClientFormat>> = {
  Completions: {
    readRequest: readCompletionsRequest,
    writeAnswer: writeCompletion,
    writer: (request, context) => new CompletionsWriter(context, asksForUsage(request)),
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
    writeAnswer: writeResponse,
    writer: (_, context) => new ResponsesWriter(context),
    writeError: writeCompletionsError,
  },
}

const writesMessages = (route: RouteType): boolean =>
  route === 'Messages' || route === 'VendorCTokenCount'

/** Wait after which clients of vendor A's formats should give up instead of repeating the request. */
const longWaitMs = 60_000

/** Like `writeErrorFor`, for a rate limit of the gateway. */
export function writeLimitErrorFor(
  route: RouteType,
  status: number,
  { message, waitMs }: SpentLimit,
): JsonObject {
  if (writesMessages(route) || waitMs <= longWaitMs)
    return writeErrorFor(route, { status, message })
  const code = 'insufficient_quota'
  return writeErrorFor(route, { status, message, kind: code, code })
}

/** An error in the format that clients of a route type understand. */
export function writeErrorFor(route: RouteType, error: ProviderError): JsonObject {
  return clientFormats[writesMessages(route) ? 'Messages' : 'Completions'].writeError(error)
}
