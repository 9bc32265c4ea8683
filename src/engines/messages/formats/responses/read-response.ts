/** Reads whole responses in the responses format. */
import type { Citation, ModelResponse, TextBlock } from '../../chat.ts'
import { readArguments } from '../../common/arguments.ts'
import { readAnnotation } from '../../common/citations.ts'
import { type Ending, endedWithout, stopOfEnding } from '../../common/ending.ts'
import { sealReasoning } from '../../common/thought-signature.ts'
import type { KnownOfResponse } from '../../format.ts'
import { field, listAt, objectAt, stringAt } from '../../json/json.ts'
import { LlmError } from '../../llm-error.ts'
import { readUsageOfResponse } from './usage.ts'

/** Returns the signature of a reasoning item, with which it can be sent back; undefined if it has none. */
export function signatureOfItem(item: unknown): string | undefined {
  const encrypted = stringAt(item, 'encrypted_content')
  return encrypted === undefined ? undefined : sealReasoning(stringAt(item, 'id') ?? '', encrypted)
}

export const sourceOf = (annotation: unknown): Citation[] =>
  stringAt(annotation, 'type') === 'url_citation' ? [readAnnotation(annotation) ?? []].flat() : []

export function textBlocks(item: unknown): TextBlock[] {
  return listAt(item, 'content').flatMap((part): TextBlock[] => {
    const text = stringAt(part, 'type') === 'output_text' ? stringAt(part, 'text') : undefined
    if (text === undefined) return []
    const citations = listAt(part, 'annotations').flatMap(sourceOf)
    return [{ type: 'text', text, ...(citations.length > 0 && { citations }) }]
  })
}

function readItem(item: unknown): ModelResponse['blocks'] {
  const name = stringAt(item, 'name')
  switch (stringAt(item, 'type')) {
    case 'message':
      return textBlocks(item)
    case 'reasoning': {
      const texts = listAt(item, 'summary').map((part) => stringAt(part, 'text') ?? '')
      return [{ type: 'thinking', text: texts.join('\n\n'), signature: signatureOfItem(item) }]
    }
    case 'function_call': {
      const id = stringAt(item, 'call_id') ?? ''
      const input = readArguments(stringAt(item, 'arguments'))
      return name === undefined ? [] : [{ type: 'tool-call', id, name, input }]
    }
    default:
      return []
  }
}

export function refusalIn(output: readonly unknown[]): string | undefined {
  const parts = output.flatMap((item) => listAt(item, 'content'))
  const refusals = parts.map((part) => stringAt(part, 'refusal') ?? '')
  return refusals.join('') || undefined
}

/** Returns why a response ended. */
export function endingOf(
  body: unknown,
  { refuses, calls }: { readonly refuses: boolean; readonly calls: boolean },
): Ending {
  const status = stringAt(body, 'status')
  if (status === 'failed' || status === 'cancelled') {
    const message = stringAt(objectAt(body, 'error'), 'message')
    return message === undefined ? endedWithout(status) : new LlmError(502, message)
  }
  if (status === 'incomplete') {
    const reason = stringAt(objectAt(body, 'incomplete_details'), 'reason')
    return reason === 'content_filter' ? 'filter' : 'length'
  }
  if (refuses) return 'filter'
  return calls ? 'tool' : 'end'
}

/** @throws LlmError 502 if the body has no output, or if it reports a failure. */
export function readResponse(body: unknown, { model, newId }: KnownOfResponse): ModelResponse {
  const output = field(body, 'output')
  if (!Array.isArray(output)) throw new LlmError(502, 'the response has no output')
  const blocks = output.flatMap(readItem)
  const refusal = refusalIn(output)
  const calls = blocks.some(({ type }) => type === 'tool-call')
  return {
    id: stringAt(body, 'id') || `resp_${newId()}`,
    model: stringAt(body, 'model') || model,
    blocks,
    stop: stopOfEnding(endingOf(body, { refuses: refusal !== undefined, calls })),
    refusal,
    usage: readUsageOfResponse(body),
  }
}
