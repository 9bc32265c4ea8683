/** Maps of the texts at the places that the scope of a guard names. */
import { isObject, mapList, parseJson } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import type { Place, Places } from './places.ts'
import {
  mapEntries,
  mapEvery,
  mapNames,
  maxDepth,
  type OptInTexts,
  type TextsMap,
} from './texts-map.ts'

/** Returns a map of the texts in scope; the same map if there is no scope. Texts without a place are always mapped. */
export function scopedMap(map: TextsMap, scope: Places | undefined): TextsMap {
  if (scope === undefined) return map
  const optIn: OptInTexts = {
    has: (place) => scope.has(place),
    map: (text, place) => map([text], false, place)[0] ?? '',
  }
  return withOptIn(inScope(map, scope), optIn)
}

const inScope =
  (map: TextsMap, scope: Places): TextsMap =>
  (texts, isContent, place) =>
    place === undefined || scope.has(place) ? map(texts, isContent, place) : texts

export const withOptIn = (map: TextsMap, optIn: OptInTexts | undefined): TextsMap =>
  optIn === undefined ? map : Object.assign(map, { optIn })

const noOptIn: OptInTexts = { has: () => false, map: (text) => text }

/** Like `scopedMap`, but does not map opt-in texts. */
export const usualMap = (map: TextsMap, scope: Places | undefined): TextsMap =>
  scope === undefined ? map : withOptIn(inScope(map, scope), noOptIn)

/** Returns a map of only the opt-in texts in scope. */
export const optInMap = (map: OptInTexts['map'], scope: Places): TextsMap =>
  withOptIn((texts) => texts, { has: (place) => scope.has(place), map })

/** Returns a map that masks the values inside the JSON of tools, so that it stays JSON. */
export const jsonAware =
  (map: TextsMap): TextsMap =>
  (texts, isContent, place) =>
    place === 'ToolInput' || place === 'ToolDefinition'
      ? texts.map((text) => mapInJson(text, map, place))
      : map(texts, isContent, place)

function mapInJson(text: string, map: TextsMap, place: Place): string {
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null) return map([text], false, place)[0] ?? ''
  const mapped = mapNames(mapEvery(mapNumbers(value, map), map, 400), map)
  const mapText = (whole: string): string => map([whole], false, place)[0] ?? ''
  const asSent = mapped === value ? mapText(text) : ''
  if (asSent === text) return text
  // A match may span a name and its value, even if there is another match inside one of the values.
  const written = JSON.stringify(mapped)
  const masked = hasCharacters.test(written) ? mapText(written) : written
  if (masked !== written || mapped !== value) return masked
  // Either white space is a part of the match, or a repeated key has hidden the text from the parser.
  return text.replaceAll(spaceOutside, '$1') === written ? asSent : written
}

const hasCharacters = /[\p{L}\p{N}]/u
/** White space outside of strings, and strings. */
const spaceOutside = /[ \t\r\n]+|("(?:[^"\\]|\\.)*")/g

/** Maps numbers: a number that changes becomes a text. */
function mapNumbers(value: unknown, map: TextsMap, depth = 0): unknown {
  if (typeof value === 'number') {
    const text = `${value}`
    const mapped = map([text])[0]
    return mapped === text ? value : mapped
  }
  if (depth > maxDepth) throw new LlmError(400, `a value deeper than ${maxDepth} cannot be guarded`)
  if (Array.isArray(value)) return mapList(value, (item) => mapNumbers(item, map, depth + 1))
  return isObject(value) ? mapEntries(value, (_, item) => mapNumbers(item, map, depth + 1)) : value
}
