/**
 * Reads JSON of clients and providers. Only own properties count, and a value of an unexpected type
 * counts as absent. `needList` and `needEvent` throw instead.
 */
import { bufferOf } from '../../../ground/base/buffers.ts'
import { isObject as isAnyObject, type JsonObject } from '../../../ground/base/json-object.ts'
import { parseJson } from '../../json/parse.ts'
import { LlmError } from '../llm-error.ts'

export { parseDecision } from '../../json/decision.ts'
export { hasLongNumbers, isTooDeep, maxJsonDepth, parseJson } from '../../json/parse.ts'
export type { JsonObject }

/** Returns false for null, arrays, numbers in `JSON.rawJSON`, and everything else that is not an object. */
export function isObject(value: unknown): value is JsonObject {
  return isAnyObject(value) && !JSON.isRawJSON(value)
}

/** Returns the texts in the fields of an object that are not empty. */
export const textsAt = (value: unknown, names: readonly string[]): string[] =>
  names.flatMap((name) => stringAt(value, name) || [])

/** Whether a value is a list of objects. */
export const isObjects = (value: unknown): boolean => Array.isArray(value) && value.every(isObject)

export function field(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

export function objectAt(value: unknown, name: string): JsonObject | undefined {
  const found = field(value, name)
  return isObject(found) ? found : undefined
}

export function stringAt(value: unknown, name: string): string | undefined {
  const found = field(value, name)
  return typeof found === 'string' ? found : undefined
}

export function numberAt(value: unknown, name: string): number | undefined {
  const found = field(value, name)
  return typeof found === 'number' && Number.isFinite(found) ? found : undefined
}

export function booleanAt(value: unknown, name: string): boolean | undefined {
  const found = field(value, name)
  return typeof found === 'boolean' ? found : undefined
}

/** Returns the elements of an array; empty if the field is not an array. */
export function listAt(value: unknown, name: string): readonly unknown[] {
  const found = field(value, name)
  return Array.isArray(found) ? found : []
}

/** @throws LlmError 400 if the field is not an array. */
export function needList(value: unknown, name: string): readonly unknown[] {
  const found = field(value, name)
  if (Array.isArray(found)) return found
  throw new LlmError(400, `${name} must be an array`)
}

/** Decodes UTF-8 without a copy of the bytes. */
export const utf8Text = (bytes: Uint8Array): string => bufferOf(bytes).toString('utf8')

/** Parses the data of an event of a streamed response. @throws LlmError 502 if it is not JSON. */
export function needEvent(data: string): unknown {
  const event = parseJson(data)
  if (event === undefined) throw new LlmError(502, 'an event of the answer is not JSON')
  return event
}

/** Maps the items of a list; returns the same list if no item changes. */
export function mapList(
  list: readonly unknown[],
  map: (item: unknown) => unknown,
): readonly unknown[] {
  let changed: unknown[] | undefined
  for (let at = 0; at < list.length; at++) {
    const mapped = map(list[at])
    if (mapped === list[at]) continue
    changed ??= [...list]
    changed[at] = mapped
  }
  return changed ?? list
}

/** Maps the value of a field, or each item of a list there. Returns the same object if nothing changes. */
export function mapField(
  object: JsonObject,
  name: string,
  map: (value: unknown) => unknown,
): JsonObject {
  const value = object[name]
  if (value === undefined) return object
  const mapped = Array.isArray(value) ? mapList(value, map) : map(value)
  return mapped === value ? object : { ...object, [name]: mapped }
}

/** Returns the object with `fields` replaced; the same object if no value changes. */
export function withFields(object: JsonObject, fields: JsonObject): JsonObject {
  for (const name of Object.keys(fields)) {
    if (object[name] !== fields[name]) return { ...object, ...fields }
  }
  return object
}

/** Returns an object without the fields that are undefined. */
export function compact(fields: Readonly<Record<string, unknown>>): JsonObject {
  // This runs for each model response. Iterating over lists of entries would be several times slower.
  const present: Record<string, unknown> = {}
  for (const name of Object.keys(fields)) {
    if (fields[name] !== undefined) present[name] = fields[name]
  }
  return present
}
