/** Whole answers in the responses format, written for a client. */
import type { Answer, MadeImageBlock, ProviderError, StopReason, Usage } from '../../chat.ts'
import { compact, type JsonObject } from '../../json.ts'
import { writeArguments } from '../arguments.ts'
import { writeCompletionsError } from '../completions/response.ts'
import { reasoningItem } from './reasoning.ts'

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

export function writeResponsesUsage(usage: Usage | undefined): JsonObject | null {
  if (usage === undefined) return null
  const { input, output, cacheRead = 0, reasoning = 0 } = usage
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cacheRead },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  }
}

/** How the whole response ended. */
export function outcomeOf(stop: StopReason): JsonObject & { readonly status: string } {
  switch (stop) {
    case 'length':
      return {
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
        error: null,
      }
    case 'filter':
      return {
        status: 'failed',
        incomplete_details: null,
        error: { code: 'content_filter', message: 'The answer was stopped by a content filter' },
      }
    default:
      return { status: 'completed', incomplete_details: null, error: null }
  }
}

export function messageItem(id: string, text: string, status: ItemStatus): JsonObject {
  const content =
    status === 'in_progress' ? [] : [{ type: 'output_text', text, annotations: [], logprobs: [] }]
  return { id, type: 'message', status, role: 'assistant', content }
}

/** By these, clients tell the kinds of calls apart. */
export const callPrefix = (custom: boolean | undefined): string => (custom === true ? 'ctc' : 'fc')

interface CallItem {
  readonly id: string
  readonly callId: string
  readonly name: string
  /** JSON text, or the plain text of a tool that takes that. */
  readonly args: string
  readonly custom: boolean
}

export function callItem(call: CallItem, status: ItemStatus): JsonObject {
  const { id, callId, name, args, custom } = call
  if (custom) return { id, type: 'custom_tool_call', status, call_id: callId, name, input: args }
  return { id, type: 'function_call', status, call_id: callId, name, arguments: args }
}

/** `image` undefined: it has not come yet. */
export function imageItem(id: string, image: MadeImageBlock | undefined): JsonObject {
  const status = image === undefined ? 'in_progress' : 'completed'
  const output_format = image?.mediaType.replace(/^image\//, '')
  return compact({
    id,
    type: 'image_generation_call',
    status,
    output_format,
    result: image?.data ?? null,
  })
}

/** What every state of a response has; SDKs expect these fields to be there. */
export function responseObject(
  { id, model, created }: { readonly id: string; readonly model: string; readonly created: number },
  more: JsonObject,
): JsonObject {
  return compact({
    id,
    object: 'response',
    created_at: created,
    model,
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    metadata: {},
    instructions: null,
    temperature: null,
    top_p: null,
    ...more,
  })
}

/** `created`: seconds since the epoch. `newId` gives a random part for the ids of items. */
export function writeResponse(answer: Answer, created: number, newId: () => string): JsonObject {
  const texts = answer.blocks.flatMap((block) => (block.type === 'text' ? [block.text] : []))
  const calls = answer.blocks.flatMap((block) =>
    block.type === 'tool-call'
      ? [
          callItem(
            {
              id: `${callPrefix(block.custom)}_${newId()}`,
              callId: block.id,
              name: block.name,
              args: writeArguments(block.input),
              custom: block.custom === true,
            },
            'completed',
          ),
        ]
      : [],
  )
  const images = answer.blocks.flatMap((block) =>
    block.type === 'made-image' ? [imageItem(`ig_${newId()}`, block)] : [],
  )
  const thoughts = answer.blocks.flatMap((block) => {
    if (block.type === 'thinking') return [reasoningItem(`rs_${newId()}`, block.text, block)]
    if (block.type !== 'redacted-thinking') return []
    return [reasoningItem(`rs_${newId()}`, '', { redacted: block.data })]
  })
  const outcome = outcomeOf(answer.stop)
  const status = outcome.status === 'incomplete' ? 'incomplete' : 'completed'
  const message = texts.length === 0 ? [] : [messageItem(`msg_${newId()}`, texts.join(''), status)]
  const head = { id: `resp_${newId()}`, model: answer.model, created }
  return responseObject(head, {
    ...outcome,
    output: [...thoughts, ...message, ...images, ...calls],
    usage: writeResponsesUsage(answer.usage),
  })
}

/** The same shape as in chat completions. */
export function writeResponsesError(error: ProviderError): JsonObject {
  return writeCompletionsError(error)
}
