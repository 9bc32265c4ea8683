/** Whole responses in the messages format, read from a provider and written for a client. */
import type {
  ModelResponse,
  ProviderError,
  StopReason,
  TextBlock,
  ToolCallBlock,
} from '../../chat.ts'
import {
  compact,
  field,
  isObject,
  type JsonObject,
  listAt,
  objectAt,
  parseJson,
  stringAt,
} from '../../json/json.ts'
import { LlmError } from '../../llm-error.ts'
import { readCitation, writeCitation } from './citations.ts'
import { readMessagesUsage, writeMessagesUsage } from './usage.ts'

const readReasons = new Map<string | undefined, StopReason>([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool'],
  // A tool of the provider takes longer; the response is not complete.
  ['pause_turn', 'length'],
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

/** Returns the member with the citations of a text; nothing without citations. */
function citationsOf(block: unknown): Pick<TextBlock, 'citations'> {
  const citations = listAt(block, 'citations').flatMap((one) => readCitation(one) ?? [])
  return citations.length === 0 ? {} : { citations }
}

/** Returns why the provider declines to answer, in its own words. */
export const explanationOf = (holder: unknown): string | undefined =>
  stringAt(objectAt(holder, 'stop_details'), 'explanation') || undefined

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
      return text === undefined ? [] : [{ type: 'text', text, ...citationsOf(block) }]
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
    refusal: explanationOf(body),
    usage: readMessagesUsage(field(body, 'usage')),
  }
}

function writeBlock(block: ModelResponse['blocks'][number]): JsonObject {
  switch (block.type) {
    case 'text':
      return compact({
        type: 'text',
        text: block.text,
        citations: block.citations?.map(writeCitation),
      })
    case 'tool-call': {
      const { id, name } = block
      return { type: 'tool_use', id, name, input: neededInput(block) }
    }
    case 'thinking':
      return { type: 'thinking', thinking: block.text, signature: block.signature ?? '' }
    case 'redacted-thinking':
      return { type: 'redacted_thinking', data: block.data }
    case 'made-image':
      throw imageResponse()
  }
}

/** The format has only objects as input; a call without its arguments would be another call. @throws LlmError 502 */
function neededInput({ name, input }: ToolCallBlock): JsonObject {
  if (isObject(input)) return input
  throw new LlmError(
    502,
    `the arguments for the tool ${JSON.stringify(name)} are not a JSON object`,
  )
}

/** Returns the blocks without calls that the limit of tokens has cut off. */
function wholeBlocks({ blocks, stop, refusal }: ModelResponse): ModelResponse['blocks'] {
  const whole = blocks.filter((block) => {
    return stop !== 'length' || block.type !== 'tool-call' || isObject(block.input)
  })
  return whole.length === 0 && refusal ? [{ type: 'text', text: refusal }] : whole
}

/** The messages format has no field for images, and a response without its image would be wrong. */
export const imageResponse = (): LlmError =>
  new LlmError(502, 'the response holds an image, which the Messages format cannot carry')

export function writeMessage(response: ModelResponse): JsonObject {
  const { id, model, stop, stopSequence, usage } = response
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content: wholeBlocks(response).map(writeBlock),
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
