/** Translates requests to the formats of providers. */
import { familyCatalog } from '../catalog/catalog.ts'
import type { ModelFacts } from '../catalog/facts.ts'
import type { Chat, ModelResponse, ProviderError, ResponseEventReader } from '../chat.ts'
import { ClientToolReader, ClientTools } from '../common/client-tools.ts'
import { settleParameters } from '../common/effort.ts'
import { pairCalls } from '../common/paired-calls.ts'
import { ToolLabels } from '../common/tool-labels.ts'
import type { KnownOfResponse, ProviderFormat } from '../format.ts'
import type { ConverseOptions } from '../formats/converse/options.ts'
import type { JsonObject } from '../json/json.ts'

/** A request in a provider's format, and the readers for its response. */
export interface Translation {
  readonly body: JsonObject
  readonly framing: ProviderFormat['framing']
  /** @throws LlmError 502 if the body is not a response in this format. */
  readResponse(body: unknown): ModelResponse
  reader(): ResponseEventReader
  readError(status: number, text: string): ProviderError
}

interface TranslationOptions extends ConverseOptions, Pick<KnownOfResponse, 'newId'> {
  /** What is known of the model; the rules that ship with the release if omitted. */
  readonly facts?: ModelFacts
}

/** @throws LlmError 400 if the format does not support the conversation. */
export function translate(
  asked: Chat,
  format: ProviderFormat,
  { facts = familyCatalog.find(asked.model, ''), ...options }: TranslationOptions,
): Translation {
  const chat = settleParameters(pairCalls(asked), facts)
  const labels = new ToolLabels(format.labels, chat.tools)
  const tools = new ClientTools(chat.tools, labels)
  const known = { model: chat.model, newId: options.newId }
  return {
    body: format.writeRequest(chat, labels, { ...options, facts }),
    framing: format.framing,
    readResponse: (body) => tools.clientResponse(format.readResponse(body, known)),
    reader: () => new ClientToolReader(format.reader(known), tools),
    readError: format.readError,
  }
}
