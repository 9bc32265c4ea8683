/** Whole chat completions, read from a provider and written for a client. */
import type {
  Answer,
  Choice,
  MadeImageBlock,
  ProviderError,
  StopReason,
  ToolCallBlock,
} from '../../chat.ts'
import {
  compact,
  field,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  parseJson,
  stringAt,
} from '../../json.ts'
import { LlmError } from '../../llm-error.ts'
import { readArguments, writeArguments } from '../arguments.ts'
import { writeThinkingBlocks } from './thinking.ts'
import { readCompletionsUsage, writeCompletionsUsage } from './usage.ts'

const finishReasons = {
  end: 'stop',
  length: 'length',
  tool: 'tool_calls',
  filter: 'content_filter',
} as const satisfies Record<StopReason, string>

export function writeFinishReason(reason: StopReason): string {
  return finishReasons[reason]
}

export function readFinishReason(reason: string | undefined): StopReason {
  switch (reason) {
    case 'length':
      return 'length'
    case 'tool_calls':
    case 'function_call':
      return 'tool'
    case 'content_filter':
      return 'filter'
    default:
      return 'end'
  }
}

function readToolCall(call: unknown, index: number): Answer['blocks'] {
  const made = objectAt(call, 'function')
  const name = stringAt(made, 'name')
  if (name === undefined) return []
  const id = stringAt(call, 'id') ?? `tool_call_${index}`
  return [{ type: 'tool-call', id, name, input: readArguments(stringAt(made, 'arguments')) }]
}

/** @throws LlmError 502 where there is no answer in it. */
export function readCompletion(body: unknown): Answer {
  const [choice] = listAt(body, 'choices')
  const message = objectAt(choice, 'message')
  if (message === undefined) throw new LlmError(502, 'the answer has no choices')
  const reasoning = stringAt(message, 'reasoning_content')
  const text = stringAt(message, 'content') ?? stringAt(message, 'refusal')
  const usage = readCompletionsUsage(field(body, 'usage'))
  return {
    id: stringAt(body, 'id') ?? '',
    model: stringAt(body, 'model') ?? '',
    blocks: [
      ...(reasoning ? [{ type: 'thinking' as const, text: reasoning }] : []),
      ...(text ? [{ type: 'text' as const, text }] : []),
      ...listAt(message, 'tool_calls').flatMap(readToolCall),
    ],
    stop: readFinishReason(stringAt(choice, 'finish_reason')),
    ...(usage !== undefined && { usage }),
  }
}

/** `created`: seconds since the epoch. */
export function writeCompletion(answer: Answer, created: number): JsonObject {
  const { id, model, others = [], usage } = answer
  return compact({
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [answer, ...others].map(writeChoice),
    usage: usage && writeCompletionsUsage(usage),
  })
}

function writeCall({ id, name, input, custom }: ToolCallBlock): JsonObject {
  const text = writeArguments(input)
  return custom === true
    ? { id, type: 'custom', custom: { name, input: text } }
    : { id, type: 'function', function: { name, arguments: text } }
}

/** No field of vendorA's own: gateways and SDKs agree on this one. */
export function writeMadeImage({ mediaType, data }: MadeImageBlock, index: number): JsonObject {
  return { index, type: 'image_url', image_url: { url: `data:${mediaType};base64,${data}` } }
}

function writeChoice({ blocks, stop }: Choice, index: number): JsonObject {
  const texts = blocks.flatMap((block) => (block.type === 'text' ? [block.text] : []))
  const thinking = blocks.findLast((block) => block.type === 'thinking')
  const calls = blocks.flatMap((block) => (block.type === 'tool-call' ? [writeCall(block)] : []))
  const images = blocks.filter((block) => block.type === 'made-image').map(writeMadeImage)
  const message = compact({
    role: 'assistant',
    content: texts.length === 0 ? null : texts.join(''),
    refusal: null,
    reasoning_content: thinking?.text,
    reasoning_signature: thinking?.signature,
    thinking_blocks: writeThinkingBlocks(blocks),
    images: images.length === 0 ? undefined : images,
    tool_calls: calls.length === 0 ? undefined : calls,
  })
  return { index, message, logprobs: null, finish_reason: writeFinishReason(stop) }
}

/** `{error: {message, type, code}}`, the shape of vendorA and of all that imitate it. */
export function readCompletionsError(status: number, text: string): ProviderError {
  const body = parseJson(text)
  const told = objectAt(Array.isArray(body) ? body[0] : body, 'error')
  const kind = stringAt(told, 'type')
  const code = stringAt(told, 'code') ?? stringAt(told, 'status') ?? numberAt(told, 'code')
  return {
    status,
    message:
      stringAt(told, 'message') ?? stringAt(body, 'error') ?? stringAt(body, 'message') ?? text,
    ...(kind !== undefined && { kind }),
    ...(code !== undefined && { code: String(code) }),
  }
}

const kindsByStatus: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
}

function kindOfStatus(status: number): string {
  return kindsByStatus[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}

export function writeCompletionsError({ status, kind, code, message }: ProviderError): JsonObject {
  return {
    error: { message, type: kind ?? kindOfStatus(status), param: null, code: code ?? null },
  }
}
