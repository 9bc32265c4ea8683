/** Converts vendor D's own form of schemas to JSON Schema: types in capitals, `nullable`, counts as texts. */
import { isObject, type JsonObject } from '../../json/json.ts'

/** Counts, which the form has as texts, because they are 64-bit integers. */
const counts: ReadonlySet<string> = new Set([
  ...['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'],
])

export function plainSchema(schema: unknown): JsonObject {
  return isObject(schema) ? convert(schema) : {}
}

function convert({ nullable, propertyOrdering: _order, ...schema }: JsonObject): JsonObject {
  const written: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(schema)) written[name] = convertMember(name, value)
  if (nullable !== true) return written
  if (typeof written.type === 'string') written.type = [written.type, 'null']
  if (Array.isArray(written.anyOf)) written.anyOf = [...written.anyOf, { type: 'null' }]
  if (Array.isArray(written.enum)) written.enum = [...written.enum, null]
  return written
}

function convertMember(name: string, value: unknown): unknown {
  if (name === 'type') return typeof value === 'string' ? value.toLowerCase() : value
  if (counts.has(name) && typeof value === 'string') return Number(value)
  if (name === 'properties' || name === '$defs' || name === 'defs') {
    if (!isObject(value)) return value
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plainSchema(one)]))
  }
  if (name === 'items' || name === 'additionalProperties') {
    return isObject(value) ? convert(value) : value
  }
  return name === 'anyOf' && Array.isArray(value) ? value.map(plainSchema) : value
}
