/**
 * Reading JSON that others wrote: fields are looked up as own properties, and what has another shape
 * than expected counts as absent. Request bodies are refused by `need*`, which name the field.
 */
import { isObject as isAnyObject, type JsonObject } from '../../base/json-object.ts'
import { LlmError } from './llm-error.ts'

export type { JsonObject }

/** False for null, arrays, numbers that are kept as they stand, and everything that is no object. */
export function isObject(value: unknown): value is JsonObject {
  return isAnyObject(value) && !JSON.isRawJSON(value)
}

/** An own property; never one of a prototype. */
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

/** The elements of an array; empty where there is none. */
export function listAt(value: unknown, name: string): readonly unknown[] {
  const found = field(value, name)
  return Array.isArray(found) ? found : []
}

/** @throws LlmError 400 where the field is no array. */
export function needList(value: unknown, name: string): readonly unknown[] {
  const found = field(value, name)
  if (Array.isArray(found)) return found
  throw new LlmError(400, `${name} must be an array`)
}

/** Integers that may be beyond 2^53, and exponents that may be beyond a double. */
const longNumber = /(?<![\d.])\d{16}|\d[eE]\+?\d{3}/

/** May the text hold numbers that a double cannot? */
export const hasLongNumbers = (text: string): boolean => longNumber.test(text)

/**
 * JSON text to a value; undefined where it is none. What is parsed is mostly written again, for
 * somebody else: numbers that a double cannot hold, such as ids and the limits of 64 bits in schemas
 * of tools, are kept as they stand (`JSON.rawJSON`), and count as absent where a number is asked for.
 */
export function parseJson(text: string): unknown {
  try {
    return hasLongNumbers(text) ? JSON.parse(text, keepExact) : JSON.parse(text)
  } catch {
    return undefined
  }
}

function keepExact(_key: string, value: unknown, { source }: { source?: string }): unknown {
  if (typeof value !== 'number' || source === undefined) return value
  const isKept = Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value)
  return isKept ? value : JSON.rawJSON(source)
}

/** The object without the fields that are undefined; such fields stand for "not given". */
export function compact(fields: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
