/** Reads whole responses of Converse. */
import type { ModelResponse, ProviderError, StopReason } from '../../chat.ts'
import { field, listAt, objectAt, parseJson, stringAt } from '../../json/json.ts'
import { LlmError } from '../../llm-error.ts'
import { readConverseUsage } from './usage.ts'

const stopReasons = new Map<string | undefined, StopReason>([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool'],
  ['content_filtered', 'filter'],
  ['guardrail_intervened', 'filter'],
])

export const readConverseStop = (reason: string | undefined): StopReason =>
  stopReasons.get(reason) ?? 'end'

function readBlock(block: unknown): ModelResponse['blocks'] {
  const text = stringAt(block, 'text')
  if (text !== undefined) return [{ type: 'text', text }]
  const cited = listAt(objectAt(block, 'citationsContent'), 'content')
  if (cited.length > 0) {
    return [{ type: 'text', text: cited.map((part) => stringAt(part, 'text') ?? '').join('') }]
  }
  const call = objectAt(block, 'toolUse')
  if (call !== undefined) {
    const name = stringAt(call, 'name') ?? ''
    const input = field(call, 'input') ?? {}
    return [{ type: 'tool-call', id: stringAt(call, 'toolUseId') ?? '', name, input }]
  }
  const reasoning = objectAt(block, 'reasoningContent')
  const data = stringAt(reasoning, 'redactedContent')
  if (data !== undefined) return [{ type: 'redacted-thinking', data }]
  const thought = objectAt(reasoning, 'reasoningText')
  const thinking = stringAt(thought, 'text')
  if (thinking === undefined) return []
  return [{ type: 'thinking', text: thinking, signature: stringAt(thought, 'signature') }]
}

/**
 * Reads a response. The format has neither an id nor a model, so the caller passes both.
 * @throws LlmError 502 if the body has no message.
 */
export function readConverse(
  body: unknown,
  { id, model }: Pick<ModelResponse, 'id' | 'model'>,
): ModelResponse {
  const message = objectAt(objectAt(body, 'output'), 'message')
  if (message === undefined) throw new LlmError(502, 'the response has no message')
  return {
    id,
    model,
    blocks: listAt(message, 'content').flatMap(readBlock),
    stop: readConverseStop(stringAt(body, 'stopReason')),
    usage: readConverseUsage(field(body, 'usage')),
  }
}

export function readConverseError(status: number, text: string): ProviderError {
  const body = parseJson(text)
  return { status, message: stringAt(body, 'message') ?? stringAt(body, 'Message') ?? text }
}
