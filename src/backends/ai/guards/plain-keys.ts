/**
 * Rejects requests in which a provider could read texts that guards do not see: some servers accept
 * `Content` for `content`, and some requests nest texts in ways that guards do not read.
 */
import { isObject, type JsonObject } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import type { ReadRouteType } from '../providers/provider.ts'
import { nestedFields, plainFields, requestFields } from './texts.ts'

/** Fields of messages and parts that guards read. */
const guardedFields = new Set<string>(
  [
    nestedFields,
    plainFields,
    ['role', 'refusal', 'type', 'text', 'source', 'data', 'variables'],
  ].flat(),
)
const maxDepth = 100

/** @throws LlmError 400 if a text may be hidden from guards. */
export function needPlainKeys(body: JsonObject, route: ReadRouteType): void {
  const fields = requestFields[route]
  checkKeys(body, new Set(fields))
  for (const name of fields) if (Object.hasOwn(body, name)) checkContent(body[name], 0)
}

/** Checks a text, a message, a part, or a list of them. */
function checkContent(value: unknown, depth: number): void {
  if (depth > maxDepth)
    throw new LlmError(400, `contents deeper than ${maxDepth} cannot be guarded`)
  for (const item of Array.isArray(value) ? value : [value]) {
    if (Array.isArray(item)) throw new LlmError(400, 'lists inside lists cannot be guarded')
    checkObject(item, depth)
  }
}

function checkObject(value: unknown, depth: number): void {
  if (!isObject(value)) return
  checkKeys(value, guardedFields)
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
    // Both conversions are needed: some letters become ASCII letters in only one of the two cases.
    const plain = key.toUpperCase().toLowerCase()
    if (names.has(plain)) throw new LlmError(400, `the key "${key}" must be ${plain}`)
  }
}
