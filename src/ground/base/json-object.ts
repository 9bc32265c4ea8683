export type JsonObject = Readonly<Record<string, unknown>>

/** Returns true for a JSON object; false for null, arrays and all other values. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The entry of a table with this name; undefined for names that every object inherits, such as `constructor`. */
export function entryOf<Value>(
  table: Readonly<Partial<Record<string, Value>>>,
  name: string,
): Value | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}
