/** Whole answers in the messages format, read from a provider and written for a client. */
import type { Answer, ProviderError, StopReason } from '../../chat.ts'
import { field, isObject, type JsonObject, objectAt, parseJson, stringAt } from '../../json.ts'
import { LlmError } from '../../llm-error.ts'
import { readMessagesUsage, writeMessagesUsage } from './usage.ts'

export function readStopReason(reason: string | undefined): StopReason {
  switch (reason) {
    case 'max_tokens':
    case 'model_context_window_exceeded':
      return 'length'
    case 'tool_use':
      return 'tool'
    case 'refusal':
      return 'filter'
    default:
      return 'end'
  }
}

const stopReasons = {
  end: 'end_turn',
  length: 'max_tokens',
  tool: 'tool_use',
  filter: 'refusal',
} as const satisfies Record<StopReason, string>

export function writeStopReason(reason: StopReason, stopSequence?: string): string {
  return reason === 'end' && stopSequence !== undefined ? 'stop_sequence' : stopReasons[reason]
}

function readBlock(block: unknown): Answer['blocks'] {
  const text = stringAt(block, 'text')
  const thinking = stringAt(block, 'thinking')
  const name = stringAt(block, 'name')
  switch (stringAt(block, 'type')) {
    case 'text':
      return text === undefined ? [] : [{ type: 'text', text }]
    case 'tool_use':
      if (name === undefined) return []
      return [
        {
          type: 'tool-call',
          id: stringAt(block, 'id') ?? '',
          name,
          input: field(block, 'input') ?? {},
        },
      ]
    case 'thinking': {
      const signature = stringAt(block, 'signature')
      if (thinking === undefined) return []
      return [{ type: 'thinking', text: thinking, ...(signature && { signature }) }]
    }
    case 'redacted_thinking': {
      const data = stringAt(block, 'data')
      return data === undefined ? [] : [{ type: 'redacted-thinking', data }]
    }
    default:
      return []
  }
}

/** @throws LlmError 502 where it is no message. */
export function readMessage(body: unknown): Answer {
  const content = field(body, 'content')
  if (!Array.isArray(content)) throw new LlmError(502, 'the answer has no content')
  const usage = readMessagesUsage(field(body, 'usage'))
  const stopSequence = stringAt(body, 'stop_sequence')
  return {
    id: stringAt(body, 'id') ?? '',
    model: stringAt(body, 'model') ?? '',
    blocks: content.flatMap(readBlock),
    stop: readStopReason(stringAt(body, 'stop_reason')),
    ...(stopSequence !== undefined && { stopSequence }),
    ...(usage !== undefined && { usage }),
  }
}

function writeBlock(block: Answer['blocks'][number]): JsonObject {
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
      throw imageAnswer()
  }
}

/** Messages have no place for what a model draws: an error is better than an answer without it. */
export function imageAnswer(): LlmError {
  return new LlmError(502, 'the answer holds an image, which the Messages format cannot carry')
}

export function writeMessage({ id, model, blocks, stop, stopSequence, usage }: Answer): JsonObject {
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
  const told = objectAt(body, 'error')
  const kind = stringAt(told, 'type')
  const message =
    stringAt(told, 'message') ?? stringAt(body, 'error') ?? stringAt(body, 'message') ?? text
  return { status, message, ...(kind !== undefined && { kind }) }
}

const kindsByStatus: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

export function writeMessagesError({ status, kind, message }: ProviderError): JsonObject {
  const type = kind ?? kindsByStatus[status] ?? 'api_error'
  return { type: 'error', error: { type, message } }
}
