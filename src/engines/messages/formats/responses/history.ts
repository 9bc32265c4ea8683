import type { StringCheck } from '../../../json/scanner.ts'
import { type History, idCheck, withId, withList } from '../../common/history.ts'
import { field, type JsonObject } from '../../json/json.ts'
import { isOwnReasoning, ownPrefix } from './reasoning.ts'

const maxIdLength = 64

function settleItem(item: JsonObject): JsonObject | undefined {
  return isOwnReasoning(item) ? undefined : withId(item, 'call_id', maxIdLength)
}

/** Refuses reasoning of this gateway, and beginnings with an escape, which may stand for it. */
const isForeignReasoning: StringCheck = (bytes, start, end) => {
  const text = bytes.toString('latin1', start, Math.min(end, start + ownPrefix.length))
  return text !== ownPrefix && !text.includes('\\')
}

export const responsesHistory: History = {
  settle: (body) =>
    // If one of these fields is set, the input refers to ids that the provider stores, so it is kept.
    field(body, 'previous_response_id') == null && field(body, 'conversation') == null
      ? withList(body, 'input', settleItem)
      : body,
  rules: { checked: { call_id: idCheck(maxIdLength), encrypted_content: isForeignReasoning } },
}
