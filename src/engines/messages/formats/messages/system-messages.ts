/** Messages of the system, which are a field of their own. */
import { type AddedMessage, textOrList } from '../../common/added-messages.ts'
import { type JsonObject, needList } from '../../json/json.ts'
import type { RoleText } from '../../mask/slot.ts'

const isOfSystem = ({ role }: RoleText): boolean => role === 'system' || role === 'developer'

/** Returns a request with these settings and messages. */
export function withMessages(settings: JsonObject, messages: readonly RoleText[]): JsonObject {
  const system = messages
    .filter(isOfSystem)
    .map(({ content }) => content)
    .join('\n')
  const conversation = messages.filter((message) => !isOfSystem(message))
  return { ...settings, ...(system !== '' && { system }), messages: conversation }
}

const isAddedToSystem = ({ role }: AddedMessage): boolean => role === 'system'

/** Adds the messages of a policy. */
export function enrichMessages(
  body: JsonObject,
  before: readonly AddedMessage[],
  after: readonly AddedMessage[],
): JsonObject {
  const plain = (messages: readonly AddedMessage[]) =>
    messages.filter((message) => !isAddedToSystem(message))
  const messages = [...plain(before), ...needList(body, 'messages'), ...plain(after)]
  const texts = (list: readonly AddedMessage[]) =>
    list.filter(isAddedToSystem).map(({ content }) => ({ type: 'text', text: content }))
  const [first, last] = [texts(before), texts(after)]
  if (first.length === 0 && last.length === 0) return { ...body, messages }
  const system = textOrList(body, 'system', (text) => ({ type: 'text', text }))
  return { ...body, system: [...first, ...system, ...last], messages }
}
