/**
 * Reads JSON of clients and providers. Only own properties count, and a value of an unexpected type
 * counts as absent. `needList` and `needEvent` throw instead.
 */
import { bufferOf } from '../../../ground/base/buffers.ts'
import { isObject as isAnyObject, type JsonObject } from '../../../ground/base/json-object.ts'
import { LlmError } from '../llm-error.ts'

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

/** Matches integers that may exceed 2^53, and exponents that may exceed the range of a double. */
const longNumber = /(?<![\d.])\d{16}|\d[eE]\+?\d{3}/

/** Returns true if the text may contain numbers that a double cannot represent. */
export const hasLongNumbers = (text: string): boolean => longNumber.test(text)

/** Maximum depth of JSON that is read. JSON.stringify and walks through a value would exhaust the stack. */
export const maxJsonDepth = 1000

/** Returns true if lists and objects of JSON are nested deeper than `maxJsonDepth`. */
export function isTooDeep(text: string): boolean {
  if (text.length <= maxJsonDepth) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22:
        at = endOfString(text, at)
        break
      case 0x5b:
      case 0x7b:
        depth++
        if (depth > maxJsonDepth) return true
        break
      case 0x5d:
      case 0x7d:
        depth--
    }
  }
  return false
}

/** Returns the offset of the quote that ends the string at `start`, or of the end of the text. */
function endOfString(text: string, start: number): number {
  let end = start
  for (;;) {
    end = text.indexOf('"', end + 1)
    if (end < 0) return text.length
    let slashes = end - 1
    while (text.charCodeAt(slashes) === 0x5c) slashes--
    if ((end - slashes) % 2 === 1) return end
  }
}

/**
 * Parses JSON; undefined if the text is not JSON, or nested too deeply. Most values are written again for another reader,
 * so numbers that a double cannot represent, such as ids and 64-bit limits in tool schemas, keep
 * their text (`JSON.rawJSON`). `numberAt` treats them as absent.
 */
export function parseJson(text: string): unknown {
  if (isTooDeep(text)) return undefined
  try {
    return hasLongNumbers(text) ? JSON.parse(text, keepExact) : JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * Parses the answer of a service that decides about a message; undefined if it is not JSON, or if an object in it has
 * a key twice: another reader could find another decision.
 */
export function parseDecision(text: string): unknown {
  const parsed = parseJson(text)
  return parsed === undefined || repeatsKey(text) ? undefined : parsed
}

/** Returns true if an object of valid JSON has a key twice. */
function repeatsKey(json: string): boolean {
  const open: Set<string>[] = []
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at)
    if (code === 0x7b) open.push(new Set())
    else if (code === 0x7d) open.pop()
    if (code !== 0x22) continue
    const end = endOfString(json, at)
    if (isKey(json, end)) {
      const raw = json.slice(at, end + 1)
      const key = raw.includes('\\') ? (JSON.parse(raw) as string) : raw.slice(1, -1)
      if (open.at(-1)?.has(key)) return true
      open.at(-1)?.add(key)
    }
    at = end
  }
  return false
}

/** Returns true if the string of valid JSON that ends at `end` is a key: only keys stand before a colon. */
function isKey(json: string, end: number): boolean {
  let at = end + 1
  while (json.charCodeAt(at) <= 0x20) at++
  return json.charCodeAt(at) === 0x3a
}

function keepExact(_key: string, value: unknown, { source }: { source?: string }): unknown {
  if (typeof value !== 'number' || source === undefined) return value
  const isKept = Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value)
  return isKept ? value : JSON.rawJSON(source)
}

/** Parses the data of an event of a streamed answer. @throws LlmError 502 if it is not JSON. */
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
