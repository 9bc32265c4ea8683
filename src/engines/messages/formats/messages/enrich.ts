import { type AddedMessage, textOrList } from '../../common/added-messages.ts'
import { type JsonObject, needList } from '../../json/json.ts'

const isSystem = ({ role }: AddedMessage): boolean => role === 'system'

/** Adds messages; those of the system are a field of their own. */
export function enrichMessages(
  body: JsonObject,
  before: readonly AddedMessage[],
  after: readonly AddedMessage[],
): JsonObject {
  const plain = (messages: readonly AddedMessage[]) =>
    messages.filter((message) => !isSystem(message))
  const messages = [...plain(before), ...needList(body, 'messages'), ...plain(after)]
  const texts = (list: readonly AddedMessage[]) =>
    list.filter(isSystem).map(({ content }) => ({ type: 'text', text: content }))
  const [first, last] = [texts(before), texts(after)]
  if (first.length === 0 && last.length === 0) return { ...body, messages }
  const system = textOrList(body, 'system', (text) => ({ type: 'text', text }))
  return { ...body, system: [...first, ...system, ...last], messages }
}
