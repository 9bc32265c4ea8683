/** Whole responses in the messages format, read from a provider and written for a client. */
import type { ModelResponse, ProviderError, StopReason } from '../../chat.ts'
import { field, isObject, type JsonObject, objectAt, parseJson, stringAt } from '../../json/json.ts'
import { LlmError } from '../../llm-error.ts'
import { readMessagesUsage, writeMessagesUsage } from './usage.ts'

const readReasons = new Map<string | undefined, StopReason>([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool'],
  ['refusal', 'filter'],
])

export const readStopReason = (reason: string | undefined): StopReason =>
  readReasons.get(reason) ?? 'end'

const writtenReasons = {
  end: 'end_turn',
  length: 'max_tokens',
  tool: 'tool_use',
  filter: 'refusal',
} as const satisfies Record<StopReason, string>

export function writeStopReason(reason: StopReason, stopSequence?: string): string {
  return reason === 'end' && stopSequence !== undefined ? 'stop_sequence' : writtenReasons[reason]
}

function readBlock(block: unknown): ModelResponse['blocks'] {
  const text = stringAt(block, 'text')
  const thinking = stringAt(block, 'thinking')
  const signature = stringAt(block, 'signature') || undefined
  const data = stringAt(block, 'data')
  const id = stringAt(block, 'id') ?? ''
  const name = stringAt(block, 'name')
  const input = field(block, 'input') ?? {}
  switch (stringAt(block, 'type')) {
    case 'text':
      return text === undefined ? [] : [{ type: 'text', text }]
    case 'tool_use':
      return name === undefined ? [] : [{ type: 'tool-call', id, name, input }]
    case 'thinking':
      return thinking === undefined ? [] : [{ type: 'thinking', text: thinking, signature }]
    case 'redacted_thinking':
      return data === undefined ? [] : [{ type: 'redacted-thinking', data }]
    default:
      return []
  }
}

/** @throws LlmError 502 if the body has no content. */
export function readMessage(body: unknown): ModelResponse {
  const content = field(body, 'content')
  if (!Array.isArray(content)) throw new LlmError(502, 'the response has no content')
  return {
    id: stringAt(body, 'id') ?? '',
    model: stringAt(body, 'model') ?? '',
    blocks: content.flatMap(readBlock),
    stop: readStopReason(stringAt(body, 'stop_reason')),
    stopSequence: stringAt(body, 'stop_sequence'),
    usage: readMessagesUsage(field(body, 'usage')),
  }
}

function writeBlock(block: ModelResponse['blocks'][number]): JsonObject {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'tool-call': {
      const { id, name, input } = block
      return { type: 'tool_use', id, name, input: isObject(input) ? input : {} }
    }
    case 'thinking':
      return { type: 'thinking', thinking: block.text, signature: block.signature ?? '' }
    case 'redacted-thinking':
      return { type: 'redacted_thinking', data: block.data }
    case 'made-image':
      throw imageResponse()
  }
}

/** The messages format has no field for images, and a response without its image would be wrong. */
export const imageResponse = (): LlmError =>
  new LlmError(502, 'the response holds an image, which the Messages format cannot carry')

export function writeMessage({
  id,
  model,
  blocks,
  stop,
  stopSequence,
  usage,
}: ModelResponse): JsonObject {
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content: blocks.map(writeBlock),
    stop_reason: writeStopReason(stop, stopSequence),
    stop_sequence: stopSequence ?? null,
    usage: writeMessagesUsage(usage),
  }
}

export function readMessagesError(status: number, text: string): ProviderError {
  const body = parseJson(text)
  const error = objectAt(body, 'error')
  const message =
    stringAt(error, 'message') ?? stringAt(body, 'error') ?? stringAt(body, 'message') ?? text
  return { status, message, kind: stringAt(error, 'type') }
}

const errorTypeByStatus: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

export function writeMessagesError({ status, kind, message }: ProviderError): JsonObject {
  const type = kind ?? errorTypeByStatus[status] ?? 'api_error'
  return { type: 'error', error: { type, message } }
}
