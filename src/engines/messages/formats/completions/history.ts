import { type History, idCheck, withId, withList } from '../../common/history.ts'
import type { JsonObject } from '../../json/json.ts'

/** Maximum length of call ids. Azure OpenAI still accepts no more than 40 characters. */
export const maxIdLength = 40

/** Shortens ids, and removes this gateway's fields for thinking, which the vendor rejects. */
function settleMessage(message: JsonObject): JsonObject {
  const called = withList(message, 'tool_calls', (call) => withId(call, 'id', maxIdLength))
  const settled = withId(called, 'tool_call_id', maxIdLength)
  if (settled.thinking_blocks === undefined && settled.reasoning_signature === undefined) {
    return settled
  }
  const { thinking_blocks, reasoning_signature, reasoning_content, ...rest } = settled
  return rest
}

const id = idCheck(maxIdLength)

export const completionsHistory: History = {
  settle: (body) => withList(body, 'messages', settleMessage),
  rules: {
    checked: { id, tool_call_id: id },
    refused: ['thinking_blocks', 'reasoning_signature'],
  },
}
