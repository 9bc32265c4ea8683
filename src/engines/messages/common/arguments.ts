/** Arguments of tool calls. */
import { isObject, type JsonObject, parseJson } from '../json/json.ts'

/** Parses arguments; a blank text means no arguments, and text that is not JSON stays text. */
export function readArguments(text: string | undefined): unknown {
  if (text === undefined || text.trim() === '') return {}
  return parseJson(text) ?? text
}

export function writeArguments(input: unknown): string {
  return typeof input === 'string' ? input : JSON.stringify(input ?? {})
}

/** Arguments as an object, for providers that accept nothing else. */
export function argumentsObject(input: unknown): JsonObject {
  return isObject(input) ? input : { input }
}
