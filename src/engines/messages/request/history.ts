/**
 * Adapts the history of a conversation that is not translated. Earlier answers may have been
 * translated from another provider, and this provider would reject their ids, thinking and
 * signatures.
 */

import { fittedId } from '../common/tool-labels.ts'
import { continuedTurn } from '../formats/messages/thinking.ts'
import { isOwnReasoning, ownPrefix } from '../formats/responses/reasoning.ts'
import {
  field,
  isObject,
  type JsonObject,
  listAt,
  objectAt,
  stringAt,
  withFields,
} from '../json/json.ts'
import type { RefusalRules, StringCheck } from '../json/members.ts'
import type { ReadRouteType } from '../route-type.ts'

/** Maximum length of call ids. Azure OpenAI still accepts no more than 40 characters. */
const maxIdLengths = { Completions: 40, Messages: 64, Responses: 64 } as const

/** Returns the body with a history that the provider accepts; the same object if nothing changes. */
export function settleHistory(body: JsonObject, route: ReadRouteType): JsonObject {
  switch (route) {
    case 'Completions':
      return withList(body, 'messages', settleCompletionsMessage)
    case 'Responses':
      // If one of these fields is set, the input refers to ids that the provider stores, so it is kept.
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

/** Maps the objects of a list in a field; removes objects for which `map` returns undefined. */
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

function withId(holder: JsonObject, name: string, maxLength: number): JsonObject {
  const id = stringAt(holder, name)
  return id === undefined ? holder : withFields(holder, { [name]: fittedId(id, maxLength) })
}

/** Shortens ids, and removes this gateway's fields for thinking, which the vendor rejects. */
function settleCompletionsMessage(message: JsonObject): JsonObject {
  const maxLength = maxIdLengths.Completions
  const called = withList(message, 'tool_calls', (call) => withId(call, 'id', maxLength))
  const settled = withId(called, 'tool_call_id', maxLength)
  if (settled.thinking_blocks === undefined && settled.reasoning_signature === undefined) {
    return settled
  }
  const { thinking_blocks, reasoning_signature, reasoning_content, ...rest } = settled
  return rest
}

function settleItem(item: JsonObject): JsonObject | undefined {
  return isOwnReasoning(item) ? undefined : withId(item, 'call_id', maxIdLengths.Responses)
}

function settleMessage(message: JsonObject): JsonObject | undefined {
  return unlessEmptied(message, withList(message, 'content', settleBlock))
}

/** Returns the changed message, or undefined if it lost all its content. */
function unlessEmptied(before: JsonObject, after: JsonObject): JsonObject | undefined {
  return after !== before && listAt(after, 'content').length === 0 ? undefined : after
}

function settleBlock(block: JsonObject): JsonObject | undefined {
  switch (block.type) {
    case 'tool_use':
      return withId(block, 'id', maxIdLengths.Messages)
    case 'tool_result':
      return withId(block, 'tool_use_id', maxIdLengths.Messages)
    case 'thinking':
      // Thinking blocks from other providers have an empty signature, so they are dropped.
      return block.signature === '' ? undefined : block
    default:
      return block
  }
}

const thinkingTypes: ReadonlySet<unknown> = new Set(['thinking', 'redacted_thinking'])

const hasResults = (message: unknown): boolean =>
  listAt(message, 'content').some((block) => field(block, 'type') === 'tool_result')

/** Disables thinking if the current turn began without it, because the provider would reject the request. */
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
  return unlessEmptied(message, settled)
}

/** Accepts ids that need not be changed. */
const idCheck =
  (maxLength: number): StringCheck =>
  (bytes, start, end) => {
    if (end - start > maxLength) return false
    const id = bytes.toString('latin1', start, end)
    return fittedId(id, maxLength) === id
  }

/** Refuses reasoning of this gateway, and beginnings with an escape, which may stand for it. */
const isForeignReasoning: StringCheck = (bytes, start, end) => {
  const text = bytes.toString('latin1', start, Math.min(end, start + ownPrefix.length))
  return text !== ownPrefix && !text.includes('\\')
}

const messagesId = idCheck(maxIdLengths.Messages)
const messagesRules: RefusalRules = {
  checked: { id: messagesId, tool_use_id: messagesId },
  refused: ['thinking', 'signature'],
}
const completionsId = idCheck(maxIdLengths.Completions)

/** `settleHistory` does not change bodies that pass these rules. */
export const historyRules: Readonly<Record<ReadRouteType, RefusalRules>> = {
  Completions: {
    checked: { id: completionsId, tool_call_id: completionsId },
    refused: ['thinking_blocks', 'reasoning_signature'],
  },
  Responses: {
    checked: { call_id: idCheck(maxIdLengths.Responses), encrypted_content: isForeignReasoning },
  },
  Messages: messagesRules,
  VendorCTokenCount: messagesRules,
  Embeddings: {},
}
