/** Names of members as servers may read them that ignore their case. */
import { LlmError } from '../llm-error.ts'
import type { JsonObject } from './json.ts'

/** Returns the name as which a server that ignores case may read a key. */
export const asciiName = (key: string): string =>
  // Both conversions are needed: some letters become ASCII letters in only one of the two cases.
  key.toUpperCase().toLowerCase()

/** @throws LlmError 400 if a key of the object differs from one of these names only in case */
export function needNames(object: JsonObject, names: ReadonlySet<string>): void {
  for (const key of Object.keys(object)) {
    const name = asciiName(key)
    if (name !== key && names.has(name)) throw otherCase(key, name)
  }
}

export const otherCase = (key: string, name: string): LlmError =>
  new LlmError(400, `the key "${key}" must be ${name}`)
