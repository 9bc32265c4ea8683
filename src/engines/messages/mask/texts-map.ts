/** Maps of texts, and of the values that contain them. */
import { isObject, type JsonObject, mapList } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import type { Place } from './places.ts'

/** Maps opt-in texts, which guards read only if their scope names the place. */
export interface OptInTexts {
  has(place: Place): boolean
  /** Maps a text. That of a tool definition or tool input is JSON. */
  map(text: string, place: Place): string
}

/**
 * Maps the parts of one text, which guards read as a whole. Most texts have a single part. `isContent` is true
 * if the parts are contents of messages. `place` is where the text is; undefined for errors.
 */
export interface TextsMap {
  (texts: readonly string[], isContent?: boolean, place?: Place): readonly string[]
  /** Set if a guard has a scope. */
  readonly optIn?: OptInTexts
}

export const mapOne = (text: string, map: TextsMap, isContent: boolean, place?: Place): string =>
  map([text], isContent, place)[0] ?? ''

/** Maps the values of an object; returns the same object if nothing changes. */
export function mapEntries(
  object: JsonObject,
  map: (name: string, value: unknown) => unknown,
): JsonObject {
  let changed: Record<string, unknown> | undefined
  for (const name of Object.keys(object)) {
    const mapped = map(name, object[name])
    if (mapped === object[name]) continue
    changed ??= { ...object }
    changed[name] = mapped
  }
  return changed ?? object
}

/** Maps the names of members at any depth. */
export function mapNames(value: unknown, map: TextsMap): unknown {
  if (Array.isArray(value)) return mapList(value, (item) => mapNames(item, map))
  if (!isObject(value)) return value
  let isSame = true
  const entries = Object.entries(value).map(([name, item]) => {
    const entry = [mapOne(name, map, false), mapNames(item, map)] as const
    isSame &&= entry[0] === name && entry[1] === item
    return entry
  })
  return isSame ? value : Object.fromEntries(entries)
}

export const maxDepth = 100

/** Maps every text of a value. @throws LlmError of the status if it is nested too deeply. */
export function mapEvery(value: unknown, map: TextsMap, status: number, depth = 0): unknown {
  if (typeof value === 'string') return mapOne(value, map, false)
  if (depth > maxDepth) {
    throw new LlmError(status, `a value deeper than ${maxDepth} cannot be guarded`)
  }
  const mapItem = (item: unknown) => mapEvery(item, map, status, depth + 1)
  if (Array.isArray(value)) return mapList(value, mapItem)
  return isObject(value) ? mapEntries(value, (_, item) => mapItem(item)) : value
}
