/** Adds messages of a policy to a request, in the client's format. */
import type { ChatFormat } from '../client-formats.ts'
import { field, type JsonObject, needList } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'

interface Message {
  readonly role: string
  readonly content: string
}

export interface Enrichment {
  readonly prepend?: readonly Message[]
  readonly append?: readonly Message[]
}

const lowered = ({ role, content }: Message) => ({ role: role.toLowerCase(), content })
const isSystem = ({ role }: Message): boolean => role === 'system'

/** Returns the list in a field; a text stands for a list with one item. @throws LlmError 400 */
function textOrList(
  body: JsonObject,
  name: string,
  itemOf: (text: string) => object,
): readonly unknown[] {
  const own = field(body, name) ?? []
  if (typeof own === 'string') return [itemOf(own)]
  if (Array.isArray(own)) return own
  throw new LlmError(400, `${name} must be text or an array`)
}

function enrichMessages(body: JsonObject, before: Message[], after: Message[]): JsonObject {
  const plain = (messages: Message[]) => messages.filter((message) => !isSystem(message))
  const messages = [...plain(before), ...needList(body, 'messages'), ...plain(after)]
  const texts = (list: Message[]) =>
    list.filter(isSystem).map(({ content }) => ({ type: 'text', text: content }))
  const [first, last] = [texts(before), texts(after)]
  if (first.length === 0 && last.length === 0) return { ...body, messages }
  const system = textOrList(body, 'system', (text) => ({ type: 'text', text }))
  return { ...body, system: [...first, ...system, ...last], messages }
}

/** Returns the body with the policy's messages; the same object if there are none. */
export function enrich(
  body: JsonObject,
  format: ChatFormat,
  { prepend = [], append = [] }: Enrichment,
): JsonObject {
  if (prepend.length === 0 && append.length === 0) return body
  const before = prepend.map(lowered)
  const after = append.map(lowered)
  switch (format) {
    case 'Completions':
      return { ...body, messages: [...before, ...needList(body, 'messages'), ...after] }
    case 'Messages':
      return enrichMessages(body, before, after)
    case 'Responses': {
      const items = textOrList(body, 'input', (content) => ({ role: 'user', content }))
      return { ...body, input: [...before, ...items, ...after] }
    }
  }
}
