/** Reads whole responses of Converse. */
import type { Citation, ModelResponse, ProviderError, StopReason } from '../../chat.ts'
import { type Ending, endedWithout, stopOfEnding } from '../../common/ending.ts'
import { field, listAt, objectAt, parseJson, stringAt } from '../../json/json.ts'
import { LlmError } from '../../llm-error.ts'
import { readUsageOfConverse } from './usage.ts'

const stopReasons = new Map<string | undefined, StopReason>([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool'],
  ['content_filtered', 'filter'],
  ['guardrail_intervened', 'filter'],
])

/** Reasons with which a response is not complete, whatever came before. */
const failures = new Set(['malformed_model_output', 'malformed_tool_use'])

export const readConverseStop = (reason: string | undefined): Ending =>
  reason !== undefined && failures.has(reason)
    ? endedWithout(reason)
    : (stopReasons.get(reason) ?? 'end')

/** Reads a citation; undefined if its source is not in the web, such as a document of the request. */
export function readCitation(citation: unknown): Citation | undefined {
  const web = objectAt(objectAt(citation, 'location'), 'web')
  const url = stringAt(web, 'url') ?? stringAt(citation, 'source')
  if (url === undefined || !/^https?:/i.test(url)) return undefined
  const quote = listAt(citation, 'sourceContent').map((part) => stringAt(part, 'text') ?? '')
  return { url, title: stringAt(citation, 'title'), quote: quote.join('') }
}

function readBlock(block: unknown): ModelResponse['blocks'] {
  const text = stringAt(block, 'text')
  if (text !== undefined) return [{ type: 'text', text }]
  const cited = objectAt(block, 'citationsContent')
  const parts = listAt(cited, 'content')
  if (parts.length > 0) {
    const joined = parts.map((part) => stringAt(part, 'text') ?? '').join('')
    const citations = listAt(cited, 'citations').flatMap((one) => readCitation(one) ?? [])
    return [{ type: 'text', text: joined, ...(citations.length > 0 && { citations }) }]
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
    stop: stopOfEnding(readConverseStop(stringAt(body, 'stopReason'))),
    usage: readUsageOfConverse(body),
  }
}

export function readConverseError(status: number, text: string): ProviderError {
  const body = parseJson(text)
  return { status, message: stringAt(body, 'message') ?? stringAt(body, 'Message') ?? text }
}
