/** Texts of errors that providers send. Errors may quote prompts and responses anywhere, so each of their texts is mapped. */
import { isObject, type JsonObject, mapField, objectAt, withFields } from '../json/json.ts'
import type { RoleText } from './slot.ts'
import { mapEvery, type TextsMap } from './texts-map.ts'

/** Maps every text of an error. @throws LlmError 502 if it is nested too deeply. */
export const mapEveryOfError = (error: unknown, map: TextsMap): unknown => mapEvery(error, map, 502)

/** Maps every text of an error that came in place of a response or event, but keeps its type. */
export function mapErrorResponse(error: JsonObject, map: TextsMap): JsonObject {
  const mapped = mapEveryOfError(error, map) as JsonObject
  return error.type === 'error' ? withFields(mapped, { type: 'error' }) : mapped
}

/** Maps the texts of errors beside a response or inside an event: of the whole, of a response and of choices. */
export function mapErrorsBeside(body: JsonObject, map: TextsMap): JsonObject {
  const response = objectAt(body, 'response')
  const mapped = response === undefined ? body : withErrors(body, response, map)
  return mapField(mapError(mapped, map), 'choices', (choice) =>
    isObject(choice) ? mapError(choice, map) : choice,
  )
}

const withErrors = (body: JsonObject, response: JsonObject, map: TextsMap): JsonObject =>
  withFields(body, { response: mapError(response, map) })

const mapError = (holder: JsonObject, map: TextsMap): JsonObject =>
  holder.error == null ? holder : withFields(holder, { error: mapEveryOfError(holder.error, map) })

/** Collects the texts that a function maps. */
function textsOf(mapAll: (map: TextsMap) => unknown): string[] {
  const found: string[] = []
  mapAll((texts) => {
    for (const text of texts) if (text !== '') found.push(text)
    return texts
  })
  return found
}

/** Returns the texts of a value as webhooks see them: one text, or none. */
export function textOfEvery(value: unknown): RoleText[] {
  return asOne(textsOf((map) => mapEveryOfError(value, map)))
}

/** Returns the texts of errors beside a response as webhooks see them: one text, or none. */
export function textOfErrorsBeside(body: JsonObject): RoleText[] {
  return asOne(textsOf((map) => mapErrorsBeside(body, map)))
}

const asOne = (texts: readonly string[]): RoleText[] =>
  texts.length === 0 ? [] : [{ role: 'assistant', content: texts.join(' ') }]
