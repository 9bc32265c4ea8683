/** JSON Schemas of the arguments of tools. */
import { field, isObject, type JsonObject } from '../json.ts'

/**
 * The schema of a tool's arguments, which are an object whatever else is said of them: providers
 * refuse schemas that do not say so, and clients may leave it out.
 */
export function toolSchema(schema: unknown): JsonObject {
  if (!isObject(schema)) return { type: 'object', properties: {} }
  if (field(schema, 'type') !== undefined) return schema
  return field(schema, 'properties') === undefined
    ? { type: 'object', properties: {}, ...schema }
    : { type: 'object', ...schema }
}
