/** The texts of events of a streamed response, and those of them that continue inside deltas. */
import { isObject, type JsonObject, withFields } from '../json/json.ts'
import { type DeltaMap, keepPieces, mapAsides, mapAsidesOf, type Path } from './delta-texts.ts'
import type { Place } from './places.ts'
import { isLabel, responseScope } from './text-fields.ts'
import { mapResponseField } from './texts.ts'
import { mapEntries, type TextsMap } from './texts-map.ts'

/** A piece of text in an event. */
export interface Piece {
  /** Name of the text that the piece belongs to: a whole message, or a field of a choice. */
  readonly run: string
  /** Name of the part that the piece belongs to: a content block or a content part. */
  readonly part: string
  readonly text: string
  /** True if it is no text of a message, but one inside a delta, which continues at the same path. */
  readonly isAside?: true
  /** Where the text is; `Messages` if omitted. */
  readonly place?: Place
  /** True for an opt-in text, which guards read only if their scope names the place. */
  readonly isOptIn?: true
}

/** A piece of an opt-in text, which continues in later events. */
export interface OptInPiece {
  readonly place: Place
  /** Name of the text that the piece belongs to. */
  readonly part: string
  readonly path: Path
}

/** The texts of an event, and the names of the parts that the event ends. */
export interface EventTexts {
  readonly pieces?: readonly Piece[]
  /** Returns an event with other texts, one for each piece: the event itself, or the one from `repeat`. */
  readonly put?: (texts: readonly string[], event: JsonObject) => JsonObject
  /** Whether the event begins a part, whose text follows in deltas. */
  readonly begins?: boolean
  /** Prefix of the names of the parts that end with this event. */
  readonly ends?: string
  /** Maps all other texts of the event, many of which repeat texts that were streamed. */
  readonly repeat: (map: TextsMap) => JsonObject
  /** True if the event repeats the whole response. */
  readonly isWhole?: boolean
}

/** Finds the texts in an event. */
export type ReadEvent = (event: JsonObject) => EventTexts

/** The name of the only text of messages in formats whose events show where parts end. */
export const message = 'message'
/** The prefix of the names of other texts in these formats. */
export const asidesPrefix = 'aside/'

/** Maps the texts of an event outside of one field, which contains what was streamed. */
export const mapRestOfEvent = (event: JsonObject, map: TextsMap, skipped: string): JsonObject =>
  mapEntries(event, (name, value) =>
    name === skipped ? value : mapResponseField(event, name, map),
  )

/** The piece at a path of an event or of a choice. `item` is the prefix of its names. */
export function asideOf(item: string, path: Path, text: string): Piece {
  const run = item + JSON.stringify(path)
  return { run, part: run, text, isAside: true }
}

/** Adds the texts in members of an event that continue at the same path of later ones of the same type. */
export function withAsides(
  base: EventTexts,
  event: JsonObject,
  item: string,
  mapMembers: (event: JsonObject, map: DeltaMap) => JsonObject,
): EventTexts {
  const asides: Piece[] = []
  const prefix = asidesPrefix + item + String(event.type)
  mapMembers(event, {
    ...keepPieces,
    aside: (text, path) => {
      asides.push(asideOf(prefix, path, text))
      return text
    },
  })
  const main = base.pieces?.length ?? 0
  const put = (texts: readonly string[], written: JsonObject) => {
    let at = main
    const next = base.put?.(texts.slice(0, main), written) ?? written
    return mapMembers(next, { ...keepPieces, aside: () => texts[at++] ?? '' })
  }
  return {
    ...base,
    pieces: [...(base.pieces ?? []), ...asides],
    put,
    repeat: (map) => mapMembers(base.repeat(map), { ...keepPieces, whole: map }),
  }
}

/** Adds opt-in pieces to the texts of an event. */
export function withOptInPieces(
  base: EventTexts,
  event: JsonObject,
  optIn: readonly OptInPiece[],
): EventTexts {
  if (optIn.length === 0) return base
  const { pieces = [] } = base
  const added = optIn.map(({ place, part, path }): Piece => {
    const name = asidesPrefix + part
    return {
      run: name,
      part: name,
      text: String(valueAt(event, path)),
      isAside: true,
      place,
      isOptIn: true,
    }
  })
  const put = (texts: readonly string[], written: JsonObject) => {
    const next = base.put?.(texts.slice(0, pieces.length), written) ?? written
    return withValuesAt(
      next,
      optIn.map(({ path }) => path),
      texts.slice(pieces.length),
    )
  }
  return { ...base, pieces: [...pieces, ...added], put }
}

const valueAt = (value: unknown, path: Path): unknown =>
  path.reduce((inner, name) => Reflect.get(Object(inner), name), value)

/** Returns an object with other values at paths. Each container is copied once, however many paths lead through it. */
function withValuesAt(
  object: JsonObject,
  paths: readonly Path[],
  values: readonly unknown[],
): JsonObject {
  const copies = new Set<unknown>()
  const copyOf = (value: unknown): object => {
    if (copies.has(value)) return value as object
    const copy: object = Array.isArray(value) ? [...value] : { ...Object(value) }
    copies.add(copy)
    return copy
  }
  const result = copyOf(object)
  for (const [at, path] of paths.entries()) {
    let holder = result
    for (const name of path.slice(0, -1)) {
      const inside = copyOf(Reflect.get(holder, name))
      Reflect.set(holder, name, inside)
      holder = inside
    }
    Reflect.set(holder, path.at(-1) ?? '', values[at])
  }
  return result as JsonObject
}

/** Returns the paths of all strings below `path` that are not labels. */
export function textPaths(value: unknown, path: Path): Path[] {
  if (typeof value === 'string') return value === '' ? [] : [path]
  if (Array.isArray(value)) return value.flatMap((item, at) => textPaths(item, [...path, at]))
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, item]) =>
    isLabel(value, name, responseScope) || name === 'data' ? [] : textPaths(item, [...path, name]),
  )
}

/** Reads an event whose `delta`, or all of it, is no text that is known here. */
export function readDelta(event: JsonObject, item: string): EventTexts {
  const hasDelta = Object.hasOwn(event, 'delta')
  const repeat = (map: TextsMap) => (hasDelta ? mapRestOfEvent(event, map, 'delta') : event)
  return withAsides({ repeat }, event, item, (one, map) =>
    hasDelta
      ? withFields(one, { delta: mapAsides(one, undefined, 'delta', [], map) })
      : mapAsidesOf(one, undefined, [], map),
  )
}

/** Does the event continue texts of earlier ones? */
export const isDelta = (event: JsonObject): boolean =>
  typeof event.type === 'string' && (Object.hasOwn(event, 'delta') || /[._]delta$/.test(event.type))
