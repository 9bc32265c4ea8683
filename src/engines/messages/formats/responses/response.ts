/** Writes whole responses in the responses format. */
import type { MadeImageBlock, ModelResponse, ResponseContext, StopReason } from '../../chat.ts'
import { writeArguments } from '../../common/arguments.ts'
import { compact, type JsonObject } from '../../json/json.ts'
import { reasoningItem } from './reasoning.ts'
import { writeResponsesUsage } from './usage.ts'

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

interface Outcome extends JsonObject {
  readonly status: string
}

const completed = { status: 'completed', incomplete_details: null, error: null }

/** Status fields of a response, by stop reason. */
const outcomes: Readonly<Record<StopReason, Outcome>> = {
  end: completed,
  tool: completed,
  length: {
    status: 'incomplete',
    incomplete_details: { reason: 'max_output_tokens' },
    error: null,
  },
  filter: {
    status: 'failed',
    incomplete_details: null,
    error: { code: 'content_filter', message: 'The answer was stopped by a content filter' },
  },
}

export const outcomeOf = (stop: StopReason): Outcome => outcomes[stop]

/** Returns the status of the items of a response with this outcome. */
export const itemStatusOf = ({ status }: Outcome): ItemStatus =>
  status === 'incomplete' ? 'incomplete' : 'completed'

export const textPart = (text: string): JsonObject => ({
  type: 'output_text',
  text,
  annotations: [],
  logprobs: [],
})

export function messageItem(id: string, text: string, status: ItemStatus): JsonObject {
  const content = status === 'in_progress' ? [] : [textPart(text)]
  return { id, type: 'message', status, role: 'assistant', content }
}

/** Returns the id prefix by which clients distinguish calls of functions and of custom tools. */
export const callPrefix = (custom: boolean | undefined): string => (custom === true ? 'ctc' : 'fc')

interface CallItem {
  readonly id: string
  readonly callId: string
  readonly name: string
  /** Arguments as JSON text, or the plain text for a custom tool. */
  readonly args: string
  readonly custom: boolean | undefined
}

export function callItem(call: CallItem, status: ItemStatus): JsonObject {
  const { id, callId, name, args, custom } = call
  if (custom) return { id, type: 'custom_tool_call', status, call_id: callId, name, input: args }
  return { id, type: 'function_call', status, call_id: callId, name, arguments: args }
}

/** Returns an item for an image; `image` is undefined until the image arrives. */
export function imageItem(id: string, image: MadeImageBlock | undefined): JsonObject {
  return compact({
    id,
    type: 'image_generation_call',
    status: image === undefined ? 'in_progress' : 'completed',
    output_format: image?.mediaType.replace(/^image\//, ''),
    result: image?.data ?? null,
  })
}

/** Returns a response with `stateFields` and with the fields that SDKs require in every state. */
export function responseObject(
  { id, model, created }: { readonly id: string; readonly model: string; readonly created: number },
  stateFields: JsonObject,
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
    ...stateFields,
  })
}

export function writeResponse(
  response: ModelResponse,
  { created, newId }: ResponseContext,
): JsonObject {
  const { blocks, model, usage } = response
  const texts = blocks.flatMap((block) => (block.type === 'text' ? [block.text] : []))
  const calls = blocks.flatMap((block) => {
    if (block.type !== 'tool-call') return []
    const { id: callId, name, input, custom } = block
    const id = `${callPrefix(custom)}_${newId()}`
    return [callItem({ id, callId, name, args: writeArguments(input), custom }, 'completed')]
  })
  const images = blocks.flatMap((block) =>
    block.type === 'made-image' ? [imageItem(`ig_${newId()}`, block)] : [],
  )
  const thoughts = blocks.flatMap((block) => {
    if (block.type === 'thinking') return [reasoningItem(`rs_${newId()}`, block.text, block)]
    if (block.type !== 'redacted-thinking') return []
    return [reasoningItem(`rs_${newId()}`, '', { redacted: block.data })]
  })
  const outcome = outcomeOf(response.stop)
  const status = itemStatusOf(outcome)
  const message = texts.length === 0 ? [] : [messageItem(`msg_${newId()}`, texts.join(''), status)]
  return responseObject(
    { id: `resp_${newId()}`, model, created },
    {
      ...outcome,
      output: [...thoughts, ...message, ...images, ...calls],
      usage: writeResponsesUsage(usage),
    },
  )
}
