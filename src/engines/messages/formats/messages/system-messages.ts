import type { JsonObject } from '../../json/json.ts'
import type { RoleText } from '../../mask/slot.ts'

const isSystem = ({ role }: RoleText): boolean => role === 'system' || role === 'developer'

/** Returns a request with these settings and messages; those of the system are a field of their own. */
export function withMessages(settings: JsonObject, messages: readonly RoleText[]): JsonObject {
  const system = messages
    .filter(isSystem)
    .map(({ content }) => content)
    .join('\n')
  const conversation = messages.filter((message) => !isSystem(message))
  return { ...settings, ...(system !== '' && { system }), messages: conversation }
}
