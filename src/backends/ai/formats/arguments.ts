/** Arguments of calls of tools. */
import { isObject, type JsonObject, parseJson } from '../json.ts'

/** Text that should be JSON; nothing at all stands for no arguments. */
export function readArguments(text: string | undefined): unknown {
  if (text === undefined || text.trim() === '') return {}
  return parseJson(text) ?? text
}

export function writeArguments(input: unknown): string {
  return typeof input === 'string' ? input : JSON.stringify(input ?? {})
}

/** For providers that take an object only; what a model has written instead goes into one. */
export function argumentsObject(input: unknown): JsonObject {
  return isObject(input) ? input : { input }
}
