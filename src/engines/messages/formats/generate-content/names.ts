/** Names of members in camel case: vendor D accepts snake case, too. */
import { isObject, type JsonObject } from '../../json/json.ts'

/** Members whose values have names of their own. */
export const dataNames: ReadonlySet<string> = new Set([
  ...['args', 'response', 'labels', 'parameters', 'parametersJsonSchema', 'responseSchema'],
  ...['responseJsonSchema'],
])

export const inCamelCase = (name: string): string =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Returns a body with names in camel case. */
export function withCamelNames(body: JsonObject): JsonObject {
  const renamed: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(body)) {
    const plain = inCamelCase(name)
    renamed[plain] = dataNames.has(plain) ? value : renameIn(value)
  }
  return renamed
}

function renameIn(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(renameIn)
  return isObject(value) ? withCamelNames(value) : value
}
