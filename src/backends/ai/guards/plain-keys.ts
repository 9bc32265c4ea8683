/**
 * Servers in some languages take `Content` for `content`, and the last of both. What such a server
 * would read in place of what guards have seen is refused, and so is what has a shape that guards do
 * not read.
 */
import { isObject, type JsonObject } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import type { ReadRouteType } from '../providers/provider.ts'
import { nestedFields, plainFields, requestFields } from './texts.ts'

/** Fields of messages and parts that guards look at, or decide by. */
const known = new Set<string>(
  [
    nestedFields,
    plainFields,
    ['role', 'refusal', 'type', 'text', 'source', 'data', 'variables'],
  ].flat(),
)
const deepest = 100

/** @throws LlmError 400 */
export function needPlainKeys(body: JsonObject, route: ReadRouteType): void {
  const fields = requestFields[route]
  checkKeys(body, new Set(fields))
  for (const name of fields) if (Object.hasOwn(body, name)) checkContent(body[name], 0)
}

/** A text, a message or part, or a list of them. */
function checkContent(value: unknown, depth: number): void {
  if (depth > deepest) throw new LlmError(400, `contents deeper than ${deepest} cannot be guarded`)
  for (const item of Array.isArray(value) ? value : [value]) {
    if (Array.isArray(item)) throw new LlmError(400, 'lists inside lists cannot be guarded')
    checkObject(item, depth)
  }
}

function checkObject(value: unknown, depth: number): void {
  if (!isObject(value)) return
  checkKeys(value, known)
  if (typeof value.text === 'object' && value.text !== null) {
    throw new LlmError(400, 'text must be a string')
  }
  for (const name of nestedFields) checkContent(value[name], depth + 1)
  checkContent(value.source, depth + 1)
  if (!isObject(value.variables)) return
  for (const variable of Object.values(value.variables)) checkContent(variable, depth + 1)
}

function checkKeys(value: JsonObject, names: ReadonlySet<string>): void {
  for (const key of Object.keys(value)) {
    if (names.has(key)) continue
    // Both ways: there are letters that meet others in one of the two only.
    const plain = key.toUpperCase().toLowerCase()
    if (names.has(plain)) throw new LlmError(400, `the key "${key}" must be ${plain}`)
  }
}
