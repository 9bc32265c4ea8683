/** JSON that others wrote: is a value an object with members? */

export type JsonObject = Readonly<Record<string, unknown>>

/** False for null, arrays, and everything that is not an object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
