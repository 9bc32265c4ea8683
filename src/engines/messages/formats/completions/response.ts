/** Whole chat completions, read from a provider and written for a client. */
import type {
  Choice,
  Citation,
  MadeImageBlock,
  ModelResponse,
  ProviderError,
  ResponseContext,
  StopReason,
  TextBlock,
  ToolCallBlock,
} from '../../chat.ts'
import { readArguments, writeArguments } from '../../common/arguments.ts'
import {
  annotationOf,
  type PlacedCitation,
  placedCitations,
  quoteOf,
  readAnnotation,
} from '../../common/citations.ts'
import type { KnownOfResponse } from '../../format.ts'
import {
  compact,
  field,
  isObject,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  parseJson,
  stringAt,
} from '../../json/json.ts'
import { LlmError } from '../../llm-error.ts'
import { messageTexts } from './content.ts'
import { writeThinkingBlocks } from './thinking.ts'
import { readCompletionsUsage, writeCompletionsUsage } from './usage.ts'

const finishReasons = {
  end: 'stop',
  length: 'length',
  tool: 'tool_calls',
  filter: 'content_filter',
} as const satisfies Record<StopReason, string>

export const writeFinishReason = (reason: StopReason): string => finishReasons[reason]

const stopReasons = new Map<string | undefined, StopReason>([
  ['length', 'length'],
  ['tool_calls', 'tool'],
  ['function_call', 'tool'],
  ['content_filter', 'filter'],
])

export const readFinishReason = (reason: string | undefined): StopReason =>
  stopReasons.get(reason) ?? 'end'

/** Returns the arguments of a call as text; some servers send the object. */
export function argumentsText(called: unknown): string | undefined {
  const args = field(called, 'arguments')
  return isObject(args) || Array.isArray(args)
    ? JSON.stringify(args)
    : stringAt(called, 'arguments')
}

function readToolCall(call: unknown, newId: () => string): ModelResponse['blocks'] {
  const called = objectAt(call, 'function')
  const name = stringAt(called, 'name')
  if (name === undefined) return []
  const id = stringAt(call, 'id') || `call_${newId()}`
  return [{ type: 'tool-call', id, name, input: readArguments(argumentsText(called)) }]
}

/** Returns why a response ended. Some servers report `stop` whatever they have sent. */
export function settledStop(
  reason: StopReason,
  { refuses, calls }: { readonly refuses: boolean; readonly calls: boolean },
): StopReason {
  if (reason !== 'end') return reason
  if (refuses) return 'filter'
  return calls ? 'tool' : 'end'
}

/** @throws LlmError 502 if the body has no choices. */
export function readCompletion(body: unknown, { model, newId }: KnownOfResponse): ModelResponse {
  const [choice] = listAt(body, 'choices')
  const message = objectAt(choice, 'message')
  if (message === undefined) throw new LlmError(502, 'the response has no choices')
  const { thinking, text, refusal } = messageTexts(message)
  const calls = listAt(message, 'tool_calls').flatMap((call) => readToolCall(call, newId))
  const reason = readFinishReason(stringAt(choice, 'finish_reason'))
  return {
    id: stringAt(body, 'id') || `chatcmpl-${newId()}`,
    model: stringAt(body, 'model') || model,
    blocks: [
      ...(thinking ? [{ type: 'thinking' as const, text: thinking }] : []),
      ...(text ? [textWithSources(text, message)] : []),
      ...calls,
    ],
    stop: settledStop(reason, { refuses: refusal !== '', calls: calls.length > 0 }),
    refusal: refusal || undefined,
    usage: readCompletionsUsage(field(body, 'usage'), stringAt(body, 'service_tier')),
  }
}

/** Returns a text with the sources that a message names, which quote its own text. */
function textWithSources(text: string, message: unknown): TextBlock {
  const citations = annotationsAt(message).map((citation) => ({
    ...citation,
    quote: quoteOf(text, citation.range),
  }))
  return { type: 'text', text, ...(citations.length > 0 && { citations }) }
}

export const annotationsAt = (message: unknown): Citation[] =>
  listAt(message, 'annotations').flatMap(
    (one) => readAnnotation(objectAt(one, 'url_citation')) ?? [],
  )

export const writeAnnotation = (citation: PlacedCitation): JsonObject => ({
  type: 'url_citation',
  url_citation: annotationOf(citation),
})

export function writeCompletion(response: ModelResponse, { created }: ResponseContext): JsonObject {
  const { id, model, others = [], usage } = response
  return compact({
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [response, ...others].map(writeChoice),
    usage: usage && writeCompletionsUsage(usage),
  })
}

function writeCall({ id, name, input, custom }: ToolCallBlock): JsonObject {
  const text = writeArguments(input)
  return custom === true
    ? { id, type: 'custom', custom: { name, input: text } }
    : { id, type: 'function', function: { name, arguments: text } }
}

/** Writes an image in a field that vendor A's format does not have, but that gateways and SDKs share. */
export function writeMadeImage({ mediaType, data }: MadeImageBlock, index: number): JsonObject {
  return { index, type: 'image_url', image_url: { url: `data:${mediaType};base64,${data}` } }
}

function writeChoice({ blocks, stop, refusal = '' }: Choice, index: number): JsonObject {
  const textBlocks = blocks.filter((block) => block.type === 'text')
  const texts = textBlocks.map(({ text }) => text)
  const annotations = placedCitations(textBlocks).map(writeAnnotation)
  const thinking = blocks.findLast((block) => block.type === 'thinking')
  const calls = blocks.flatMap((block) => (block.type === 'tool-call' ? [writeCall(block)] : []))
  const images = blocks.filter((block) => block.type === 'made-image').map(writeMadeImage)
  const message = compact({
    role: 'assistant',
    content: texts.length === 0 ? null : texts.join(''),
    refusal: refusal || null,
    reasoning_content: thinking?.text,
    reasoning_signature: thinking?.signature,
    thinking_blocks: writeThinkingBlocks(blocks),
    annotations: annotations.length === 0 ? undefined : annotations,
    images: images.length === 0 ? undefined : images,
    tool_calls: calls.length === 0 ? undefined : calls,
  })
  return { index, message, logprobs: null, finish_reason: writeFinishReason(stop) }
}

/** Reads `{error: {message, type, code}}`, the format of vendor A and of compatible providers. */
export function readCompletionsError(status: number, text: string): ProviderError {
  const body = parseJson(text)
  const error = objectAt(Array.isArray(body) ? body[0] : body, 'error')
  const message =
    stringAt(error, 'message') ?? stringAt(body, 'error') ?? stringAt(body, 'message') ?? text
  const code = stringAt(error, 'code') ?? stringAt(error, 'status') ?? numberAt(error, 'code')
  return { status, message, kind: stringAt(error, 'type'), code: code?.toString() }
}

const errorTypeByStatus: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
}

function errorTypeOf(status: number): string {
  return errorTypeByStatus[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}

export function writeCompletionsError(error: ProviderError): JsonObject {
  const { status, kind, message } = error
  // Clients tell a limit from a used quota by the code, so it is never null.
  const code = error.code ?? (status === 429 ? 'rate_limit_exceeded' : null)
  return { error: { message, type: kind ?? errorTypeOf(status), param: null, code } }
}
