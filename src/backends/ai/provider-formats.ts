/** What providers speak: how a conversation is written for each, and how answers are read. */
import type { Answer, AnswerReader, Chat, ProviderError, ProviderFormat } from './chat.ts'

export type { ProviderFormat } from './chat.ts'

import { ClientToolReader, ClientTools } from './formats/client-tools.ts'
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
import { ToolLabels } from './formats/tool-labels.ts'
import type { JsonObject } from './json.ts'

/** How the pieces of a streamed answer are framed. */
type Framing = 'sse' | 'event-stream'

/** A request in a provider's format, with what is needed to read its answer. */
export interface Translation {
  readonly body: JsonObject
  readonly framing: Framing
  /** @throws LlmError 502 where it is no such answer. */
  readAnswer(body: unknown): Answer
  reader(): AnswerReader
  readError(status: number, text: string): ProviderError
}

interface TranslationOptions extends ConverseOptions {
  /** A fresh random part for an id. */
  newId(): string
}

/** @throws LlmError 400 where the provider cannot take the conversation. */
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
