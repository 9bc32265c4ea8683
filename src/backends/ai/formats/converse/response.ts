/** Whole answers of Converse. */
import type { Answer, ProviderError, StopReason, Usage } from '../../chat.ts'
import { field, listAt, numberAt, objectAt, parseJson, stringAt } from '../../json.ts'
import { LlmError } from '../../llm-error.ts'

export function readConverseStop(reason: string | undefined): StopReason {
  switch (reason) {
    case 'max_tokens':
    case 'model_context_window_exceeded':
      return 'length'
    case 'tool_use':
      return 'tool'
    case 'content_filtered':
    case 'guardrail_intervened':
      return 'filter'
    default:
      return 'end'
  }
}

/** Input excludes what a cache gave or took. */
export function readConverseUsage(usage: unknown): Usage | undefined {
  const input = numberAt(usage, 'inputTokens')
  const output = numberAt(usage, 'outputTokens')
  if (input === undefined && output === undefined) return undefined
  const cacheRead = numberAt(usage, 'cacheReadInputTokens')
  const cacheWrite = numberAt(usage, 'cacheWriteInputTokens')
  return {
    input: input ?? 0,
    uncachedInput: input ?? 0,
    output: output ?? 0,
    ...(cacheRead !== undefined && { cacheRead }),
    ...(cacheWrite !== undefined && { cacheWrite }),
  }
}

function readBlock(block: unknown): Answer['blocks'] {
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
  const signature = stringAt(thought, 'signature')
  return [{ type: 'thinking', text: thinking, ...(signature !== undefined && { signature }) }]
}

/**
 * The answer has neither an id nor a model: they come from the request.
 * @throws LlmError 502 where there is no message in it.
 */
export function readConverse(
  body: unknown,
  { id, model }: { readonly id: string; readonly model: string },
): Answer {
  const message = objectAt(objectAt(body, 'output'), 'message')
  if (message === undefined) throw new LlmError(502, 'the answer has no message')
  const usage = readConverseUsage(field(body, 'usage'))
  return {
    id,
    model,
    blocks: listAt(message, 'content').flatMap(readBlock),
    stop: readConverseStop(stringAt(body, 'stopReason')),
    ...(usage !== undefined && { usage }),
  }
}

export function readConverseError(status: number, text: string): ProviderError {
  const body = parseJson(text)
  return { status, message: stringAt(body, 'message') ?? stringAt(body, 'Message') ?? text }
}
