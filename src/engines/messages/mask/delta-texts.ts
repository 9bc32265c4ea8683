/**
 * Maps the texts of deltas, which continue in later events. Texts inside objects and lists of a delta, and those of a
 * delta of an unknown kind, are *asides*: each continues at the same path. The core has the same rules in
 * assembly/texts/asides.ts.
 */
import { isObject, type JsonObject } from '../json/json.ts'
import { encodedText } from './encoded-texts.ts'
import { isLabel, isSkipped, putText, responseScope, textField, textOfPart } from './text-fields.ts'
import { mapResponseField } from './texts.ts'
import { mapEntries, type TextsMap } from './texts-map.ts'

/** Names of members and positions in lists, from an event to one of its strings. */
export type Path = readonly (string | number)[]

/** How the texts of a delta are mapped. */
export interface DeltaMap {
  /** A piece of a text that is known; `field` is its name. */
  piece(text: string, field: string): string
  /** A piece of an aside. */
  aside(text: string, path: Path): string
  /** Texts that are complete, such as those in base64. */
  readonly whole: TextsMap
}

/** Changes nothing. */
export const keepPieces: DeltaMap = {
  piece: (text) => text,
  aside: (text) => text,
  whole: (texts) => texts,
}

/** Maps the texts of the delta of a choice; each field is a separate text. */
export function mapDelta(delta: JsonObject, map: DeltaMap): JsonObject {
  return mapEntries(delta, (name, value) => {
    if (typeof value === 'string') {
      const isText = value !== '' && !isSkipped(delta, 'delta', name, responseScope)
      return isText && !isLabel(delta, name, responseScope) ? map.piece(value, name) : value
    }
    const path = ['delta', name]
    if (name === 'audio' && isObject(value)) return mapAudio(value, path, map)
    if (name !== 'content' || !Array.isArray(value)) {
      return mapAsides(delta, 'delta', name, ['delta'], map)
    }
    return value.map((part, at) => mapPart(part, [...path, at], map))
  })
}

function mapAudio(audio: JsonObject, path: Path, map: DeltaMap): JsonObject {
  const others = mapAsidesOf(audio, 'audio', path, map, ['transcript'])
  return mapEntries(others, (name, value) =>
    name === 'transcript' && typeof value === 'string' && value !== ''
      ? map.piece(value, name)
      : value,
  )
}

function mapPart(part: unknown, path: Path, map: DeltaMap): unknown {
  if (Array.isArray(part)) return mapItems(part, 'content', path, map)
  const text = textOfPart(part, responseScope)
  const put =
    text === undefined || text === ''
      ? part
      : putText(part, map.piece(text, 'content'), responseScope)
  const skipped = textField(part, responseScope)
  return isObject(put)
    ? mapAsidesOf(put, 'content', path, map, skipped === undefined ? [] : [skipped])
    : put
}

/** Maps the asides of an object at `path`. `key` is the name of the member that contains it. */
export function mapAsidesOf(
  object: JsonObject,
  key: string | undefined,
  path: Path,
  map: DeltaMap,
  skipped: readonly string[] = [],
): JsonObject {
  return mapEntries(object, (name, value) =>
    skipped.includes(name) ? value : mapAsides(object, key, name, path, map),
  )
}

/** Maps the asides in a member of an object at `path`. */
export function mapAsides(
  holder: JsonObject,
  key: string | undefined,
  name: string,
  path: Path,
  map: DeltaMap,
): unknown {
  const value = holder[name]
  if (value === null || value === '' || isSkipped(holder, key, name, responseScope)) return value
  const here = [...path, name]
  if (typeof value === 'string') {
    if (encodedText(holder, name, responseScope) !== undefined)
      return mapResponseField(holder, name, map.whole)
    return isLabel(holder, name, responseScope) ? value : map.aside(value, here)
  }
  if (Array.isArray(value))
    return mapItems(value, name, here, map, isLabel(holder, name, responseScope))
  if (!isObject(value)) return value
  if (name !== 'variables') return mapAsidesOf(value, name, here, map)
  // Variables of a template have names of their own.
  return mapEntries(value, (variable, item) => mapItem(item, undefined, [...here, variable], map))
}

function mapItems(
  items: readonly unknown[],
  key: string | undefined,
  path: Path,
  map: DeltaMap,
  areLabels = false,
): readonly unknown[] {
  return items.map((item, at) =>
    areLabels && !isObject(item) ? item : mapItem(item, key, [...path, at], map),
  )
}

function mapItem(item: unknown, key: string | undefined, path: Path, map: DeltaMap): unknown {
  if (typeof item === 'string') return item === '' ? item : map.aside(item, path)
  if (Array.isArray(item)) return mapItems(item, key, path, map)
  return isObject(item) ? mapAsidesOf(item, key, path, map) : item
}
