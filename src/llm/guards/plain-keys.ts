/**
 * Servers in some languages take `Content` for `content`, and the last of both. What such a server
 * would read in place of what guards have seen is refused.
 */
import { isObject, type JsonObject, listAt } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import type { ReadRouteType } from '../providers/provider.ts'
import { requestFields } from './texts.ts'

const ofMessages = ['role', 'content', 'output', 'refusal']
const ofParts = ['type', 'text', 'content', 'refusal']

/** @throws LlmError 400 */
export function needPlainKeys(body: JsonObject, route: ReadRouteType): void {
  checkKeys(body, requestFields[route])
  for (const name of ['messages', 'input']) {
    for (const message of listAt(body, name)) {
      checkKeys(message, ofMessages)
      for (const part of listAt(message, 'content')) checkKeys(part, ofParts)
    }
  }
}

function checkKeys(value: unknown, names: readonly string[]): void {
  if (!isObject(value)) return
  for (const key of Object.keys(value)) {
    if (names.includes(key)) continue
    // Both ways: there are letters that meet others in one of the two only.
    const plain = key.toUpperCase().toLowerCase()
    if (names.includes(plain)) throw new LlmError(400, `the key "${key}" must be ${plain}`)
  }
}
