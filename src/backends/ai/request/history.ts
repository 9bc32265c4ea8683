/**
 * What earlier answers have left in a conversation that goes on in the provider's own format. The
 * gateway may have translated them from another provider: the ids, the thinking and the signatures in
 * them are not of this provider, which would refuse the request.
 */
import { continuedTurn } from '../formats/messages/thinking.ts'
import { isOwnReasoning } from '../formats/responses/reasoning.ts'
import { fittedId } from '../formats/tool-labels.ts'
import { field, isObject, type JsonObject, listAt, objectAt, stringAt } from '../json.ts'
import type { ReadRouteType } from '../providers/provider.ts'

/** Characters that an id of a call may have. Azure OpenAI still takes no more than 40. */
const longestIds = { Completions: 40, Messages: 64, Responses: 64 } as const

/** The body as the provider takes it; the same object if nothing is to be changed. */
export function settleHistory(body: JsonObject, route: ReadRouteType): JsonObject {
  switch (route) {
    case 'Completions':
      return withList(body, 'messages', settleCompletionsMessage)
    case 'Responses':
      // What the provider keeps has its own ids, to which the input refers.
      return field(body, 'previous_response_id') == null && field(body, 'conversation') == null
        ? withList(body, 'input', settleItem)
        : body
    case 'Messages':
    case 'VendorCTokenCount':
      return settleThinking(withList(body, 'messages', settleMessage))
    case 'Embeddings':
      return body
  }
}

/** Maps a list of an object; undefined stands for an element that goes. */
function withList<Holder extends JsonObject>(
  holder: Holder,
  name: string,
  map: (element: JsonObject) => JsonObject | undefined,
): Holder {
  const list = field(holder, name)
  if (!Array.isArray(list)) return holder
  let changed: unknown[] | undefined
  for (const [at, element] of list.entries()) {
    const mapped = isObject(element) ? map(element) : element
    if (mapped !== element && changed === undefined) changed = list.slice(0, at)
    if (mapped !== undefined) changed?.push(mapped)
  }
  return changed === undefined ? holder : { ...holder, [name]: changed }
}

function withId(holder: JsonObject, name: string, longest: number): JsonObject {
  const id = stringAt(holder, name)
  if (id === undefined) return holder
  const fitted = fittedId(id, longest)
  return fitted === id ? holder : { ...holder, [name]: fitted }
}

/** Our extensions for thinking go, which the vendor of the format refuses; those of others stay. */
function settleCompletionsMessage(message: JsonObject): JsonObject {
  const longest = longestIds.Completions
  const called = withList(message, 'tool_calls', (call) => withId(call, 'id', longest))
  const settled = withId(called, 'tool_call_id', longest)
  if (settled.thinking_blocks === undefined && settled.reasoning_signature === undefined) {
    return settled
  }
  const { thinking_blocks, reasoning_signature, reasoning_content, ...rest } = settled
  return rest
}

function settleItem(item: JsonObject): JsonObject | undefined {
  return isOwnReasoning(item) ? undefined : withId(item, 'call_id', longestIds.Responses)
}

function settleMessage(message: JsonObject): JsonObject | undefined {
  const settled = withList(message, 'content', settleBlock)
  if (settled === message) return message
  return listAt(settled, 'content').length === 0 ? undefined : settled
}

function settleBlock(block: JsonObject): JsonObject | undefined {
  switch (block.type) {
    case 'tool_use':
      return withId(block, 'id', longestIds.Messages)
    case 'tool_result':
      return withId(block, 'tool_use_id', longestIds.Messages)
    case 'thinking':
      // Other providers sign nothing.
      return block.signature === '' ? undefined : block
    default:
      return block
  }
}

const thinkingTypes: ReadonlySet<unknown> = new Set(['thinking', 'redacted_thinking'])

const hasResults = (message: unknown): boolean =>
  listAt(message, 'content').some((block) => field(block, 'type') === 'tool_result')

/** Thinking is refused in a turn that another provider has begun without. */
function settleThinking(body: JsonObject): JsonObject {
  if (stringAt(objectAt(body, 'thinking'), 'type') !== 'enabled') return body
  const messages = listAt(body, 'messages').filter(isObject)
  const first = continuedTurn(
    messages.map((message) => ({ role: message.role, message })),
    ({ message }) => hasResults(message),
  )
  if (first === undefined) return body
  const [block] = listAt(first.message, 'content')
  if (thinkingTypes.has(field(block, 'type'))) return body
  const { thinking: _thinking, ...rest } = body
  return withList(rest, 'messages', withoutThinking)
}

function withoutThinking(message: JsonObject): JsonObject | undefined {
  const settled = withList(message, 'content', (block) =>
    thinkingTypes.has(block.type) ? undefined : block,
  )
  if (settled === message) return message
  return listAt(settled, 'content').length === 0 ? undefined : settled
}
