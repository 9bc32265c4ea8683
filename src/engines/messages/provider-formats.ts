/** Provider formats: functions that write conversations and read answers. */
import type { Answer, AnswerReader, Chat, ProviderError, ProviderFormat } from './chat.ts'
import { ClientToolReader, ClientTools } from './common/client-tools.ts'
import { ToolLabels } from './common/tool-labels.ts'
import { readCompletion, readCompletionsError } from './formats/completions/response.ts'
import { CompletionsReader } from './formats/completions/stream.ts'
import { writeCompletionsRequest } from './formats/completions/write-request.ts'
import { readConverse, readConverseError } from './formats/converse/response.ts'
import { ConverseReader } from './formats/converse/stream.ts'
import { type ConverseOptions, writeConverseRequest } from './formats/converse/write-request.ts'
import {
  GenerateContentReader,
  readGenerateContent,
  readGoogleError,
} from './formats/generate-content/response.ts'
import { writeGenerateContentRequest } from './formats/generate-content/write-request.ts'
import { readMessage, readMessagesError } from './formats/messages/response.ts'
import { MessagesReader } from './formats/messages/stream.ts'
import { writeMessagesRequest } from './formats/messages/write-request.ts'
import type { JsonObject } from './json/json.ts'

/** A request in a provider's format, and the readers for its answer. */
export interface Translation {
  readonly body: JsonObject
  /** How the events of a streamed answer are framed. */
  readonly framing: 'sse' | 'event-stream'
  /** @throws LlmError 502 if the body is not an answer in this format. */
  readAnswer(body: unknown): Answer
  reader(): AnswerReader
  readError(status: number, text: string): ProviderError
}

interface TranslationOptions extends ConverseOptions {
  /** Returns a new random part for an id. */
  newId(): string
}

/** @throws LlmError 400 if the format does not support the conversation. */
export function translate(
  chat: Chat,
  format: ProviderFormat,
  options: TranslationOptions,
): Translation {
  const labels = new ToolLabels(format, chat.tools)
  const tools = new ClientTools(chat.tools, labels)
  const written = write(chat, format, options, labels)
  return {
    ...written,
    readAnswer: (body) => tools.answer(written.readAnswer(body)),
    reader: () => new ClientToolReader(written.reader(), tools),
  }
}

function write(
  chat: Chat,
  format: ProviderFormat,
  options: TranslationOptions,
  labels: ToolLabels,
): Translation {
  const { newId } = options
  switch (format) {
    case 'completions':
      return {
        body: writeCompletionsRequest(chat, labels),
        framing: 'sse',
        readAnswer: readCompletion,
        reader: () => new CompletionsReader(),
        readError: readCompletionsError,
      }
    case 'messages':
      return {
        body: writeMessagesRequest(chat, labels),
        framing: 'sse',
        readAnswer: readMessage,
        reader: () => new MessagesReader(),
        readError: readMessagesError,
      }
    case 'converse': {
      const known = { id: `msg_${newId()}`, model: chat.model }
      return {
        body: writeConverseRequest(chat, options, labels),
        framing: 'event-stream',
        readAnswer: (answer) => readConverse(answer, known),
        reader: () => new ConverseReader(known),
        readError: readConverseError,
      }
    }
    case 'generate-content':
      return {
        body: writeGenerateContentRequest(chat, labels),
        framing: 'sse',
        readAnswer: (answer) => readGenerateContent(answer, chat.model, newId),
        reader: () => new GenerateContentReader(chat.model, newId),
        readError: readGoogleError,
      }
  }
}
