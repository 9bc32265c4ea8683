import { type History, idCheck, withId, withList } from '../../common/history.ts'
import { isSealed } from '../../common/thought-signature.ts'
import { field, isObject, type JsonObject, listAt, objectAt, stringAt } from '../../json/json.ts'
import { continuedTurn } from './thinking.ts'

export const maxIdLength = 64

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
      return withId(block, 'id', maxIdLength)
    case 'tool_result':
      return withId(block, 'tool_use_id', maxIdLength)
    case 'thinking':
      // Thinking blocks from other providers have an empty signature, so they are dropped.
      return isUsable(block.signature) ? block : undefined
    default:
      return block
  }
}

/** Signatures of other vendors' thinking are empty, or sealed by this gateway. */
const isUsable = (signature: unknown): boolean =>
  signature !== '' && !(typeof signature === 'string' && isSealed(signature))

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

const id = idCheck(maxIdLength)

export const messagesHistory: History = {
  settle: (body) => settleThinking(withList(body, 'messages', settleMessage)),
  rules: {
    checked: { id, tool_use_id: id },
    refused: ['thinking', 'signature'],
  },
}
