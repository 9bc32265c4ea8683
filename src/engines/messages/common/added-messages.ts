/** Messages that a policy adds to requests. */
import { field, type JsonObject } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'

export interface AddedMessage {
  readonly role: string
  readonly content: string
}

/** Returns the list in a field; a text stands for a list with one item. @throws LlmError 400 */
export function textOrList(
  body: JsonObject,
  name: string,
  itemOf: (text: string) => object,
): readonly unknown[] {
  const own = field(body, name) ?? []
  if (typeof own === 'string') return [itemOf(own)]
  if (Array.isArray(own)) return own
  throw new LlmError(400, `${name} must be text or an array`)
}
