/** Messages that a policy puts before and after those of every request, in the client's format. */
import type { ChatFormat } from '../client-formats.ts'
import { field, type JsonObject, listAt } from '../json.ts'

export interface Message {
  readonly role: string
  readonly content: string
}

export interface Enrichment {
  readonly prepend?: readonly Message[]
  readonly append?: readonly Message[]
}

const lowered = ({ role, content }: Message) => ({ role: role.toLowerCase(), content })
const isSystem = ({ role }: Message): boolean => role === 'system'

function enrichMessages(body: JsonObject, before: Message[], after: Message[]): JsonObject {
  const plain = (messages: Message[]) => messages.filter((message) => !isSystem(message))
  const messages = [...plain(before), ...listAt(body, 'messages'), ...plain(after)]
  const texts = (list: Message[]) =>
    list.filter(isSystem).map(({ content }) => ({ type: 'text', text: content }))
  const [first, last] = [texts(before), texts(after)]
  if (first.length === 0 && last.length === 0) return { ...body, messages }
  const own = field(body, 'system')
  const system = typeof own === 'string' ? [{ type: 'text', text: own }] : listAt(body, 'system')
  return { ...body, system: [...first, ...system, ...last], messages }
}

function enrichInput(body: JsonObject, before: Message[], after: Message[]): JsonObject {
  const own = field(body, 'input')
  const items = typeof own === 'string' ? [{ role: 'user', content: own }] : listAt(body, 'input')
  return { ...body, input: [...before, ...items, ...after] }
}

/** The body with the policy's messages; the same object where there are none. */
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
      return { ...body, messages: [...before, ...listAt(body, 'messages'), ...after] }
    case 'Messages':
      return enrichMessages(body, before, after)
    case 'Responses':
      return enrichInput(body, before, after)
  }
}
