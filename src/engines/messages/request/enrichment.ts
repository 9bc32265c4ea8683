/** Adds messages of a policy to a request, in the client's format. */
import type { AddedMessage } from '../common/added-messages.ts'
import type { ChatFormat } from '../format.ts'
import type { JsonObject } from '../json/json.ts'

export interface Enrichment {
  readonly prepend?: readonly AddedMessage[]
  readonly append?: readonly AddedMessage[]
}

const lowered = ({ role, content }: AddedMessage) => ({ role: role.toLowerCase(), content })

/** Returns the body with the policy's messages; the same object if there are none. */
export function enrich(
  body: JsonObject,
  format: ChatFormat,
  { prepend = [], append = [] }: Enrichment,
): JsonObject {
  if (prepend.length === 0 && append.length === 0) return body
  return format.enrich(body, prepend.map(lowered), append.map(lowered))
}
