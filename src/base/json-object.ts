export type JsonObject = Readonly<Record<string, unknown>>

/** Returns true for a JSON object; false for null, arrays and all other values. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
