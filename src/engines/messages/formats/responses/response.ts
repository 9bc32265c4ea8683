/** Writes whole responses in the responses format. */
import type { MadeImageBlock, ModelResponse, ResponseContext, StopReason } from '../../chat.ts'
import { writeArguments } from '../../common/arguments.ts'
import { annotationOf, type PlacedCitation, placedCitations } from '../../common/citations.ts'
import { compact, field, type JsonObject } from '../../json/json.ts'
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
    status: 'incomplete',
    incomplete_details: { reason: 'content_filter' },
    error: null,
  },
}

export const outcomeOf = (stop: StopReason): Outcome => outcomes[stop]

/** Returns the status of the items of a response with this outcome. */
export const itemStatusOf = ({ status }: Outcome): ItemStatus =>
  status === 'incomplete' ? 'incomplete' : 'completed'

export const textPart = (text: string, citations: readonly PlacedCitation[] = []): JsonObject => ({
  type: 'output_text',
  text,
  annotations: citations.map(writeAnnotation),
  logprobs: [],
})

export const writeAnnotation = (citation: PlacedCitation): JsonObject => ({
  type: 'url_citation',
  ...annotationOf(citation),
})

export function messageItem(
  id: string,
  text: string,
  status: ItemStatus,
  citations: readonly PlacedCitation[] = [],
): JsonObject {
  const content = status === 'in_progress' ? [] : [textPart(text, citations)]
  return { id, type: 'message', status, role: 'assistant', content }
}

/** Returns the message in which the model, or its provider, declines to answer. */
export function refusalItem(id: string, refusal: string, status: ItemStatus): JsonObject {
  const content = status === 'in_progress' ? [] : [{ type: 'refusal', refusal }]
  return { id, type: 'message', status, role: 'assistant', content }
}

/** Returns the id prefix by which clients distinguish calls of functions and of custom tools. */
export const callPrefix = (custom: boolean | undefined): string => (custom === true ? 'ctc' : 'fc')

export interface CallItem {
  readonly id: string
  readonly callId: string
  readonly name: string
  readonly namespace: string | undefined
  /** Arguments as JSON text, or the plain text for a custom tool. */
  readonly args: string
  readonly custom: boolean | undefined
}

export function callItem(call: CallItem, status: ItemStatus): JsonObject {
  const { id, callId, name, namespace, args, custom } = call
  const fields = { status, call_id: callId, name, namespace }
  return custom
    ? compact({ id, type: 'custom_tool_call', ...fields, input: args })
    : compact({ id, type: 'function_call', ...fields, arguments: args })
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

/** Settings of the request that responses repeat, with their values if the client has set none. */
const repeatedSettings: JsonObject = {
  parallel_tool_calls: true,
  tool_choice: 'auto',
  tools: [],
  metadata: {},
  temperature: null,
  top_p: null,
  max_output_tokens: undefined,
  reasoning: undefined,
  text: undefined,
  truncation: undefined,
  user: undefined,
}

const settingsOf = (request: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(repeatedSettings).map(([name, value]) => [name, field(request, name) ?? value]),
  )

/** Returns a response with `stateFields` and with the fields that SDKs require in every state. */
export function responseObject(
  { id, model }: { readonly id: string; readonly model: string },
  { created, request }: ResponseContext,
  stateFields: JsonObject,
): JsonObject {
  return compact({
    id,
    object: 'response',
    created_at: created,
    model,
    ...settingsOf(request),
    // Guards would read those of the request as texts of the model.
    instructions: null,
    ...stateFields,
  })
}

export function writeResponse(response: ModelResponse, context: ResponseContext): JsonObject {
  const { newId } = context
  const { blocks, model, usage } = response
  const textBlocks = blocks.filter((block) => block.type === 'text')
  const text = textBlocks.map((block) => block.text).join('')
  const calls = blocks.flatMap((block) => {
    if (block.type !== 'tool-call') return []
    const { id: callId, name, namespace, input, custom } = block
    const id = `${callPrefix(custom)}_${newId()}`
    const call = { id, callId, name, namespace, args: writeArguments(input), custom }
    return [callItem(call, 'completed')]
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
  const citations = placedCitations(textBlocks)
  const message =
    textBlocks.length === 0 ? [] : [messageItem(`msg_${newId()}`, text, status, citations)]
  const { refusal } = response
  const refused = refusal ? [refusalItem(`msg_${newId()}`, refusal, status)] : []
  const output = [...thoughts, ...message, ...refused, ...images, ...calls]
  const state = { ...outcome, output, usage: writeResponsesUsage(usage) }
  return responseObject({ id: `resp_${newId()}`, model }, context, state)
}
